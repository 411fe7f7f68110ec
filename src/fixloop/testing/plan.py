"""The plan of a chaos run: which injury at the k-th ticket of a kind, at which boundary of its step.

Pure and seeded: the same seed, workflows and number of injuries make the same plan. It names events, not times, so
that a faster machine is injured at the same places as a slow one.
"""

import random
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import cycle, islice
from typing import Final, NamedTuple

from fixloop.errors import UsageError

__all__ = ["COMMAND", "MOST_FOR_A_TICKET", "Boundary", "Injury", "Occasion", "Plan", "is_place", "plan"]

COMMAND: Final = "command"
"""What a step is called, too, when a command of its own does its work."""

MOST_FOR_A_TICKET: Final = 4
"""A fifth death of its process is taken for the step's own fault (K40)."""
TRIES: Final = 500
EARLIEST, LATEST = 0.02, 0.9
"""Of all tickets of a kind: nothing is in progress before the one, and little after the other."""


class Boundary(StrEnum):
    """A place in the life of a step; the hint of a ticket is the message that offers it."""

    BEFORE_HINT = "before hint"
    AFTER_HINT = "after hint"
    BEFORE_CLAIM = "before claim"
    AFTER_CLAIM = "after claim"
    MID_WORK = "mid-work"
    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"


class Injury(StrEnum):
    """What is done; the value is how the report calls it."""

    KILL_WORKER = "work process killed"
    KILL_CONTROL = "control killed"
    KILL_SWEEPER = "sweeper killed"
    KILL_COMMAND = "fixer or check killed"
    KILL_HOST = "supervisor and all its children killed"
    STOP_WORKER = "work process stopped for longer than a lease"
    RESTART_REDIS = "Redis killed and started again"
    FREEZE_REDIS = "Redis frozen"
    BLIP_REDIS = "Redis away for 1 s with a task in flight"
    DOUBLE_MESSAGES = "next 20 messages delivered twice"
    LOSE_SENT = "message dropped when sent"
    LOSE_TAKEN = "message dropped when taken, before unacked"
    LOSE_UNACKED = "message dropped with its worker, after unacked"
    STOP_SWEEPER = "sweeper stopped until another has its work"
    RIVAL_SWEEPERS = "two sweepers at once"
    WRONG_CLOCK = "clock of a worker 30 s off"
    NO_ROOM = "no room for artifacts"
    FULL_REDIS = "Redis full for 2 s"
    LOSE_CLAIM_REPLY = "reply to a claim lost"
    LOSE_COMMIT_REPLY = "reply to a commit lost"
    CUT_NETWORK = "network cut"


class Occasion(NamedTuple):
    """The `number`-th ticket of a `step` that comes to a boundary, counted from 1."""

    step: str
    boundary: Boundary
    number: int


Plan = Mapping[Occasion, Injury]

_CREW: Final = ("validate", "fix", "recheck", "confirm")
_B = Boundary
_HOLDING: Final = (_B.BEFORE_CLAIM, _B.AFTER_CLAIM, _B.BEFORE_COMMIT, _B.AFTER_COMMIT)
_HINTING: Final = (_B.BEFORE_HINT, _B.AFTER_HINT)
# Whoever finishes a ticket sends the hint of the next: a report is hinted by a work process, a fix by control. The
# first ticket of a workflow is hinted by whoever starts it, who is not injured.
_BY_WORK: Final = (
    *((step, boundary) for step in _CREW for boundary in (*_HOLDING, _B.MID_WORK)),
    *((step, boundary) for step in ("report", "recheck") for boundary in _HINTING),
)
_BY_CONTROL: Final = (
    *(("report", boundary) for boundary in _HOLDING),
    *(("fix", boundary) for boundary in _HINTING),
)
_ANYWHERE: Final = (*_BY_WORK, *_BY_CONTROL)
_AMID: Final = tuple((step, _B.MID_WORK) for step in _CREW)
_SENT: Final = tuple((step, _B.BEFORE_HINT) for step in ("report", "fix", "recheck"))
_STEPS: Final = (*_CREW, "report")

_PLACES: Final[Mapping[Injury, tuple[tuple[str, Boundary], ...]]] = {
    Injury.KILL_WORKER: _BY_WORK,
    Injury.KILL_CONTROL: _BY_CONTROL,
    Injury.STOP_WORKER: tuple(place for place in _BY_WORK if place[1] in (*_HOLDING, _B.MID_WORK)),
    Injury.BLIP_REDIS: _AMID,
    Injury.DOUBLE_MESSAGES: _SENT,
    Injury.LOSE_SENT: _SENT,
    Injury.LOSE_TAKEN: _SENT,
    Injury.LOSE_UNACKED: _SENT,
    Injury.KILL_COMMAND: ((COMMAND, _B.MID_WORK),),
    Injury.NO_ROOM: ((COMMAND, _B.MID_WORK),),
    Injury.LOSE_CLAIM_REPLY: tuple((step, _B.AFTER_CLAIM) for step in _STEPS),
    Injury.LOSE_COMMIT_REPLY: tuple((step, _B.AFTER_COMMIT) for step in _STEPS),
}
"""Where an injury may be done; one that is not here, anywhere."""

_DECK: Final = (
    *Injury,
    *(Injury.KILL_WORKER,) * 9,
    *(Injury.LOSE_CLAIM_REPLY, Injury.LOSE_COMMIT_REPLY, Injury.LOSE_SENT, Injury.LOSE_TAKEN),
    *(Injury.KILL_CONTROL, Injury.KILL_WORKER, Injury.DOUBLE_MESSAGES),
)
"""One of each and more of the usual: how often each comes once every kind was there."""


def plan(seed: int, injuries: int, tickets: Mapping[str, int]) -> Plan:
    """
    So many injuries, each at another occasion.

    Args:
        tickets: by step, how many the undisturbed workflows have in all; `COMMAND` are those of any step that a
            command does.

    Raises:
        UsageError: there are too few tickets for so many injuries.
    """
    dice = random.Random(seed)
    made: dict[Occasion, Injury] = {}
    for injury in islice(_drawn(dice, [one for one in Injury if _places(one, tickets)]), injuries):
        places = _places(injury, tickets)
        tried = islice(_occasions(dice, places, tickets), TRIES)
        occasion = next((one for one in tried if one not in made), None)
        if occasion is None:
            break
        made[occasion] = injury
    if len(made) < injuries:
        steps = sum(tickets.values()) - tickets.get(COMMAND, 0)
        raise UsageError(f"{steps} steps are too few for {injuries} injuries; take more workflows")
    return made


def is_place(injury: Injury, step: str, boundary: Boundary) -> bool:
    """Whether an injury may be done at this boundary of this step."""
    return (step, boundary) in _PLACES.get(injury, _ANYWHERE)


def _places(injury: Injury, tickets: Mapping[str, int]) -> list[tuple[str, Boundary]]:
    """Where it may be done in these tickets."""
    return [place for place in _PLACES.get(injury, _ANYWHERE) if tickets.get(place[0])]


def _drawn(dice: random.Random, kinds: list[Injury]) -> Iterator[Injury]:
    """For ever: one of each kind, then deck after deck, each shuffled."""
    rest = dice.sample(kinds, len(kinds))
    while rest:
        yield from reversed(rest)
        deck = [one for one in _DECK if one in kinds]
        rest = dice.sample(deck, len(deck))


def _occasions(
    dice: random.Random, places: list[tuple[str, Boundary]], tickets: Mapping[str, int]
) -> Iterator[Occasion]:
    """Some of those there are, at random; the same may come again."""
    for step, boundary in cycle(dice.sample(places, len(places))) if places else ():
        count = tickets[step]
        first, last = 1 + int(EARLIEST * count), max(1, int(LATEST * count))
        yield Occasion(step, boundary, dice.randint(min(first, last), last))
