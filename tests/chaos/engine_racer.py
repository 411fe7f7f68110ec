"""Racers for what only one may get: each sends an event to one workflow at the same moment.

As a program: some of many in one process, given their prizes on stdin, with their answers on stdout.
"""

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Final

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import Profile
from fixloop.errors import RefusedError
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import HandoffAccepted, LockAcquired, StateWritten
from fixloop.profiles.handoff.routes import AGENTS
from fixloop.protocol.event import Event
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from tests.fixtures.cycle_stage import reported

Race = tuple[Profile[Any], Callable[[int, str], Event]]


def name_of(number: int) -> str:
    """The agent that a racer acts for; several act for one."""
    return AGENTS[number % len(AGENTS)]


RACES: Final[dict[str, Race]] = {
    "handoff": (HANDOFF, lambda number, what: HandoffAccepted(sender="builder", message_id=what)),
    "lock": (HANDOFF, lambda number, what: LockAcquired(sender=name_of(number), resource=what)),
    "written field": (
        HANDOFF,
        lambda number, what: StateWritten(sender=name_of(number), field=what, value=number),
    ),
    "reported field": (CYCLE, lambda number, what: reported("ra", requirements=f"{what} {number}")),
}
"""The prize of a race: the profile, and the event of racer `number`."""


def attempt(store: Store, race: str, workflow: str, number: int, what: str) -> str:
    """The answer to racer `number`."""
    profile, event = RACES[race]
    engine = ProfileEngine(store, profile)
    try:
        applied = engine.apply(workflow, event(number, what), operation=f"{race}/{number}")
    except RefusedError as refused:
        return f"refused: {refused}"
    return str(getattr(applied.outcome, "answer", "") or applied.status)


def main(url: str, numbers: Sequence[int]) -> None:
    """Race for each prize that stdin names."""
    together = Barrier(len(numbers))
    stores = {number: RedisStore(url) for number in numbers}

    def race(number: int, line: str) -> str:
        kind, workflow, what = json.loads(line)
        together.wait(90)
        return attempt(stores[number], kind, workflow, number, what)

    with ThreadPoolExecutor(len(numbers)) as threads:
        list(threads.map(lambda number: stores[number].ping(), numbers))
        print("ready", flush=True)
        for line in sys.stdin:
            answers = threads.map(race, numbers, [line] * len(numbers))
            print(json.dumps(dict(zip(numbers, answers, strict=True))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(number) for number in sys.argv[2:]])
