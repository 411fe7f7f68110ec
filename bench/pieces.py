"""Profiles a step: the CPU time of each process, and of each piece of code in the work processes.

`FIXLOOP_CREW=bench.pieces:timed_crew` is the scripted crew; the process that creates it times its pieces, each without
nested ones, and reports to Redis. That costs time, so it is done after the comparison, not during it.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from redis import Redis

from fixloop.machine.guard_program import stat_fields
from fixloop.machine.process_name import role_of
from fixloop.testing import ScriptedCrew, Word
from fixloop.testing.processes import below

TOLD: Final = "bench:pieces"
TELL_SECONDS: Final = 0.2
TICKS: Final = os.sysconf("SC_CLK_TCK")


class _Pieces:
    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._inside: list[float] = []
        self._began = time.process_time()
        self._reported_at = 0.0
        self._client: Any = Redis.from_url(os.environ["FIXLOOP_STATE_URL"])

    def time(self, name: str, owner: Any, attribute: str) -> None:
        setattr(owner, attribute, self.timed(name, getattr(owner, attribute)))

    def timed(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **more: Any) -> Any:
            began = time.process_time()
            self._inside.append(0.0)
            try:
                return plain(*args, **more)
            finally:
                took = time.process_time() - began
                self._spent[name] = self._spent.get(name, 0.0) + took - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took

        return timed

    def tell(self) -> None:
        now = time.monotonic()
        if now - self._reported_at > TELL_SECONDS:
            self._reported_at = now
            whole = {"whole": time.process_time() - self._began}
            mapping = {f"{os.getpid()} {name}": spent for name, spent in {**self._spent, **whole}.items()}
            self._client.hset(TOLD, mapping=mapping)


class _TimedCrew(ScriptedCrew):
    """Reports at the start of each step, the only hook in a process."""

    def __init__(self, pieces: _Pieces) -> None:
        super().__init__()
        self._pieces = pieces

    def _begin(self, work: Any, word: Word) -> tuple[str, ...] | None:
        self._pieces.tell()
        return super()._begin(work, word)


def timed_crew() -> ScriptedCrew:
    """The factory that `FIXLOOP_CREW` names."""
    from celery import Task

    import fixloop.engine.engine
    import fixloop.store.entries
    import fixloop.store.replies
    from fixloop.protocol.state import State
    from fixloop.store.connection import Connection
    from workers.process import process

    pieces, engine = _Pieces(), process().engine
    engine.profile = engine.profile._replace(decide=pieces.timed("decide", engine.profile.decide))
    pieces.time("JSON read", State, "model_validate_json")
    pieces.time("entry and fields made", fixloop.engine.engine, "_commit")
    pieces.time("JSON written", State, "model_dump_json")
    pieces.time("JSON written", fixloop.store.entries, "_json")
    pieces.time("deflated", fixloop.store.entries, "pack")
    pieces.time("inflated", fixloop.store.replies, "state_of")
    pieces.time("round trips to the state", Connection, "call")
    pieces.time("next hop published", Task, "apply_async")
    return _TimedCrew(pieces)


def told_pieces(client: Any) -> dict[str, float]:
    """CPU seconds by piece of all processes that reported; `Celery and the rest` is the remainder."""
    found: dict[str, float] = {}
    for name, spent in client.hgetall(TOLD).items():
        piece = name.decode().partition(" ")[2]
        found[piece] = found.get(piece, 0.0) + float(spent)
    whole = found.pop("whole", 0.0)
    return {**found, "Celery and the rest": whole - sum(found.values())} if whole else {}


def cpu_by_role(supervisor: int, others: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds so far of a worker's processes by role, and of `others` by name."""
    children, grandchildren = below(supervisor, 1), below(supervisor, 2)
    found = {name: cpu_seconds([pid]) for name, pid in others.items()}
    found["worker, supervisor or main"] = cpu_seconds([supervisor])
    for role in ("sweep", "control", "work"):
        pids = [pid for pid in children if role_of(pid) == role]
        if pids:
            found[f"worker, {role} main"] = cpu_seconds(pids)
    # The bare worker's processes are its children; fixloop's are grandchildren of the supervisor.
    found["work processes"] = cpu_seconds(grandchildren or children)
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU seconds so far of the processes that still run, without those of their children."""
    return sum(int(ticks) for pid in pids for ticks in stat_fields(str(pid))[11:13]) / TICKS
