"""What is wrong with a file of a chat: one finding, with file, line, field and value."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

FILE_LEVEL: Final = 0
"""The line of a finding about a file as a whole."""

_SHOWN_CHARACTERS: Final = 60

RULES: Final = {
    "contract": "Every chat has a meta.yaml of the schema, written by the twin.",
    "directory": "A chat's directory is named {id}-{area}-{slug}, as its meta.yaml says.",
    "edited": "A message is never edited after it was posted.",
    "encoding": "Files are UTF-8.",
    "ending": "A chat is closed with SUMMARY.md and DECISION.md, and only then.",
    "file": "What a chat is made of are readable regular files of a reasonable size.",
    "file-name": "A message is {seq}-to-{role}.md with three digits.",
    "first-message": "The first message is 001-to-engineer.md from the architect.",
    "front-matter": "A message begins with front matter of exactly six keys.",
    "header": "The first line after the front matter is `-- TO {ROLE}:`, as in the file's name.",
    "legacy": "A message from before the protocol is kept as it is until the chat is closed.",
    "output": "Twin and engineer print nothing; the architect prints TO USER blocks only.",
    "owner": "The owner is whom the last message is for.",
    "pull-request": "A pull request is titled `{id} [{area}] {slug}`.",
    "sections": "A message has the sections of its sender's template, in their order.",
    "sequence": "Numbers begin at 001 and go on without gap or repetition.",
    "timestamp": "A time is ISO 8601.",
}
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
