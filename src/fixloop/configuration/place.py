"""A place in a configuration file, and the errors that name it.

Every message is one line: the problem, the value, and what to do. Values are shortened.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from fixloop.errors import UsageError

SHOWN_CHARACTERS = 60


class Place(NamedTuple):
    """A key, or the whole section if `key` is empty."""

    file: str
    """`fixloop.toml`, `pyproject.toml` or a flag such as `--fixer`."""
    prefix: str = ""
    """`tool.fixloop` in pyproject.toml."""
    section: str = ""
    """Dotted, without the prefix; empty at the top."""
    item: int = 0
    """Which one of a `[[section]]`, from 1; 0 for a plain section."""
    key: str = ""

    def at(self, key: str) -> "Place":
        return self._replace(key=key)

    def inside(self, key: str, item: int = 0) -> "Place":
        return self._replace(section=f"{self.section}.{key}" if self.section else key, item=item, key="")

    @property
    def heading(self) -> str:
        """The section as the file writes it; empty at the top of fixloop.toml."""
        name = ".".join(part for part in (self.prefix, self.section) if part)
        if self.item:
            return f"[[{name}]] number {self.item}"
        return f"[{name}]" if name else ""

    def error(self, problem: str) -> UsageError:
        """`fixloop.toml: [section] key PROBLEM`."""
        where = " ".join(part for part in (self.heading, self.key) if part)
        return UsageError(f"{self.file}: {where} {problem}" if where else f"{self.file}: {problem}")

    def wrong(self, expected: str, value: Any) -> UsageError:
        """The error for a `value` that the key does not take."""
        return self.error(f"must be {expected}, not {shown(value)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """The member of `known` nearest to `word`; empty if none is near."""
    found = get_close_matches(word[:SHOWN_CHARACTERS].lower(), list(known), n=1)
    return found[0] if found else ""


def advice(word: str, known: Iterable[str], otherwise: str) -> str:
    """The advice for an unknown `word`: the nearest one, else `otherwise`."""
    near = nearest(word, known)
    return f"did you mean {near!r}?" if near else otherwise


def shown(value: Any) -> str:
    """`value` for a message: one line, short; a nested value is shown as its kind only."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"  # Python refuses to print very long ones
    text = repr(value) if isinstance(value, str | int | float) else str(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 2] + "…" + text[-1]


def shown_path(path: Path) -> str:
    """The whole `path`, on one line."""
    text = str(path)
    return text if text.isprintable() else ascii(text)
