"""Rendered messages taken apart again, so that a test can say which section holds what."""

import re
from itertools import pairwise


def headings(text: str) -> list[str]:
    """The level-3 sections, in order."""
    return re.findall(r"^### (.+)$", text, re.MULTILINE)


def section(text: str, heading: str) -> str:
    """The text below one level-3 heading, to the next one or the next rule of the page."""
    _, found, rest = text.partition(f"### {heading}\n")
    assert found, f"no section {heading}"
    return re.split(r"^(?:---|### .*)$", rest, maxsplit=1, flags=re.MULTILINE)[0]


def header(text: str) -> dict[str, str]:
    """The fields between the level-2 heading and the first rule."""
    return dict(re.findall(r"^\*\*(.+?)\*\*: (.*)$", text.split("\n---\n")[0], re.MULTILINE))


def footer(text: str) -> dict[str, str]:
    """The fields behind the last rule."""
    return dict(re.findall(r"^\*\*(.+?)\*\*: (.*)$", text.split("\n---\n")[-1], re.MULTILINE))


def field(text: str, name: str) -> str:
    """The value of one `**name**:` anywhere; it must be there once."""
    (found,) = re.findall(rf"^(?:- )?\*\*{re.escape(name)}\*\*: (.*)$", text, re.MULTILINE)
    return str(found)


def in_order(names: list[str], found: list[str]) -> bool:
    """True when all `names` are in `found`, each behind the one before."""
    places = [found.index(name) for name in names if name in found]
    return len(places) == len(names) and all(one < two for one, two in pairwise(places))
