"""Logging in. Nothing is built yet."""


def login(name, password="", token=""):
    """Whether somebody may log in."""
    raise NotImplementedError
