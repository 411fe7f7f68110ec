"""Refusals of any profile: an event does not fit, is a repetition, or came too early."""

from fixloop.errors import RefusedError


class Unexpected(RefusedError):
    """The event does not fit the state; nothing was changed."""


class Repeated(Unexpected):
    """It has already happened; a repetition has no effect (R8)."""


class NotDue(Unexpected):
    """A timer fired too early; it will fire again."""


class Moved(Unexpected):
    """The work is based on a commit that is no longer the latest; it has to be rebased first."""
