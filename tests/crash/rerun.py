"""One workflow on the real engine and the store in memory, whose workers die at named points; the clock is virtual.

A worker does what `workers/steps/execution.py` does: claim, work, commit, hint. A dead process is found by its
supervisor, or its lease runs out; a hint that was never sent is sent by the sweeper; a caller that said something from
outside and heard no answer says it again.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, Literal, NamedTuple

from fixloop.engine.engine import ProfileEngine, ProfileHolding
from fixloop.engine.profile import Profile, profile_named
from fixloop.engine.replay import audit
from fixloop.protocol import events as ev
from fixloop.protocol.checks import Finding
from fixloop.protocol.event import Event, Start
from fixloop.protocol.state import Limits
from fixloop.protocol.ticket import Ticket
from fixloop.servers.broker_url import PRIORITY_STEPS
from fixloop.store.keys import shard_of
from fixloop.store.limits import LEASE_SECONDS, SEND_AGAIN
from fixloop.store.records import Claim, GoesOn, Lane, Snapshot
from fixloop.testing import ScriptedCrew
from fixloop.testing.crew import scripted_workflow
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.store_samples import release_all_of
from tests.fixtures.validation_stage import START

WORKFLOW: Final = "0f0f0f0f-101-1"
LONGEST: Final = 1000
SWEEP_SECONDS: Final = 0.5
FINDING: Final = Finding(
    rule="apart", text="with the tests of the snapshot it fails", file="test_a.py", line=3
)
_STAMP: Final = re.compile(r"\d{8}T\d{6}Z|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
_DURATION: Final = re.compile(r"\b\d\d:\d\d(:\d\d)?\b")
_OF_A_RUN: Final = {"clock", "due", "fence", "owner", "timestamp"}
_TIMES: Final = re.compile(r"(.*_)?(at|clock|seconds)")


class Boundary(StrEnum):
    """Where a step or an outside event can be interrupted."""

    BEFORE_CLAIM = "before claim"
    AFTER_CLAIM = "after claim"
    MID_WORK = "mid-work"
    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"
    BEFORE_HINT = "before hint"
    AFTER_HINT = "after hint"


class Point(NamedTuple):
    """A boundary of a step, by the end of its ticket's id, or of an outside event, by its name."""

    boundary: Boundary
    what: str

    def __str__(self) -> str:
        return f"{self.boundary}/{self.what}"


class Scene(NamedTuple):
    """What is played."""

    script: str
    specialists: tuple[str, ...] = ("test-runner",)
    fixer: Literal["command", "outside"] = "command"
    decisions: tuple[ev.DecisionMade, ...] = ()
    held: tuple[str, ...] = ()
    """The runs that pass and are held, by the ends of their tickets' ids."""
    limits: Limits = Limits()
    kind: str = "validation"
    outside: tuple[str, ...] = ()
    """Agents of a cycle or of handoffs that are not run here: they get messages, and are late."""
    notify: bool = False
    """Whether a person is notified of what waits for an answer."""

    @property
    def profile(self) -> Profile[Any]:
        return profile_named(self.kind)


class Ending(NamedTuple):
    """The result without times and names of processes: equal for equivalent runs."""

    state: dict[str, Any]
    history: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    files: dict[str, str]
    """The named files by path; a validation loop has none."""


class _Died(Exception):
    """This process has died."""


class Rerun:
    """One way through a scene."""

    def __init__(
        self,
        scene: Scene,
        dies_at: Sequence[Point] = (),
        *,
        is_seen: bool = True,
        copies_at: str = "",
        goes_on: bool = False,
    ) -> None:
        """
        Nothing is played yet.

        Args:
            dies_at: once at each.
            is_seen: whether a supervisor lives to see a death; else the lease has to run out.
            copies_at: the boundary at which a copy of the message reaches a second worker.
            goes_on: whether a worker continues with the next step.
        """
        self.passed: dict[Point, None] = {}
        """Every point that was reached, in order."""
        self.executed: Counter[str] = Counter()
        self.scene = scene
        self._due = set(dies_at)
        self._is_seen = is_seen
        self._copies_at = copies_at
        self._goes_on = goes_on
        self._wall: datetime = START
        self._broker: list[str] = []
        self._dead: set[str] = set()
        self._workers = 0
        self._decisions = list(scene.decisions)
        self._speaker = ""
        self._waited_again = 0
        self.store = MemoryStore(lambda: self._wall)
        self._engine: ProfileEngine[Any] = ProfileEngine(self.store, scene.profile, self._hint)
        self._crew = ScriptedCrew(pause=self._pause)

    def play(self) -> Ending:
        """From the start until everything waits for a person, or it has ended."""
        self._start()
        for _ in range(LONGEST):
            if not self._go_on():
                assert not self._due, f"nobody came to {sorted(map(str, self._due))}"
                assert audit(self.store, WORKFLOW).problems == ()
                return self._ending()
        raise AssertionError(f"no end: {self.store.read(WORKFLOW)}")

    def _go_on(self) -> bool:
        found, state = self._found(), self._state()
        if self._broker:
            self._work(self._broker.pop(0))
        elif found.tickets:
            self._wait(1.0)
        elif self._waits_for_person(state) and self._decisions:
            self._decide(self._decisions[0])
        elif found.deadlines:
            waits = [due - found.moment.clock for due in found.deadlines.values()]
            ahead = [wait for wait in waits if wait > 0]
            # One that is over is handed out again once: it changes nothing, or whoever had it died.
            is_over = len(ahead) < len(waits) and self._waited_again != found.version
            self._waited_again = found.version if is_over else self._waited_again
            self._wait(SWEEP_SECONDS + (SEND_AGAIN if is_over or not ahead else min(ahead)))
        else:
            return False
        return True

    def _found(self) -> Snapshot:
        found = self.store.read(WORKFLOW)
        assert found is not None
        return found

    def _state(self) -> Any:
        return self._engine.profile.load(self._found().snapshot)

    def _waits_for_person(self, state: Any) -> bool:
        return bool(state.paused)

    # A worker.

    def _work(self, ticket_id: str) -> None:
        self._workers += 1
        owner = f"worker-{self._workers}"
        try:
            self._carry_out(ticket_id, owner)
        except _Died:
            self._dead.add(owner)

    def _carry_out(self, ticket_id: str, owner: str) -> None:
        self._at(Boundary.BEFORE_CLAIM, ticket_id)
        claim: Claim | None = self.store.claim(ticket_id, owner, f"token-{owner}")
        while claim is not None and claim.status == "ok" and claim.ticket is not None:
            ticket_id = claim.ticket.id
            claim = self._do(ticket_id, owner, claim)

    def _do(self, ticket_id: str, owner: str, claim: Claim) -> Claim | None:
        """A step; the claim of the next one if the worker continues with that."""
        assert claim.ticket is not None
        self._at(Boundary.AFTER_CLAIM, ticket_id)
        holding = self._engine.held(self._engine.profile, claim.ticket, claim, owner)
        event = self._event(holding)
        self._at(Boundary.BEFORE_COMMIT, ticket_id)
        applied = self._engine.finish(holding, event, self.store.now(WORKFLOW), self._is_gone_on_with)
        self._at(Boundary.AFTER_COMMIT, ticket_id)
        self._at(Boundary.BEFORE_HINT, ticket_id)
        others = applied.steps[applied.claim is not None :]
        self._broker += [ticket.id for ticket in others]
        self._at(Boundary.AFTER_HINT, ticket_id)
        return applied.claim

    def _is_gone_on_with(self, ticket: Ticket) -> GoesOn:
        return "first" if self._goes_on and ticket.attempt == 1 else False

    def _event(self, holding: ProfileHolding[Any]) -> Event:
        ticket = holding.ticket
        self.executed[_end_of(ticket.id)] += 1
        if ticket.step == "fix":
            receipt = ev.FixAcknowledged(
                specialist=ticket.specialist, iteration=ticket.iteration, by="scripted fixer"
            )
            self._engine.apply(WORKFLOW, receipt, operation=f"{ticket.id}/started")
        self._at(Boundary.MID_WORK, ticket.id)
        work = SimpleNamespace(holding=holding, store=self.store, cancelled=lambda: False)
        event = self._scripted(ticket, work)
        assert event is not None, "nobody cancels here"
        return event

    def _scripted(self, ticket: Ticket, work: Any) -> ev.Event | None:
        if ticket.step == "report":
            return ev.ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
        if ticket.step == "notify":
            return ev.PersonNotified(detail=self._crew.notify(work))
        if ticket.step == "fix":
            return self._crew.fix(work)
        event = self._crew.check(work)
        if event is not None and _end_of(ticket.id) in self.scene.held:
            event = event.model_copy(update={"findings": (FINDING,)})
        return event

    # A caller from outside, and the sweeper that fires a deadline.

    def _start(self) -> None:
        """A caller without an answer repeats its call: the same call twice is one workflow."""
        for _ in Boundary:
            with suppress(_Died):
                self._speak("start", partial(self._engine.start, self._started()))
                return
        raise AssertionError("the caller died at more boundaries than there are")

    def _decide(self, decision: ev.DecisionMade) -> None:
        """A person who got no answer first checks whether it still waits."""
        with suppress(_Died):
            self._speak("decision", partial(self._engine.apply, WORKFLOW, decision, operation="decision"))
        if not self._waits_for_person(self._state()):
            self._decisions.remove(decision)

    def _speak(self, name: str, act: Callable[[], object]) -> None:
        self._speaker = name
        self._at(Boundary.BEFORE_COMMIT, name)
        act()
        self._at(Boundary.AFTER_HINT, name)

    def _hint(self, ticket: Ticket, _: Any) -> None:
        """What was sent is committed."""
        self._at(Boundary.AFTER_COMMIT, self._speaker)
        self._at(Boundary.BEFORE_HINT, self._speaker)
        self._broker.append(ticket.id)

    # Death.

    def _at(self, boundary: Boundary, what: str) -> None:
        point = Point(boundary, _end_of(what))
        self.passed.setdefault(point)
        if point in self._due:
            self._due.remove(point)
            raise _Died
        if boundary == self._copies_at and what.startswith(WORKFLOW):
            self._copies_at = ""
            self._work(what)
            self._copies_at = boundary

    # Time.

    def _pause(self, seconds: float) -> None:
        """A crew takes time while everything else runs."""
        self._wall += timedelta(seconds=seconds)
        self.store.stay_awake()

    def _wait(self, seconds: float) -> None:
        """No worker runs: time passes; supervisors and sweepers do their work."""
        if self._dead and not self._is_seen:
            seconds = LEASE_SECONDS + SWEEP_SECONDS
        self._pause(seconds)
        if self._is_seen:
            released = release_all_of(self.store, self._dead, poison=True)
            self._broker += [ticket.id for ticket in released]
        self._dead.clear()
        self._sweep()

    def _sweep(self) -> None:
        waiting = {held.ticket.queue for held in self._found().tickets} if not self._broker else set()
        empty = [Lane(queue, step) for queue in sorted(waiting) for step in PRIORITY_STEPS]
        swept = self.store.sweep(shard_of(WORKFLOW), owner="sweeper", horizon_seconds=0.0, empty_lanes=empty)
        self._broker += [ticket.id for ticket in swept.hints]
        for due in swept.deadlines:
            # A process that dies over it acted on it or did not; in that case it is handed out once more.
            with suppress(_Died):
                self._speak(due.name, partial(self._engine.reach, WORKFLOW, due.name, due.clock))

    # What is compared.

    def _started(self) -> Start:
        scene = self.scene
        told = {"specialists": scene.specialists, "fixer": scene.fixer, "limits": scene.limits}
        trusted = "commit-0" if scene.held else ""
        return scripted_workflow("0f0f0f0f", 101, scene.script, trusted=trusted, **told)

    def _ending(self) -> Ending:
        bodies = [entry.body for entry in self.store.history(WORKFLOW)]
        return Ending(
            state=_timeless(self._state().model_dump(mode="json")),
            history=[_timeless(body) for body in bodies],
            messages=[_timeless(message) for body in bodies for message in body.get("messages", ())],
            files=_timeless(self._files()),
        )

    def _files(self) -> dict[str, str]:
        return {}


def _end_of(what: str) -> str:
    """A ticket without its workflow; an outside event is its own name."""
    return what.removeprefix(f"{WORKFLOW}.")


def _timeless(value: Any) -> Any:
    """`value` without times and names of processes."""
    if isinstance(value, dict):
        kept = {name for name in value if name not in _OF_A_RUN and not _TIMES.fullmatch(name)}
        return {name: _timeless(value[name]) for name in kept}
    if isinstance(value, list | tuple):
        return [_timeless(inner) for inner in value]
    return _DURATION.sub("#", _STAMP.sub("#", value)) if isinstance(value, str) else value
