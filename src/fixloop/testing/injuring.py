"""Doing what the plan says: the witness of all links knows which ticket is at which boundary, and injures its worker.

Runs in the relay's event loop. What it did, and what it saw, is there to be read when the run is over.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fixloop.testing.plan import MOST_FOR_A_TICKET, Boundary, Injury, Occasion, Plan, is_place
from fixloop.testing.processes import Host, RedisServer, is_running, kill
from fixloop.testing.relay import Cut, Link, Relay
from fixloop.testing.wire import (
    NOTHING_TAKEN,
    PUSHED,
    Request,
    answer_to,
    encoded,
    step_of,
    ticket_in,
    twice,
)
from fixloop.testing.wounds import Takeover, Wound

__all__ = ["Injurer"]

STOPPED_SECONDS: Final = 11.0
"""Two more than a lease."""
SWEEPER_STOPPED_SECONDS: Final = 3.0
"""One more than a sweeper has a shard to itself."""
RESTART_SECONDS: Final = 0.2
BLIP_SECONDS: Final = 1.0
FROZEN_SECONDS: Final = 4.0
"""Longer than any client waits for an answer."""
CUT_SECONDS: Final = (3.0, 11.0)
"""In turn: shorter and longer than a lease."""
HOST_AWAY_SECONDS: Final = 0.5
DOUBLED: Final = 20
BEGUN_SECONDS: Final = 3.0
"""How long a crew may take from the claim to its first act; then the step has no midst."""
_BEFORE: Final = {
    "hint": Boundary.BEFORE_HINT,
    "claim": Boundary.BEFORE_CLAIM,
    "commit": Boundary.BEFORE_COMMIT,
}
_AFTER: Final = {"hint": Boundary.AFTER_HINT, "claim": Boundary.AFTER_CLAIM, "commit": Boundary.AFTER_COMMIT}
_OF_MESSAGES: Final = (Injury.LOSE_SENT, Injury.LOSE_TAKEN, Injury.LOSE_UNACKED)


class Injurer:
    """Does the injuries of a plan, each when its ticket comes to its boundary."""

    def __init__(self, plan: Plan, hosts: Mapping[str, Host], server: RedisServer, executions: Path) -> None:
        self.relay = Relay(server.socket, self)
        self.wounds: list[Wound] = []
        self.takeovers: list[Takeover] = []
        self.answers: Counter[str] = Counter()
        """What claims were answered with."""
        self.host_of: dict[int, str] = {}
        self._plan = plan
        self._hosts = hosts
        self._server = server
        self._executions = executions
        self._came: Counter[tuple[str, Boundary]] = Counter()
        self._seen: set[tuple[str, Boundary]] = set()
        self._due: list[Injury] = []
        self._hurt: Counter[str] = Counter()
        self._holders: dict[str, int] = {}
        self._doomed: dict[str, Injury] = {}
        self._doubling = 0
        self._redis_is_away = False
        self._cuts = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def arm(self, plan: Plan) -> None:
        """From now on, go by `plan`; what came by before is not counted."""
        self._plan = plan
        self._came.clear()
        self.answers.clear()

    @property
    def under_way(self) -> bool:
        """Whether something that was injured is not whole again."""
        return bool(self._tasks)

    # What passes by.

    def sent(self, link: Link, requests: list[Request], data: bytes) -> tuple[bytes, bytes]:
        """See `Witness`."""
        self.host_of[link.pid] = link.host
        for request in requests:
            boundary = _BEFORE.get(request.kind)
            if boundary is not None and step_of(request.ticket):
                self._come(request.ticket, boundary, link)
        link.pops = link.pops or any(request.kind == "pop" for request in requests)
        if self._is_lost(requests, data):
            return b"", PUSHED
        if self._doubling:
            self._double(requests)
        link.unanswered += [request for request in requests if request.kind != "pop"]
        return data, b""

    def answered(self, link: Link, data: bytes) -> bytes:
        """See `Witness`."""
        requests, link.unanswered = link.unanswered, []
        for request in requests:
            status = answer_to(data)
            if request.kind == "claim":
                self._claimed(request.ticket, status, link)
            elif request.kind == "unacked":
                self._unacked(request.ticket, link)
            if step_of(request.ticket) and (request.kind == "hint" or status == "ok"):
                self._come(request.ticket, _AFTER[request.kind], link)
            if request.kind == "claim" and status == "ok":
                self._come(request.ticket, Boundary.MID_WORK, link)
        return self._taken(data) if link.pops and self._doomed else data

    def _claimed(self, ticket: str, status: str, link: Link) -> None:
        self.answers[status] += 1
        if status != "ok":
            return
        before = self._holders.get(ticket)
        if before is not None and before != link.pid:
            self.takeovers.append(Takeover(ticket, before, is_running(before)))
        self._holders[ticket] = link.pid

    # When it is time.

    def _come(self, ticket: str, boundary: Boundary, link: Link) -> None:
        """A ticket is at a boundary: injure, if that is planned for it or was put off."""
        if (ticket, boundary) in self._seen:
            return
        self._seen.add((ticket, boundary))
        place = step_of(ticket), boundary
        self._came[place] += 1
        planned = self._plan.get(Occasion(*place, self._came[place]))
        if planned is not None:
            self._due.append(planned)
        for injury in self._due:
            if is_place(injury, *place) and self._may(injury, ticket, link):
                self._due.remove(injury)
                self._hurt[ticket] += 1
                if boundary is Boundary.MID_WORK:
                    self._do(self._amid(injury, ticket, link))
                else:
                    self._injure(injury, ticket, boundary, link)
                return

    def _may(self, injury: Injury, ticket: str, link: Link) -> bool:
        """Whether now; else it is put off to the next ticket at such a place."""
        if self._hurt[ticket] >= MOST_FOR_A_TICKET:
            return False
        if injury in (Injury.RESTART_REDIS, Injury.FREEZE_REDIS, Injury.BLIP_REDIS):
            return not self._redis_is_away
        role = self._hosts[link.host].roles().get(link.pid)
        if injury is Injury.KILL_CONTROL and "control" in self._hosts[link.host].wanted:
            return role == "control"
        if injury is Injury.KILL_CONTROL:
            return role == "worker"
        if injury in (Injury.KILL_WORKER, Injury.STOP_WORKER):
            return role == "worker"
        return role is not None

    async def _amid(self, injury: Injury, ticket: str, link: Link) -> None:
        """Wait until the crew has begun."""
        begun = f"{ticket} ".encode()
        give_up = time.monotonic() + BEGUN_SECONDS
        while time.monotonic() < give_up:
            if self._executions.exists() and begun in self._executions.read_bytes():
                break
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        with suppress(Cut):
            self._injure(injury, ticket, Boundary.MID_WORK, link)

    # What is done.

    def _injure(self, injury: Injury, ticket: str, boundary: Boundary, link: Link) -> None:
        """
        Do it.

        Raises:
            Cut: this link is gone with it.
        """
        wound = Wound(injury, ticket, boundary, (), frozenset(), time.monotonic(), time.monotonic())
        self.wounds.append(wound)
        if injury in _OF_MESSAGES:
            self._doomed[ticket] = injury
        elif injury is Injury.DOUBLE_MESSAGES:
            self._doubling += DOUBLED
        elif injury in (Injury.LOSE_CLAIM_REPLY, Injury.LOSE_COMMIT_REPLY):
            raise Cut
        else:
            _DONE[injury](self, wound, link)

    def _kill(self, wound: Wound, link: Link) -> None:
        wound.pids = frozenset({link.pid})
        kill(link.pid, signal.SIGKILL)
        raise Cut

    def _stop(self, wound: Wound, link: Link) -> None:
        self._pause_process(wound, link.pid, STOPPED_SECONDS)

    def _kill_sweeper(self, wound: Wound, link: Link) -> None:
        found = self._hosts[link.host].find("sweep")
        wound.pids = frozenset(found)
        for pid in found:
            kill(pid, signal.SIGKILL)

    def _stop_sweeper(self, wound: Wound, link: Link) -> None:
        for pid in self._hosts[link.host].find("sweep"):
            self._pause_process(wound, pid, SWEEPER_STOPPED_SECONDS)

    def _kill_host(self, wound: Wound, link: Link) -> None:
        host = self._hosts[link.host]
        wound.pids = frozenset(host.kill())
        self._later(wound, HOST_AWAY_SECONDS, host.start)
        raise Cut

    def _restart_redis(self, wound: Wound, link: Link) -> None:
        self._away_with_redis(wound, RESTART_SECONDS)

    def _blip(self, wound: Wound, link: Link) -> None:
        self._away_with_redis(wound, BLIP_SECONDS)

    def _freeze(self, wound: Wound, link: Link) -> None:
        wound.hosts = tuple(self._hosts)
        self._redis_is_away = True
        self._server.signal(signal.SIGSTOP)
        self._later(wound, FROZEN_SECONDS, self._thaw)

    def _thaw(self) -> None:
        self._server.signal(signal.SIGCONT)
        self._redis_is_away = False

    def _cut(self, wound: Wound, link: Link) -> None:
        wound.hosts = (link.host,)
        self.relay.cut(link.host)
        seconds = CUT_SECONDS[self._cuts % len(CUT_SECONDS)]
        self._cuts += 1
        self._later(wound, seconds, lambda: self.relay.mend(link.host))
        raise Cut

    def _away_with_redis(self, wound: Wound, seconds: float) -> None:
        wound.hosts = tuple(self._hosts)
        self._redis_is_away = True
        self._server.kill()
        self._later(wound, seconds, self._redis_back)

    def _redis_back(self) -> None:
        self._server.start()
        self._redis_is_away = False

    def _pause_process(self, wound: Wound, pid: int, seconds: float) -> None:
        wound.pids |= {pid}
        kill(pid, signal.SIGSTOP)
        self._later(wound, seconds, lambda: kill(pid, signal.SIGCONT))

    def _later(self, wound: Wound, seconds: float, mend: Callable[[], object]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            mend()
            wound.ended = time.monotonic()

        self._do(wait())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Messages.

    def _is_lost(self, requests: list[Request], data: bytes) -> bool:
        if len(requests) != 1 or requests[0].kind != "hint":
            return False
        (request,) = requests
        if self._doomed.get(request.ticket) is not Injury.LOSE_SENT or data != encoded(request.words):
            return False
        del self._doomed[request.ticket]
        return True

    def _taken(self, data: bytes) -> bytes:
        """A message on its way to a worker that dies before it could write it down."""
        ticket = ticket_in(data, self._doomed)
        if self._doomed.get(ticket) is not Injury.LOSE_TAKEN:
            return data
        del self._doomed[ticket]
        return NOTHING_TAKEN

    def _unacked(self, ticket: str, link: Link) -> None:
        """A message that its worker has written down dies with it; what is in `unacked` comes back in hours."""
        if self._doomed.get(ticket) is not Injury.LOSE_UNACKED:
            return
        del self._doomed[ticket]
        host = self._hosts[link.host]
        roles = host.roles()
        hit = {link.pid}
        if roles.get(link.pid) == "work":
            hit |= {pid for pid, role in roles.items() if role == "worker"}
        for wound in self.wounds:
            if wound.ticket == ticket and wound.injury is Injury.LOSE_UNACKED:
                wound.pids, wound.ended = frozenset(hit), time.monotonic()
        for pid in hit:
            kill(pid, signal.SIGKILL)
        raise Cut

    def _double(self, requests: list[Request]) -> None:
        for request in requests:
            if request.kind == "hint" and self._doubling:
                self._doubling -= 1
                self._server.tell(twice(request))


_DONE: Final[Mapping[Injury, Callable[[Injurer, Wound, Link], None]]] = {
    Injury.KILL_WORKER: Injurer._kill,
    Injury.KILL_CONTROL: Injurer._kill,
    Injury.KILL_SWEEPER: Injurer._kill_sweeper,
    Injury.KILL_HOST: Injurer._kill_host,
    Injury.STOP_WORKER: Injurer._stop,
    Injury.STOP_SWEEPER: Injurer._stop_sweeper,
    Injury.RESTART_REDIS: Injurer._restart_redis,
    Injury.BLIP_REDIS: Injurer._blip,
    Injury.FREEZE_REDIS: Injurer._freeze,
    Injury.CUT_NETWORK: Injurer._cut,
}
