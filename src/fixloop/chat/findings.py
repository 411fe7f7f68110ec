"""A finding: an error in a chat's file, with file, line, field and value."""

import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

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
