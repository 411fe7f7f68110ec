"""The values that stand in a message as words: numbers, durations, words of an enumeration, markers, ids.

Every function but `read_id` takes what stands there, still escaped, and the part it stands in; what does not fit raises
UnreadableMessage and names both.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES
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


class MessageId(NamedTuple):
    """What a visible id says."""

    prefix: str
    issue: int
    subject: str
    """A specialist, an operation, an error type or an agent; empty where the id has none (A27, A31)."""
    iteration: int | None
    """None where the id ends in a time."""
    stamp: str
    """`20260301T103001Z`, with `-2` where it is the second of its second; empty where the id has none."""


_ID: Final = re.compile(
    r"(?P<prefix>[A-Z]+)-(?P<issue>-?[0-9]+)(?:-(?P<subject>.+?))?"
    r"-(?:(?P<stamp>[0-9]{8}T[0-9]{6}Z(?:-[0-9]+)?)|(?P<iteration>[0-9]+))",
    re.DOTALL,
)
_OF_A_SPECIALIST: Final = frozenset({"DETECT", "VFR", "REVAL", "REVALRES", "SUCCESS", "ESC"})
_LONGEST: Final = 300


def read_id(message_id: str) -> MessageId:
    """
    The parts of `message_id`: read from the right, because specialists' names contain hyphens (K3).

    Raises:
        UsageError: it is no id, or names no specialist where its type does.
    """
    found = _ID.fullmatch(message_id) if len(message_id) <= _LONGEST else None
    if found is None:
        raise UsageError(f"{message_id[:80]!r} is no message id such as VFR-47-test-runner-1")
    subject = found["subject"] or ""
    if found["prefix"] in _OF_A_SPECIALIST and subject not in NAMES:
        raise UsageError(f"{message_id!r} names no specialist; the six are {', '.join(NAMES)}")
    iteration = int(found["iteration"]) if found["iteration"] else None
    return MessageId(found["prefix"], int(found["issue"]), subject, iteration, found["stamp"] or "")
