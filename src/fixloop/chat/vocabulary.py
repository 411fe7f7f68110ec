"""The words of the chat protocol: the participants, the required content of their messages (E6, E16, E21, E26), and
findings: errors in a chat's file, with file, line, field and value."""

import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple


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


FILE_LEVEL: Final = 0
"""The line of a finding about a whole file."""

_SHOWN_CHARACTERS: Final = 60

_TOLD: Final = Path(__file__).with_name("rules.toml").read_text(encoding="utf-8")
RULES: Final[Mapping[str, str]] = tomllib.loads(_TOLD)
"""The requirement of each rule, by name."""


class Level(StrEnum):
    """The level of a finding, in SARIF's words."""

    ERROR = "error"
    WARNING = "warning"


class Finding(NamedTuple):
    """One error in one place."""

    rule: str
    """A key of `RULES`."""
    file: str
    """A path for people and tools, with forward slashes."""
    message: str
    """What is wrong, with the value, in one clause."""
    line: int = FILE_LEVEL
    """From 1; 0 for the whole file."""
    level: Level = Level.ERROR
    field: str = ""
    """The key that it is about, if any."""
    value: str = ""
    """The value of that key."""

    def __str__(self) -> str:
        """`chats/0005-dx-x/meta.yaml:4: error: area is 'zz'; … [contract]`"""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.level}: {self.message} [{self.rule}]"


def shown(value: str) -> str:
    """`value` quoted, on one line and shortened."""
    line = " ".join(value.split())
    return repr(line if len(line) <= _SHOWN_CHARACTERS else f"{line[: _SHOWN_CHARACTERS - 1]}…")


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is Level.ERROR]
