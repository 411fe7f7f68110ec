"""Watches all links of a chaos run: it tracks each ticket's boundaries, and injures its worker as planned.

It runs in the relay's event loop. Its actions and observations can be read after the run.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from fixloop.machine.guard_program import is_running
from fixloop.testing import wire
from fixloop.testing.injuries import AppliedInjury, InjuryActions, Takeover
from fixloop.testing.networks import HostNetwork
from fixloop.testing.plan import COMMAND, Boundary, Injury, Schedule
from fixloop.testing.processes import Host, RedisServer, below, kill
from fixloop.testing.relay import Cut, Link, Relay

DOUBLED: Final = 20
BEGUN_SECONDS: Final = 10.0
"""The time from a claim to the crew's start on a busy machine; after that, the step is treated as without mid-work."""
POLL_SECONDS: Final = 0.005
_OPERATIONS: Final = ("hint", "claim", "commit")
"""The operations before or after which a step has boundaries."""
_OF_MESSAGES: Final = (Injury.LOSE_SENT, Injury.LOSE_TAKEN, Injury.LOSE_UNACKED)


class Injurer:
    """Inflicts the injuries of a plan, each when its ticket reaches its boundary."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        server: RedisServer,
        networks: Mapping[str, HostNetwork],
        executions: Path,
    ) -> None:
        """No injuries before `arm`; agents record their starts in `executions`."""
        self.relay = Relay(server.socket, self)
        self.actions = InjuryActions(
            hosts, server, networks, lambda applied: self._schedule.put_off(applied.injury)
        )
        self.injuries: list[AppliedInjury] = []
        self.takeovers: list[Takeover] = []
        self.answers: Counter[str] = Counter()
        """The replies to claims."""
        self.doubled = 0
        """Messages that were delivered twice."""
        self.host_of: dict[int, str] = {}
        self._hosts = hosts
        self._server = server
        self._executions = executions
        self._schedule = Schedule({}, {})
        self._commands: Container[str] = ()
        self._holders: dict[str, int] = {}
        self._doomed: dict[str, AppliedInjury] = {}
        self._doubling: list[AppliedInjury] = []
        self._doubles_all = False

    def arm(self, schedule: Schedule, commands: Container[str] = (), *, twice_over: bool = False) -> None:
        """Follow `schedule` from now on; earlier tickets do not count. `commands`: tickets that a command works on."""
        self._schedule = schedule
        self._commands = commands
        self._doubles_all = twice_over
        self.answers.clear()

    def disarm(self) -> None:
        self._schedule = Schedule({}, {})

    def sent(self, link: Link, requests: list[wire.Request], data: bytes) -> tuple[bytes, bytes]:
        self.host_of[link.pid] = link.host
        for request in requests:
            if request.kind in _OPERATIONS and wire.step_of(request.ticket):
                self._reach(request.ticket, Boundary(f"before {request.kind}"), link)
        link.pops = link.pops or any(request.kind == "pop" for request in requests)
        answer = self._immediate_reply(link, requests, data)
        if answer:
            return b"", answer
        for request in requests:
            if (
                request.kind == "hint"
                and (self._doubling or self._doubles_all)
                # Asking a frozen Redis would block all others.
                and not self.actions.redis_is_away
                and self._server.tell(wire.twice(request)) is not None
            ):
                self.doubled += 1
                if self._doubling:
                    self._doubling.pop().took_effect = True
        link.unanswered += [request for request in requests if request.kind != "pop"]
        return data, b""

    def answered(self, link: Link, data: bytes) -> bytes:
        requests, link.unanswered = link.unanswered, []
        for request in requests:
            status = wire.answer_to(data)
            claimed = ""
            if request.kind == "claim":
                self.answers[status] += 1
                claimed = request.ticket if status == "ok" else ""
            elif request.claims and wire.has_claimed(data):
                claimed = request.claims
            if claimed:
                before = self._holders.get(claimed)
                if before is not None and before != link.pid:
                    self.takeovers.append(Takeover(claimed, before, is_running(before)))
                self._holders[claimed] = link.pid
            elif request.kind == "unacked":
                self._lose_unacked(request.ticket, link)
            elif request.kind == "sweep" and wire.has_swept(data):
                self.actions.swept.setdefault(request.ticket, {})[link.pid] = time.monotonic()
            is_done = request.kind == "hint" or status == "ok"
            if request.kind in _OPERATIONS and wire.step_of(request.ticket) and is_done:
                self._reach(request.ticket, Boundary(f"after {request.kind}"), link)
            if claimed and request.kind == "commit":
                # It is neither hinted nor claimed, so an injury planned there moves to another ticket.
                for boundary in (Boundary.BEFORE_HINT, Boundary.AFTER_HINT, Boundary.BEFORE_CLAIM):
                    self._schedule.due(claimed, self._steps(claimed), boundary, lambda one: False)
                self._reach(claimed, Boundary.AFTER_CLAIM, link)
            if claimed:
                self._reach(claimed, Boundary.MID_WORK, link)
        if link.pops and self._doomed and self._lose(wire.ticket_in(data, self._doomed), Injury.LOSE_TAKEN):
            # As if the worker had died before recording the message.
            return wire.NOTHING_TAKEN
        return data

    def _reach(self, ticket: str, boundary: Boundary, link: Link) -> None:
        may = partial(self.actions.may, link=link)
        injury = self._schedule.due(ticket, self._steps(ticket), boundary, may)
        if injury is not None and boundary is Boundary.MID_WORK:
            self.actions.begin(self._injure_mid_work(injury, ticket, link))
        elif injury is not None:
            self._injure(injury, ticket, boundary, link)

    def _steps(self, ticket: str) -> tuple[str, ...]:
        return (wire.step_of(ticket), *([COMMAND] if ticket in self._commands else []))

    async def _injure_mid_work(self, injury: Injury, ticket: str, link: Link) -> None:
        """Wait until the crew has begun; if the step ends before that is seen, another ticket is injured."""
        give_up = time.monotonic() + BEGUN_SECONDS
        while time.monotonic() < give_up and not self._has_ended(ticket):
            has_begun = self._has_begun(injury, ticket, link)
            await asyncio.sleep(POLL_SECONDS)
            if has_begun:
                break
        is_mid_work = self._has_begun(injury, ticket, link) and not self._has_ended(ticket)
        if not is_mid_work or not is_running(link.pid):
            self._schedule.put_off(injury, ticket)
            return
        with suppress(Cut):
            self._injure(injury, ticket, Boundary.MID_WORK, link)

    def _has_begun(self, injury: Injury, ticket: str, link: Link) -> bool:
        if injury is Injury.KILL_COMMAND:
            return bool(below(link.pid, 2))
        return self._executions.exists() and f"{ticket} ".encode() in self._executions.read_bytes()

    def _has_ended(self, ticket: str) -> bool:
        return self._schedule.has_come(ticket, Boundary.BEFORE_COMMIT)

    def _injure(self, injury: Injury, ticket: str, boundary: Boundary, link: Link) -> None:
        """Inflict it; raises Cut if that ends this link."""
        applied = AppliedInjury(injury, ticket, boundary, (), frozenset(), time.monotonic(), time.monotonic())
        self.injuries.append(applied)
        if injury in _OF_MESSAGES:
            self._doomed[ticket] = applied
        elif injury is Injury.DOUBLE_MESSAGES:
            self._doubling += [applied] * DOUBLED
        elif injury in (Injury.LOSE_CLAIM_REPLY, Injury.LOSE_COMMIT_REPLY):
            # The relay has the reply, and does not pass it on.
            applied.took_effect = True
            raise Cut
        else:
            self.actions.apply(applied, link)

    def _immediate_reply(self, link: Link, requests: list[wire.Request], data: bytes) -> bytes:
        """The reply to the client if the requests are not passed on; usually empty."""
        if len(requests) != 1 or data != wire.encoded(requests[0].words):
            return b""
        (request,) = requests
        if request.kind == "artifact" and link.host in self.actions.full:
            next(one for one in reversed(self.injuries) if one.injury is Injury.NO_ROOM).took_effect = True
            return wire.NO_ROOM
        if request.kind == "hint" and self._lose(request.ticket, Injury.LOSE_SENT):
            return wire.PUSHED
        return b""

    def _lose(self, ticket: str, injury: Injury) -> AppliedInjury | None:
        applied = self._doomed.get(ticket)
        if applied is None or applied.injury is not injury:
            return None
        applied.took_effect = True
        return self._doomed.pop(ticket)

    def _lose_unacked(self, ticket: str, link: Link) -> None:
        """Kill the worker that recorded a message; the message in `unacked` comes back only after hours."""
        applied = self._lose(ticket, Injury.LOSE_UNACKED)
        if applied is None:
            return
        roles = self._hosts[link.host].roles()
        hit = {link.pid}
        if roles.get(link.pid) == "work":
            hit |= {pid for pid, role in roles.items() if role == "worker"}
        applied.pids, applied.ended = frozenset(hit), time.monotonic()
        kill(signal.SIGKILL, *hit)
        raise Cut
