"""The engine: reads a state, has the next step decided, commits it and sends the hints of new tickets."""
