"""Tokens of logged-in users. Nothing is built yet."""
