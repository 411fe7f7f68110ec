"""Who takes part in a chat, and what each one's messages have to say (E6, E16, E21, E26)."""

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """One of the three that write; also whose turn it is."""

    TWIN = "twin"
    ARCHITECT = "architect"
    ENGINEER = "engineer"


class ChatState(StrEnum):
    """Where a chat stands, as its contract says."""

    OPEN = "open"
    REVIEW = "review"
    MERGED = "merged"
    CLOSED = "closed"


AREAS: Final = ("rt", "ld", "st", "ui", "dx", "ad", "dc")
"""Runtime, ledger, storage, user interface, developer experience, adapters, documentation (U6)."""

CLOSERS: Final = (Role.ARCHITECT, Role.TWIN)
"""Who may close (G13)."""

TEMPLATES: Final = {
    Role.TWIN: ("STATUS", "PLAN", "CHANGESETS", "SMOKE", "RISKS"),
    Role.ARCHITECT: ("STATUS", "PLAN", "CHANGESETS", "SMOKE", "RISKS", "ASKS"),
    Role.ENGINEER: (
        *("STATUS", "OBSERVATIONS", "ANALYSIS", "GATES", "PLAN", "CHANGESETS"),
        *("DOCS", "SMOKE", "RISKS", "ASKS"),
    ),
}
"""By sender: the sections of a message, in their order."""

ANSWERS: Final = {
    Role.TWIN: Role.ARCHITECT,
    Role.ARCHITECT: Role.ENGINEER,
    Role.ENGINEER: Role.ARCHITECT,
}
"""By sender: whom a message is for if it does not say."""

OPTIONAL_SECTIONS: Final = ("ASKS",)
"""Only who is blocked asks (U7)."""
