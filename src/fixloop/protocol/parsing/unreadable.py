"""The one error of this package: a text that is no message."""

from fixloop.errors import UsageError


class UnreadableMessage(UsageError):
    """The text is not a message as fixloop renders it; the error names what is missing or wrong, and where."""
