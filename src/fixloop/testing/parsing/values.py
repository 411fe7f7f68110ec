"""The values that a message has as words: numbers, durations, words of an enumeration, markers.

Every function takes the words, still escaped, and their part; what does not fit raises UnreadableMessage naming both.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeVar

from fixloop.testing.parsing.document import Part, UnreadableMessage

E = TypeVar("E", bound=StrEnum)
M = TypeVar("M")

_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")
_CLOCK: Final = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{2,9}):([0-5][0-9])")
_PERIOD: Final = re.compile(r"([0-9]{1,9}) (minute|second)s?")
_RUN: Final = re.compile(r"Iteration [0-9]{1,9}: ([0-9]{1,9}) failures?(?: \(PASS\))?")


def number(words: str, part: Part, what: str) -> int:
    """A whole number."""
    if _NUMBER.fullmatch(words) is None:
        raise _unfit(words, part, what, "a whole number")
    return int(words)


def number_or_none(words: str, part: Part, what: str) -> int | None:
    """A whole number, or nothing."""
    return number(words, part, what) if words else None


def seconds(words: str, part: Part, what: str) -> float:
    """`MM:SS`, `HH:MM:SS` (both are accepted, K24) or `5 minutes`, in seconds."""
    clock, period = _CLOCK.fullmatch(words), _PERIOD.fullmatch(words)
    if clock is not None:
        hours, minutes, rest = (int(group or 0) for group in clock.groups())
        return float(hours * 3600 + minutes * 60 + rest)
    if period is not None:
        return float(int(period[1]) * (60 if period[2] == "minute" else 1))
    raise _unfit(words, part, what, "a duration such as 08:32, 00:08:32 or 5 minutes")


def yes(words: str, part: Part, what: str) -> bool:
    """`Yes` or `No`."""
    if words not in ("Yes", "No"):
        raise _unfit(words, part, what, "Yes or No")
    return words == "Yes"


def enumerated(words: str, kind: type[E], part: Part, what: str) -> E:
    """A member of `kind` by its value, capitalised."""
    return member(words, {entry.value.capitalize(): entry for entry in kind}, part, what)


def member(words: str, names: Mapping[str, M], part: Part, what: str) -> M:
    """What `names` calls `words`."""
    if words not in names:
        raise _unfit(words, part, what, f"one of {', '.join(names)}")
    return names[words]


def counts(items: Iterable[str], part: Part) -> tuple[int, ...]:
    """The failure counts of an iteration history, one line for each run (B40)."""
    found = []
    for item in items:
        run = _RUN.fullmatch(item)
        if run is None:
            raise _unfit(item, part, "Iteration History", "`Iteration 2: 1 failure`")
        found.append(int(run[1]))
    return tuple(found)


def _unfit(words: str, part: Part, what: str, wanted: str) -> UnreadableMessage:
    shown = words if len(words) <= 80 else f"{words[:80]}…"
    return UnreadableMessage(f"{part}: {what} is {shown!r}, not {wanted}")
