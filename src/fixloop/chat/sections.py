"""The sections of a message's body: plain, bold or heading lines (U7), and the results under GATES (E24)."""

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from fixloop.chat.vocabulary import OPTIONAL_SECTIONS, TEMPLATES, Role

_TITLES: Final = "|".join(sorted({title for template in TEMPLATES.values() for title in template}))
_PLAIN: Final = re.compile(rf"({_TITLES})\s*(?:$|[:–—-](?:\s|$))")
_MARKED: Final = re.compile(rf"(?:\#{{1,6}}\s+(?:\*\*|__)?|\*\*|__)({_TITLES})(?![\w-])", re.IGNORECASE)
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_RESULT: Final = re.compile(r"\s*[-*+]\s+\[(pass|fail)\]\s+(\S(?:.*\S)?)\s*$", re.IGNORECASE)


class Verdict(StrEnum):
    """The result of running one acceptance criterion."""

    PASS = "pass"
    FAIL = "fail"


class Section(NamedTuple):
    """The start of a section."""

    title: str
    """In upper case, as in the template."""
    line: int
    """From 0, within the body."""


class Result(NamedTuple):
    """A reported result of an acceptance criterion."""

    verdict: Verdict
    text: str
    """The criterion, and any text that the sender adds after it."""


def sections(body: Sequence[str]) -> list[Section]:
    """The first occurrence of each section in the body's lines, by line."""
    found: dict[str, Section] = {}
    fence = ""
    for number, line in enumerate(body):
        if fenced := _FENCE.match(line):
            # Lines inside a code block name no section.
            if not fence:
                fence = fenced[1]
            elif fenced[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        hit = _PLAIN.match(line) or _MARKED.match(line)
        if hit is not None and not fence:
            title = hit[1].upper()
            found.setdefault(title, Section(title, number))
    return list(found.values())


def missing(found: Sequence[Section], role: Role) -> list[str]:
    """The missing sections of the sender's template that are not optional."""
    titles = {section.title for section in found}
    return [title for title in TEMPLATES[role] if title not in titles and title not in OPTIONAL_SECTIONS]


def misplaced(found: Sequence[Section], role: Role) -> tuple[Section, Section] | None:
    """The first two neighbours in the wrong order; None if all are in the template's order."""
    template = TEMPLATES[role]
    own = [section for section in found if section.title in template]
    return next(
        (pair for pair in pairwise(own) if template.index(pair[0].title) > template.index(pair[1].title)),
        None,
    )


def _gates(body: Sequence[str]) -> slice:
    """The section GATES; empty if there is none."""
    places = [*sections(body), Section("", len(body))]
    for section, following in pairwise(places):
        if section.title == "GATES":
            return slice(section.line, following.line)
    return slice(0, 0)


def results(body: Sequence[str]) -> list[Result]:
    """The `- [pass] criterion` lines of the section GATES."""
    hits = map(_RESULT.match, body[_gates(body)])
    return [Result(Verdict(hit[1].lower()), hit[2]) for hit in hits if hit]


def with_results(body: Sequence[str], told: Sequence[Result]) -> list[str]:
    """The body with further results at the end of its section GATES."""
    end = _gates(body).stop
    if not end or not told:
        return list(body)
    while end > 0 and not body[end - 1].strip():
        end -= 1
    rest = list(body[end:])
    return [*body[:end], *(f"- [{result.verdict}] {result.text}" for result in told), *rest]
