"""How many examples a test with a number of its own looks at."""

from hypothesis import settings


def at_most(examples: int) -> settings:
    """So many, or as many as the profile says where those are fewer: `make quick` has no tests that it spares."""
    return settings(max_examples=min(examples, settings().max_examples))
