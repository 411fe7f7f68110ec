"""The injuries of a chaos run: how processes, clocks, Redis and networks are injured, and how an effect is detected.

It runs in the relay's event loop, and never blocks it.
"""

import asyncio
import json
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.machine.guard_program import is_running
from fixloop.store import keys
from fixloop.testing.clock import set_clock
from fixloop.testing.executions import Execution
from fixloop.testing.networks import HostNetwork
from fixloop.testing.plan import Boundary, Injury
from fixloop.testing.processes import MEMORY, Host, RedisServer, below, is_stopped, kill
from fixloop.testing.relay import Cut, Link

STOPPED_SECONDS: Final = 11.0
"""Two more than a lease."""
SWEEPER_STOPPED_SECONDS: Final = 3.0
"""One more than a sweeper's lock on a shard."""
RIVAL_SECONDS: Final = 3.0
DISOWNED_EVERY_SECONDS: Final = 0.1
RESTART_SECONDS: Final = 0.2
BLIP_SECONDS: Final = 1.0
FROZEN_SECONDS: Final = 4.0
"""Longer than any client waits for a reply."""
CUT_SECONDS: Final = (3.0, 11.0)
"""Alternately shorter and longer than a lease."""
CLOCK_OFF_SECONDS: Final = (30.0, -30.0)
"""Alternately ahead and behind."""
CLOCK_WRONG_SECONDS: Final = 11.0
FULL_SECONDS: Final = 2.0
HOST_AWAY_SECONDS: Final = 0.5
EFFECT_SECONDS: Final = 10.0
"""The time an injury may need to take effect."""
POLL_SECONDS: Final = 0.01

_OF_REDIS: Final = (Injury.RESTART_REDIS, Injury.FREEZE_REDIS, Injury.BLIP_REDIS, Injury.FULL_REDIS)
_OF_WORK: Final = (
    Injury.KILL_WORKER,
    Injury.KILL_CONTROL,
    Injury.STOP_WORKER,
    Injury.KILL_COMMAND,
    Injury.NO_ROOM,
)
"""Injuries of work processes, also of control on a host without it."""
_OF_SWEEPERS: Final = (Injury.KILL_SWEEPER, Injury.STOP_SWEEPER, Injury.RIVAL_SWEEPERS)
"""Injuries of sweepers, which bare Celery does not have."""


@dataclass(eq=False)
class AppliedInjury:
    injury: Injury
    ticket: str
    boundary: Boundary
    hosts: tuple[str, ...]
    """The hosts whose processes were cut off; empty if `pids` names the injured ones."""
    pids: frozenset[int]
    began: float
    """A time of `time.monotonic()`, which all processes of a machine share."""
    ended: float
    took_effect: bool = False
    """Whether its effect was observed: the process is dead, the message was lost, and so on."""
    skew_seconds: float = 0.0
    """The shift of its host's wall clock."""

    def line(self) -> str:
        fields = {
            "at": round(self.began, 3),
            "injury": self.injury.value,
            "ticket": self.ticket,
            "boundary": self.boundary.value,
            "hosts": self.hosts,
            "pids": sorted(self.pids),
            "seconds": round(self.ended - self.began, 3),
            "felt": self.took_effect,
        }
        return json.dumps(fields)


def record(injuries: Sequence[AppliedInjury], folder: Path, executions: Sequence[Execution]) -> None:
    """Write the injuries to a file in `folder`, once their effects are known."""
    check_clock_shifts(injuries, executions)
    (folder / "injuries").write_text("".join(f"{applied.line()}\n" for applied in injuries), encoding="utf-8")


def check_clock_shifts(injuries: Iterable[AppliedInjury], executions: Sequence[Execution]) -> None:
    """Set `took_effect` of wrong clocks: an agent that began in this time must have recorded the shift."""
    for applied in injuries:
        if applied.injury is Injury.WRONG_CLOCK:
            seen = [one.skew_seconds for one in executions if applied.began <= one.at <= applied.ended]
            applied.took_effect = any(abs(skew - applied.skew_seconds) < 1.0 for skew in seen)


class Takeover(NamedTuple):
    """A claim of a ticket that another process had."""

    ticket: str
    pid: int
    """The process that had it."""
    alive: bool
    """Whether that process was still running."""


class WrongClocks:
    """The shifted clocks of hosts; agents record their effect, see `check_clock_shifts`."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self._offsets = cycle(CLOCK_OFF_SECONDS)

    def shift(self, applied: AppliedInjury, host: str, clock: Path) -> Callable[[], None]:
        """Shift the clock of a host; returns the function that corrects it."""
        applied.skew_seconds = next(self._offsets)
        self.hosts.add(host)
        set_clock(clock, applied.skew_seconds)

        def mend() -> None:
            set_clock(clock, 0.0)
            self.hosts.discard(host)

        return mend


class InjuryActions:
    """Injures the process at the other end of a link, or what it needs."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        server: RedisServer,
        networks: Mapping[str, HostNetwork],
        missed: Callable[[AppliedInjury], object],
    ) -> None:
        """`missed` is called with an injury that had no effect, because another one interfered."""
        self.full: set[str] = set()
        """Hosts without room for artifacts."""
        self.redis_is_away = False
        self.swept: dict[str, dict[int, float]] = {}
        """By shard, the time of each process' last sweep."""
        self._hosts = hosts
        self._server = server
        self._networks = networks
        self._missed = missed
        self._clocks = WrongClocks()
        self._cuts = cycle(CUT_SECONDS)
        self._silences = cycle(CUT_SECONDS)
        self._levels = cycle((2, 1))
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> bool:
        return bool(self._tasks)

    def may(self, injury: Injury, link: Link) -> bool:
        """Whether the injury has a target now, and no such injury is under way."""
        if injury in _OF_REDIS:
            return not self.redis_is_away
        host = self._hosts[link.host]
        role = host.roles().get(link.pid)
        if injury is Injury.KILL_CONTROL and "control" in host.wanted:
            return role == "control"
        if injury in _OF_WORK:
            return role == "worker"
        if injury in _OF_SWEEPERS:
            return bool(host.find("sweep"))
        if injury in (Injury.CUT_NETWORK, Injury.SILENT_NETWORK):
            return role is not None and not self._networks[link.host].is_away
        return role is not None and not (injury is Injury.WRONG_CLOCK and link.host in self._clocks.hosts)

    def apply(self, applied: AppliedInjury, link: Link) -> None:
        """Inflict it; raises Cut if that ends this link."""
        match applied.injury:
            case Injury.KILL_WORKER | Injury.KILL_CONTROL:
                self._kill(applied, [link.pid])
                raise Cut
            case Injury.KILL_COMMAND:
                # Alternate between the command that works for the process and the guard above it.
                self._kill(applied, below(link.pid, next(self._levels)) or below(link.pid, 1))
            case Injury.KILL_SWEEPER:
                self._kill(applied, self._hosts[link.host].find("sweep"))
            case Injury.KILL_HOST:
                host = self._hosts[link.host]
                applied.pids = frozenset(host.kill())
                self.begin(self._confirm_deaths(applied))
                self._after(applied, HOST_AWAY_SECONDS, host.start)
                raise Cut
            case Injury.STOP_WORKER:
                self._stop(applied, [link.pid], STOPPED_SECONDS, lambda: True)
            case Injury.STOP_SWEEPER:

                def is_swept() -> bool:  # another sweeper has taken over a shard
                    swept = (each for shard in self.swept.values() for each in shard.items())
                    return any(at > applied.began and pid not in applied.pids for pid, at in swept)

                self._stop(applied, self._hosts[link.host].find("sweep"), SWEEPER_STOPPED_SECONDS, is_swept)
            case Injury.RIVAL_SWEEPERS:
                self.begin(self._disown_shards(applied))
            case Injury.WRONG_CLOCK:
                mend = self._clocks.shift(applied, link.host, self._hosts[link.host].clock)
                self._after(applied, CLOCK_WRONG_SECONDS, mend)
            case Injury.RESTART_REDIS | Injury.BLIP_REDIS | Injury.FREEZE_REDIS | Injury.FULL_REDIS:
                self._take_redis_away(applied)
            case Injury.CUT_NETWORK:
                self._interrupt(applied, link.host, next(self._cuts)).cut()
                raise Cut
            case Injury.SILENT_NETWORK:
                # The current request is still passed on; its reply is not.
                self._interrupt(applied, link.host, next(self._silences)).silence()
            case Injury.NO_ROOM:
                # Takes effect when a write is refused, see `Injurer`.
                self.full.add(link.host)
                self._after(applied, FULL_SECONDS, lambda: self.full.discard(link.host))
            case _:
                raise ValueError(f"{applied.injury} is not an injury of processes, clocks, Redis or networks")

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Processes.

    def _kill(self, applied: AppliedInjury, pids: Iterable[int]) -> None:
        applied.pids = frozenset(pids)
        kill(signal.SIGKILL, *applied.pids)
        self.begin(self._confirm_deaths(applied))

    def _stop(
        self, applied: AppliedInjury, pids: Iterable[int], seconds: float, is_missed: Callable[[], bool]
    ) -> None:
        applied.pids = frozenset(pids)
        kill(signal.SIGSTOP, *applied.pids)

        async def go_on() -> None:
            await asyncio.sleep(seconds)
            # Wait longer if those that could miss it were just killed and must restart first.
            while not is_missed() and time.monotonic() < applied.began + EFFECT_SECONDS:
                await asyncio.sleep(POLL_SECONDS)
            applied.took_effect = bool(applied.pids) and all(map(is_stopped, applied.pids)) and is_missed()
            kill(signal.SIGCONT, *applied.pids)
            self._end(applied)

        self.begin(go_on())

    async def _disown_shards(self, applied: AppliedInjury) -> None:
        # Wait longer if a sweeper was just killed and must restart first.
        while time.monotonic() < applied.began + RIVAL_SECONDS or not (
            applied.took_effect or time.monotonic() > applied.began + EFFECT_SECONDS
        ):
            for shard in range(keys.SHARDS):
                if not self.redis_is_away:
                    self._server.tell([b"HDEL", keys.shard_keys(shard).shard.encode(), b"sweeper"])
            await asyncio.sleep(DISOWNED_EVERY_SECONDS)
            both = [[pid for pid, at in shard.items() if at > applied.began] for shard in self.swept.values()]
            applied.took_effect = any(len(pids) > 1 for pids in both)
        self._end(applied)

    # Redis and the network.

    def _take_redis_away(self, applied: AppliedInjury) -> None:
        server, before = self._server, self._server.pid
        applied.hosts = tuple(self._hosts)
        self.redis_is_away = True
        match applied.injury:
            case Injury.FREEZE_REDIS:
                seconds = FROZEN_SECONDS
                kill(signal.SIGSTOP, server.pid)
            case Injury.FULL_REDIS:
                seconds = FULL_SECONDS
                server.bound("1")
            case _:
                seconds = BLIP_SECONDS if applied.injury is Injury.BLIP_REDIS else RESTART_SECONDS
                server.kill()

        def back() -> None:
            match applied.injury:
                case Injury.FREEZE_REDIS:
                    applied.took_effect = is_stopped(server.pid)
                    kill(signal.SIGCONT, server.pid)
                case Injury.FULL_REDIS:
                    applied.took_effect = server.tell([b"SET", b"chaos", b"full"]) is None
                    server.bound(MEMORY)
                case _:
                    server.start()
                    applied.took_effect = not is_running(before)
            self.redis_is_away = False

        self._after(applied, seconds, back)

    def _interrupt(self, applied: AppliedInjury, host: str, seconds: float) -> HostNetwork:
        """The network of a host, to cut or silence now; it is restored after `seconds`."""
        applied.hosts = (host,)
        network = self._networks[host]
        before = network.noticed

        def mend() -> None:
            applied.took_effect = network.noticed > before
            network.mend()

        self._after(applied, seconds, mend)
        return network

    def _after(self, applied: AppliedInjury, seconds: float, mend: Callable[[], object]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            mend()
            self._end(applied)

        self.begin(wait())

    async def _confirm_deaths(self, applied: AppliedInjury) -> None:
        give_up = time.monotonic() + EFFECT_SECONDS
        while any(map(is_running, applied.pids)) and time.monotonic() < give_up:
            await asyncio.sleep(POLL_SECONDS)
        applied.took_effect = bool(applied.pids) and not any(map(is_running, applied.pids))
        if not applied.took_effect:
            self._missed(applied)

    def _end(self, applied: AppliedInjury) -> None:
        applied.ended = time.monotonic()
        # Clock shifts are checked at the end of the run.
        if not applied.took_effect and applied.injury not in (Injury.WRONG_CLOCK, Injury.KILL_HOST):
            self._missed(applied)
