"""Reads a state, has the next step decided, commits it and sends the hint that it is there."""
