"""How processes, clocks, Redis and the network are hurt: one blow for each injury, and what shows that it was felt.

Runs in the relay's event loop, and never waits in it.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import cycle
from typing import Any, Final

from fixloop.store import keys
from fixloop.testing.clock import set_clock
from fixloop.testing.lines import Line
from fixloop.testing.plan import Injury
from fixloop.testing.processes import Host, RedisServer, below, is_running, is_stopped, kill
from fixloop.testing.relay import Cut, Link
from fixloop.testing.wounds import Wound

STOPPED_SECONDS: Final = 11.0
"""Two more than a lease."""
SWEEPER_STOPPED_SECONDS: Final = 3.0
"""One more than a sweeper has a shard to itself."""
RIVAL_SECONDS: Final = 3.0
DISOWNED_EVERY_SECONDS: Final = 0.1
RESTART_SECONDS: Final = 0.2
BLIP_SECONDS: Final = 1.0
FROZEN_SECONDS: Final = 4.0
"""Longer than any client waits for an answer."""
CUT_SECONDS: Final = (3.0, 11.0)
"""In turn: shorter and longer than a lease."""
CLOCK_OFF_SECONDS: Final = (30.0, -30.0)
"""In turn: ahead and behind."""
CLOCK_WRONG_SECONDS: Final = 11.0
FULL_SECONDS: Final = 2.0
HOST_AWAY_SECONDS: Final = 0.5
FELT_SECONDS: Final = 10.0
"""How long it may take until a blow is felt."""
POLL_SECONDS: Final = 0.01


class Blows:
    """Hurts whoever is at the other end of a link, or what it needs."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        server: RedisServer,
        lines: Mapping[str, Line],
        missed: Callable[[Wound], object],
    ) -> None:
        """
        Nobody is hurt yet.

        Args:
            missed: called with a wound that nobody felt, because another injury came in between.
        """
        self.full: set[str] = set()
        """Hosts for which there is no room for artifacts."""
        self.redis_is_away = False
        self.swept: dict[str, dict[int, float]] = {}
        """By shard, when which process last swept it."""
        self._hosts = hosts
        self._server = server
        self._lines = lines
        self._missed = missed
        self._wrong: set[str] = set()
        self._cuts = cycle(CUT_SECONDS)
        self._silences = cycle(CUT_SECONDS)
        self._offsets = cycle(CLOCK_OFF_SECONDS)
        self._levels = cycle((2, 1))
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> bool:
        """Whether something that was hurt is not whole again."""
        return bool(self._tasks)

    def may(self, injury: Injury, link: Link) -> bool:
        """Whether there is somebody to be hurt now, and nothing of the kind is under way."""
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
            return role is not None and not self._lines[link.host].is_away
        return role is not None and not (injury is Injury.WRONG_CLOCK and link.host in self._wrong)

    def strike(self, wound: Wound, link: Link) -> None:
        """
        Do the injury of `wound`.

        Raises:
            Cut: this link is gone with it.
        """
        _BLOWS[wound.injury](self, wound, link)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that takes time."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Processes.

    def _kill(self, wound: Wound, link: Link) -> None:
        self._killed(wound, [link.pid])
        raise Cut

    def _kill_sweeper(self, wound: Wound, link: Link) -> None:
        self._killed(wound, self._hosts[link.host].find("sweep"))

    def _kill_command(self, wound: Wound, link: Link) -> None:
        """In turn: the command that works for the process, and the guard above it."""
        levels = next(self._levels)
        self._killed(wound, below(link.pid, levels) or below(link.pid, 1))

    def _kill_host(self, wound: Wound, link: Link) -> None:
        host = self._hosts[link.host]
        wound.pids = frozenset(host.kill())
        self._feel(wound, lambda: _are_gone(wound.pids))
        self._later(wound, HOST_AWAY_SECONDS, host.start)
        raise Cut

    def _killed(self, wound: Wound, pids: Iterable[int]) -> None:
        wound.pids = frozenset(pids)
        for pid in wound.pids:
            kill(pid, signal.SIGKILL)
        self._feel(wound, lambda: _are_gone(wound.pids))

    def _stop(self, wound: Wound, link: Link) -> None:
        self._stopped(wound, [link.pid], STOPPED_SECONDS, lambda: True)

    def _stop_sweeper(self, wound: Wound, link: Link) -> None:
        stopped = self._hosts[link.host].find("sweep")
        self._stopped(
            wound, stopped, SWEEPER_STOPPED_SECONDS, lambda: bool(self._sweepers(wound) - wound.pids)
        )

    def _stopped(
        self, wound: Wound, pids: Iterable[int], seconds: float, is_missed: Callable[[], bool]
    ) -> None:
        wound.pids = frozenset(pids)
        for pid in wound.pids:
            kill(pid, signal.SIGSTOP)

        def go_on() -> None:
            wound.is_felt = bool(wound.pids) and all(map(is_stopped, wound.pids)) and is_missed()
            for pid in wound.pids:
                kill(pid, signal.SIGCONT)

        self._later(wound, seconds, go_on)

    def _sweepers(self, wound: Wound) -> set[int]:
        """Who swept a shard since it was done."""
        return {pid for shard in self.swept.values() for pid, at in shard.items() if at > wound.began}

    # Sweepers and clocks.

    def _rival(self, wound: Wound, link: Link) -> None:
        """No shard is any sweeper's for a while, so that all of them sweep all."""
        self.begin(self._disown(wound))

    async def _disown(self, wound: Wound) -> None:
        began = wound.began
        # Longer where one of them was killed just before, and has to start first.
        while time.monotonic() < began + RIVAL_SECONDS or not (
            wound.is_felt or time.monotonic() > began + FELT_SECONDS
        ):
            for shard in range(keys.SHARDS):
                if not self.redis_is_away:
                    self._server.tell([b"HDEL", keys.shard_keys(shard).shard.encode(), b"sweeper"])
            await asyncio.sleep(DISOWNED_EVERY_SECONDS)
            both = [[pid for pid, at in shard.items() if at > began] for shard in self.swept.values()]
            wound.is_felt = any(len(pids) > 1 for pids in both)
        self._over(wound)

    def _shift_clock(self, wound: Wound, link: Link) -> None:
        """Whether it is felt shows in what agents write down of their clock, see `verdict`."""
        path = self._hosts[link.host].clock
        wound.skew_seconds = next(self._offsets)
        self._wrong.add(link.host)
        set_clock(path, wound.skew_seconds)

        def mend() -> None:
            set_clock(path, 0.0)
            self._wrong.discard(link.host)

        self._later(wound, CLOCK_WRONG_SECONDS, mend)

    # Redis and the network.

    def _restart_redis(self, wound: Wound, link: Link) -> None:
        self._away_with_redis(wound, RESTART_SECONDS)

    def _blip(self, wound: Wound, link: Link) -> None:
        self._away_with_redis(wound, BLIP_SECONDS)

    def _away_with_redis(self, wound: Wound, seconds: float) -> None:
        wound.hosts = tuple(self._hosts)
        self.redis_is_away = True
        before = self._server.pid
        self._server.kill()

        def back() -> None:
            self._server.start()
            wound.is_felt = not is_running(before)
            self.redis_is_away = False

        self._later(wound, seconds, back)

    def _freeze(self, wound: Wound, link: Link) -> None:
        wound.hosts = tuple(self._hosts)
        self.redis_is_away = True
        self._server.signal(signal.SIGSTOP)

        def thaw() -> None:
            wound.is_felt = is_stopped(self._server.pid)
            self._server.signal(signal.SIGCONT)
            self.redis_is_away = False

        self._later(wound, FROZEN_SECONDS, thaw)

    def _cut(self, wound: Wound, link: Link) -> None:
        line = self._lines[link.host]
        self._interrupted(wound, link, line, next(self._cuts))
        line.cut()
        raise Cut

    def _silence(self, wound: Wound, link: Link) -> None:
        """The request that is here still passes; its answer does not."""
        line = self._lines[link.host]
        self._interrupted(wound, link, line, next(self._silences))
        line.silence()

    def _interrupted(self, wound: Wound, link: Link, line: Line, seconds: float) -> None:
        wound.hosts = (link.host,)
        before = line.noticed

        def mend() -> None:
            wound.is_felt = line.noticed > before
            line.mend()

        self._later(wound, seconds, mend)

    def _fill(self, wound: Wound, link: Link) -> None:
        """Felt when a write is refused, see `Injurer`."""
        self.full.add(link.host)
        self._later(wound, FULL_SECONDS, lambda: self.full.discard(link.host))

    def _fill_redis(self, wound: Wound, link: Link) -> None:
        """Nobody may write anything."""
        wound.hosts = tuple(self._hosts)
        self.redis_is_away = True
        self._server.fill()

        def empty() -> None:
            wound.is_felt = self._server.tell([b"SET", b"chaos", b"full"]) is None
            self._server.room()
            self.redis_is_away = False

        self._later(wound, FULL_SECONDS, empty)

    # In time.

    def _later(self, wound: Wound, seconds: float, mend: Callable[[], object]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            mend()
            self._over(wound)

        self.begin(wait())

    def _feel(self, wound: Wound, is_felt: Callable[[], bool]) -> None:
        async def wait() -> None:
            give_up = time.monotonic() + FELT_SECONDS
            while not is_felt() and time.monotonic() < give_up:
                await asyncio.sleep(POLL_SECONDS)
            wound.is_felt = is_felt()
            if not wound.is_felt:
                self._missed(wound)

        self.begin(wait())

    def _over(self, wound: Wound) -> None:
        wound.ended = time.monotonic()
        # What agents saw of their clock is read at the end.
        if not wound.is_felt and wound.injury not in (Injury.WRONG_CLOCK, Injury.KILL_HOST):
            self._missed(wound)


def _are_gone(pids: frozenset[int]) -> bool:
    return bool(pids) and not any(map(is_running, pids))


_OF_REDIS: Final = (Injury.RESTART_REDIS, Injury.FREEZE_REDIS, Injury.BLIP_REDIS, Injury.FULL_REDIS)
_OF_WORK: Final = (
    Injury.KILL_WORKER,
    Injury.KILL_CONTROL,
    Injury.STOP_WORKER,
    Injury.KILL_COMMAND,
    Injury.NO_ROOM,
)
"""Of those of control, on a host without it."""
_OF_SWEEPERS: Final = (Injury.KILL_SWEEPER, Injury.STOP_SWEEPER, Injury.RIVAL_SWEEPERS)
"""Bare Celery has none."""
_BLOWS: Final[Mapping[Injury, Callable[[Blows, Wound, Link], None]]] = {
    Injury.KILL_WORKER: Blows._kill,
    Injury.KILL_CONTROL: Blows._kill,
    Injury.KILL_COMMAND: Blows._kill_command,
    Injury.KILL_SWEEPER: Blows._kill_sweeper,
    Injury.KILL_HOST: Blows._kill_host,
    Injury.STOP_WORKER: Blows._stop,
    Injury.STOP_SWEEPER: Blows._stop_sweeper,
    Injury.RIVAL_SWEEPERS: Blows._rival,
    Injury.WRONG_CLOCK: Blows._shift_clock,
    Injury.RESTART_REDIS: Blows._restart_redis,
    Injury.BLIP_REDIS: Blows._blip,
    Injury.FREEZE_REDIS: Blows._freeze,
    Injury.CUT_NETWORK: Blows._cut,
    Injury.SILENT_NETWORK: Blows._silence,
    Injury.NO_ROOM: Blows._fill,
    Injury.FULL_REDIS: Blows._fill_redis,
}
