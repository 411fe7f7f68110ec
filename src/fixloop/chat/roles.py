"""The participants of a chat, and the required content of their messages (E6, E16, E21, E26)."""

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
"""The roles that may close a chat (G13)."""

TEMPLATES: Final = {
    Role.TWIN: ("STATUS", "PLAN", "CHANGESETS", "SMOKE", "RISKS"),
    Role.ARCHITECT: ("STATUS", "PLAN", "CHANGESETS", "SMOKE", "RISKS", "ASKS"),
    Role.ENGINEER: (
        *("STATUS", "OBSERVATIONS", "ANALYSIS", "GATES", "PLAN", "CHANGESETS"),
        *("DOCS", "SMOKE", "RISKS", "ASKS"),
    ),
}
"""By sender: the sections of a message, in order."""

ANSWERS: Final = {Role.TWIN: Role.ARCHITECT, Role.ARCHITECT: Role.ENGINEER, Role.ENGINEER: Role.ARCHITECT}
"""By sender: the default recipient."""

OPTIONAL_SECTIONS: Final = ("ASKS",)
"""Only a blocked sender asks (U7)."""
