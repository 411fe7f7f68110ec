"""What is wrong with a file of a chat: one finding, with file, line, field and value."""

import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

FILE_LEVEL: Final = 0
"""The line of a finding about a file as a whole."""

_SHOWN_CHARACTERS: Final = 60

RULES: Final[Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("rules.toml").read_text(encoding="utf-8")
)
"""By name: what each rule demands."""


class Level(StrEnum):
    """How bad a finding is; the words are SARIF's."""

    ERROR = "error"
    WARNING = "warning"


class Finding(NamedTuple):
    """One thing that is wrong, in one place."""

    rule: str
    """A key of `RULES`."""
    file: str
    """As a path for people and tools, with forward slashes."""
    message: str
    """What, with which value, in one clause."""
    line: int = FILE_LEVEL
    """From 1; 0 for the file as a whole."""
    level: Level = Level.ERROR
    field: str = ""
    """The key it is about, if it is about one."""
    value: str = ""
    """What stands there."""

    def __str__(self) -> str:
        """`chats/0005-dx-x/meta.yaml:4: error: area is 'zz'; … [contract]`"""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.level}: {self.message} [{self.rule}]"


def shown(value: str) -> str:
    """`value` quoted, on one line and not too long."""
    line = " ".join(value.split())
    return repr(line if len(line) <= _SHOWN_CHARACTERS else f"{line[: _SHOWN_CHARACTERS - 1]}…")


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is Level.ERROR]
