"""Why an event changes nothing, in any profile: it does not fit, it was known, or it came too early."""

from fixloop.errors import RefusedError


class Unexpected(RefusedError):
    """The event does not fit the state; nothing was changed."""


class Repeated(Unexpected):
    """It happened already; a repetition is nothing (R8)."""


class NotDue(Unexpected):
    """A timer came too early; it will come again."""


class Moved(Unexpected):
    """It was made on a commit that others have gone on from; its maker brings it onto theirs first."""
