"""Sets the number of examples for a test with its own limit."""

from hypothesis import settings


def at_most(examples: int) -> settings:
    """At most `examples`, or fewer if the profile says so, so that `make quick` shortens all tests."""
    return settings(max_examples=min(examples, settings().max_examples))
