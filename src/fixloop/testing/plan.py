"""Plans a chaos run, with injuries at the k-th ticket of a step and at a boundary, and follows the plan.

The plan is pure and seeded: the same seed, workflows and number of injuries yield the same plan. It names events, not
times, so that fast and slow machines are injured at the same places.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import cycle, islice
from typing import Final, NamedTuple

from fixloop.errors import UsageError

COMMAND: Final = "command"
"""An additional name for each step whose work a separate command does."""

TRIES: Final = 500
EARLIEST, LATEST = 0.02, 0.9
"""Fractions of all tickets of a step: nothing is in progress before the first, and little after the second."""

MOST_FOR_A_TICKET: Final = 4
"""A fifth death of its process counts as the step's own fault (K40)."""


class Boundary(StrEnum):
    """A point in a step's life; the hint of a ticket is the message that offers it."""

    BEFORE_HINT = "before hint"
    AFTER_HINT = "after hint"
    BEFORE_CLAIM = "before claim"
    AFTER_CLAIM = "after claim"
    MID_WORK = "mid-work"
    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"


class Injury(StrEnum):
    """An injury; its value is the name in reports."""

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
    SILENT_NETWORK = "network silent"
    # For chats, which have no Redis.
    KILL_RUNNER = "runner of a chat killed"
    KILL_RUNNERS = "all runners of a host killed, with their agents"
    KILL_AGENT = "agent of a chat or its guard killed"
    STOP_RUNNER = "runner stopped while another goes on"
    RIVAL_RUNNERS = "two runners of one chat at once"
    FULL_DISK = "disk full for 2 s"


class Occasion(NamedTuple):
    """The `number`-th ticket of a `step` that reaches a boundary, counted from 1."""

    step: str
    boundary: Boundary
    number: int


Plan = Mapping[Occasion, Injury]
Place = tuple[str, Boundary]
"""A step, and where in its life."""
Places = Mapping[Injury, tuple[Place, ...]]
"""The places where each injury is possible."""

_DECK: Final = (
    *Injury,
    *(Injury.KILL_WORKER,) * 9,
    *(Injury.LOSE_CLAIM_REPLY, Injury.LOSE_COMMIT_REPLY, Injury.LOSE_SENT, Injury.LOSE_TAKEN),
    *(Injury.KILL_CONTROL, Injury.KILL_WORKER, Injury.DOUBLE_MESSAGES),
    *(Injury.KILL_RUNNER,) * 6,
)
"""One of each, and more of the common ones: the frequencies after every kind has occurred once."""


def plan(seed: int, injuries: int, tickets: Mapping[str, int], places: Places) -> Plan:
    """Plan the injuries, each at another occasion. Raises UsageError if `tickets`, undisturbed by step, are too few."""
    dice = random.Random(seed)
    made: dict[Occasion, Injury] = {}
    available = {one: [place for place in places.get(one, ()) if tickets.get(place[0])] for one in Injury}
    for injury in islice(_drawn(dice, [one for one in Injury if available[one]]), injuries):
        tried = islice(_occasions(dice, available[injury], tickets), TRIES)
        occasion = next((one for one in tried if one not in made), None)
        if occasion is None:
            break
        made[occasion] = injury
    if len(made) < injuries:
        steps = sum(tickets.values()) - tickets.get(COMMAND, 0)
        raise UsageError(f"{steps} steps are too few for {injuries} injuries; take more workflows")
    return made


def _drawn(dice: random.Random, kinds: list[Injury]) -> Iterator[Injury]:
    rest = dice.sample(kinds, len(kinds))
    while rest:
        yield from reversed(rest)
        deck = [one for one in _DECK if one in kinds]
        rest = dice.sample(deck, len(deck))


def _occasions(dice: random.Random, places: list[Place], tickets: Mapping[str, int]) -> Iterator[Occasion]:
    for step, boundary in cycle(dice.sample(places, len(places))) if places else ():
        count = tickets[step]
        first, last = 1 + int(EARLIEST * count), max(1, int(LATEST * count))
        yield Occasion(step, boundary, dice.randint(min(first, last), last))


class Schedule:
    """Follows a plan; an injury that is impossible at its occasion waits for the next one that fits."""

    def __init__(self, plan: Plan, places: Places) -> None:
        self._plan = plan
        self._places = places
        self._came: Counter[tuple[str, Boundary]] = Counter()
        self._seen: set[tuple[str, Boundary]] = set()
        self._put_off: list[Injury] = []
        self._hurt: Counter[str] = Counter()

    def due(
        self, ticket: str, steps: Sequence[str], boundary: Boundary, may: Callable[[Injury], bool]
    ) -> Injury | None:
        """The injury due for a ticket at a boundary, returned once; `steps`: all names of the ticket's step."""
        if self.has_come(ticket, boundary):
            return None
        self._seen.add((ticket, boundary))
        for step in steps:
            self._came[step, boundary] += 1
            planned = self._plan.get(Occasion(step, boundary, self._came[step, boundary]))
            if planned is not None:
                self._put_off.append(planned)
        if self._hurt[ticket] >= MOST_FOR_A_TICKET:
            return None
        for injury in self._put_off:
            if any((step, boundary) in self._places.get(injury, ()) for step in steps) and may(injury):
                self._put_off.remove(injury)
                self._hurt[ticket] += 1
                return injury
        return None

    def has_come(self, ticket: str, boundary: Boundary) -> bool:
        return (ticket, boundary) in self._seen

    def put_off(self, injury: Injury, ticket: str = "") -> None:
        """Repeat an injury without effect elsewhere; with `ticket`, it was not started there and does not count."""
        self._put_off.append(injury)
        if ticket:
            self._hurt[ticket] -= 1


_B = Boundary
_HOLDING: Final = (_B.BEFORE_CLAIM, _B.AFTER_CLAIM, _B.BEFORE_COMMIT, _B.AFTER_COMMIT)
_HINTING: Final = (_B.BEFORE_HINT, _B.AFTER_HINT)


def _worker_places(
    *,
    crew: tuple[str, ...],
    control: tuple[str, ...],
    hinted_by_work: tuple[str, ...],
    hinted_by_control: tuple[str, ...],
) -> Places:
    """Each step sends the next one's hint, and the caller the first; `crew`: steps that run in work processes."""
    amid = _at(crew, _B.MID_WORK)
    worked = (*_at(crew, *_HOLDING, _B.MID_WORK), *_at(hinted_by_work, *_HINTING))
    controlled = (*_at(control, *_HOLDING), *_at(hinted_by_control, *_HINTING))
    sent = _at((*hinted_by_work, *hinted_by_control), _B.BEFORE_HINT)
    every = (*crew, *control)
    particular: dict[Injury, tuple[Place, ...]] = {
        Injury.KILL_WORKER: worked,
        Injury.KILL_CONTROL: controlled,
        Injury.STOP_WORKER: _at(crew, *_HOLDING, _B.MID_WORK),
        Injury.BLIP_REDIS: amid,
        Injury.DOUBLE_MESSAGES: sent,
        Injury.LOSE_SENT: sent,
        Injury.LOSE_TAKEN: sent,
        Injury.LOSE_UNACKED: sent,
        Injury.KILL_COMMAND: ((COMMAND, _B.MID_WORK),),
        Injury.NO_ROOM: ((COMMAND, _B.MID_WORK),),
        Injury.LOSE_CLAIM_REPLY: _at(every, _B.AFTER_CLAIM),
        Injury.LOSE_COMMIT_REPLY: _at(every, _B.AFTER_COMMIT),
    }
    return dict.fromkeys(_ANYWHERE, (*worked, *controlled)) | particular


def _at(steps: tuple[str, ...], *boundaries: Boundary) -> tuple[Place, ...]:
    return tuple((step, boundary) for step in steps for boundary in boundaries)


_ANYWHERE: Final = (
    *(Injury.KILL_SWEEPER, Injury.STOP_SWEEPER, Injury.RIVAL_SWEEPERS, Injury.KILL_HOST),
    *(Injury.RESTART_REDIS, Injury.FREEZE_REDIS, Injury.FULL_REDIS),
    *(Injury.WRONG_CLOCK, Injury.CUT_NETWORK, Injury.SILENT_NETWORK),
)
"""The injuries of workers possible at any boundary."""

VALIDATION: Final = _worker_places(
    crew=("validate", "fix", "recheck", "confirm"),
    control=("report",),
    hinted_by_work=("report", "recheck"),
    hinted_by_control=("fix",),
)
CYCLE: Final = _worker_places(
    crew=("work",), control=("finish",), hinted_by_work=("work", "finish"), hinted_by_control=()
)
HANDOFF: Final = _worker_places(crew=("work",), control=(), hinted_by_work=("work",), hinted_by_control=())

_TURNS: Final = ("answer", "close")
_WRITING: Final = (_B.BEFORE_COMMIT, _B.AFTER_COMMIT, _B.BEFORE_HINT, _B.AFTER_HINT)
_EVERYWHERE: Final = _at(_TURNS, _B.AFTER_CLAIM, _B.MID_WORK, *_WRITING)

CHAT: Final[Places] = {
    Injury.KILL_RUNNER: _EVERYWHERE,
    Injury.KILL_RUNNERS: _EVERYWHERE,
    Injury.KILL_AGENT: _at(_TURNS, _B.MID_WORK),
    Injury.STOP_RUNNER: _at(("answer",), _B.MID_WORK, *_WRITING),
    Injury.RIVAL_RUNNERS: _at(("answer",), _B.AFTER_CLAIM, _B.MID_WORK),
    Injury.FULL_DISK: _at(_TURNS, _B.AFTER_CLAIM, _B.MID_WORK),
    Injury.WRONG_CLOCK: _at(("answer",), _B.AFTER_CLAIM),
}
"""A turn's boundaries in a chat's files: its role has read (claim); the message is written under another name, then
linked to its own (commit); the journal has it, and meta.yaml names the next owner (hint)."""
