"""One feature on the real engine and the store in memory, among workers that die and a broker that loses and doubles.

The clock is virtual. A step is done as a worker does it: claim, work, commit; a hint is a ticket's id in a list.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from fixloop.engine.engine import Engine
from fixloop.engine.profile import load_state
from fixloop.errors import UsageError
from fixloop.protocol import events as ev
from fixloop.protocol.event import NotDue, Unexpected
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.servers.broker_url import PRIORITY_STEPS
from fixloop.store.keys import shard_of
from fixloop.store.records import Lane, Snapshot
from tests.chaos.history_checker import HistoryChecker
from tests.fixtures.holdings import Applied, Holding, hold
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.store_samples import release_all_of
from tests.fixtures.validation_stage import START

SWEEP_LATENCY_SECONDS: Final = 0.5
LONGEST: Final = 400


class Told(NamedTuple):
    """Events from outside, to be sent again."""

    event: ev.Event
    operation: str


class Simulation:
    """Everything around one workflow."""

    def __init__(self, started: ev.WorkflowStarted) -> None:
        self.wall: datetime = START
        self.store = MemoryStore(lambda: self.wall)
        self.store.stay_awake()
        self.engine = Engine(self.store, lambda ticket, _: self.broker.append(ticket.id))
        self.workflow = started.workflow
        self.broker: list[str] = []
        self.working: list[Holding] = []
        self.lost: list[Holding] = []
        self.done: list[tuple[Holding, ev.Event]] = []
        self.told: list[Told] = []
        self.checker = HistoryChecker(self.store, self.workflow)
        self._numbers = 0
        assert self.engine.start(started).status == "ok"
        self.state: State = self.checker.look()

    @property
    def found(self) -> Snapshot:
        """The workflow as stored."""
        found = self.store.read(self.workflow)
        assert found is not None
        return found

    def look(self) -> State:
        """Check everything new."""
        self.state = self.checker.look()
        return self.state

    # Workers and the broker.

    def deliver(self, index: int, *, again: bool = False) -> None:
        """The broker hands one hint to a worker; `again`: and keeps it, to hand it out once more."""
        ticket_id = self.broker[index % len(self.broker)]
        if not again:
            self.broker.remove(ticket_id)
        owner = f"worker-{self._next()}"
        claim = self.store.claim(ticket_id, owner, str(UUID(int=self._next())))
        if claim.status != "ok" or claim.ticket is None:
            return
        assert self.look().held is None, "a step began while the workflow was paused"
        holding = hold(claim.ticket, claim, owner)
        self.working.append(holding)
        if claim.ticket.step == "fix":
            self._acknowledge(holding)

    def _acknowledge(self, holding: Holding) -> None:
        ticket = holding.ticket
        event = ev.FixAcknowledged(specialist=ticket.specialist, iteration=ticket.iteration, by="fixer")
        try:
            self.engine.apply(self.workflow, event, operation=f"{ticket.id}/started")
        except Unexpected:
            self.working.remove(holding)

    def finish(self, holding: Holding, event: ev.Event, *, hinted: bool = True) -> Applied:
        """A worker commits; without `hinted` it dies before it sends the next hint."""
        if holding in self.working:
            self.working.remove(holding)
        applied = self.engine.finish(holding, event, self.store.now(self.workflow))
        self.done.append((holding, event))
        if hinted:
            self.broker += [ticket.id for ticket in applied.steps]
        return applied

    def die(self, holding: Holding, *, seen: bool) -> None:
        """A worker seems dead; `seen`: its supervisor says so at once, else the lease expires."""
        self.working.remove(holding)
        self.lost.append(holding)
        if seen:
            offered = release_all_of(self.store, {holding.owner}, poison=True)
            self.broker += [ticket.id for ticket in offered]

    # Time.

    def advance(self, seconds: float) -> None:
        """Time passes while workers and sweepers run."""
        target = self.wall + timedelta(seconds=seconds)
        for _ in range(LONGEST):
            due = self._next_due()
            if due is None or due > target:
                break
            self._be_at(due)
        else:
            raise AssertionError("the deadlines do not end")
        self._be_at(target)

    def _next_due(self) -> datetime | None:
        found = self.found
        # One in the past belongs to an expired lease: it waits for its holder, or for the next one.
        ahead = [due - found.moment.clock for due in found.deadlines.values() if due > found.moment.clock]
        if not ahead:
            return None
        return self.wall + timedelta(seconds=min(ahead) + SWEEP_LATENCY_SECONDS)

    def _be_at(self, wall: datetime) -> None:
        self.wall = max(self.wall, wall)
        self.store.stay_awake()
        self._beat()
        self.sweep()

    def away(self, seconds: float) -> None:
        """Nothing runs meanwhile; below zero, the clock is turned back."""
        self.wall += timedelta(seconds=seconds)
        self.sweep()

    def _beat(self) -> None:
        for holding in list(self.working):
            if self.store.renew(holding.ticket.id, holding.owner, holding.fence) != "ok":
                self.working.remove(holding)

    def sweep(self) -> None:
        """One sweep: lost hints, expired leases, due deadlines."""
        waiting = {held.ticket.queue for held in self.found.tickets} if not self.broker else set()
        empty = [Lane(queue, priority) for queue in sorted(waiting) for priority in PRIORITY_STEPS]
        swept = self.store.sweep(
            shard_of(self.workflow), owner="sweeper", horizon_seconds=0.0, empty_lanes=empty
        )
        self.broker += [ticket.id for ticket in swept.hints]
        for due in swept.deadlines:
            self.reach(due.name, due.clock)

    def reach(self, name: str, due: float) -> str:
        """A deadline is fired, whether it is set or not."""
        try:
            return self.engine.reach(self.workflow, name, due).status
        except NotDue:
            return "early"

    # From outside.

    def tell(self, event: ev.Event, operation: str = "") -> bool:
        """Apply an event from outside; False when it was refused, which must change nothing."""
        told = Told(event, operation or f"outside-{self._next()}")
        before = self.found
        try:
            applied = self.engine.apply(self.workflow, event, operation=told.operation)
        except UsageError:
            self.is_untouched(before)
            return False
        assert applied.status == "ok"
        self.told.append(told)
        return True

    def tell_again(self, told: Told) -> None:
        """A repetition gets its first answer, even if the state has changed since (R8)."""
        before = self.found
        try:
            applied = self.engine.apply(self.workflow, told.event, operation=told.operation)
        except UsageError:
            pass
        else:
            assert applied.status == "dup"
        self.is_untouched(before)

    def is_untouched(self, before: Snapshot) -> None:
        """Nothing has changed since `before`, but that the history may record a refusal."""
        now = self.found
        for entry in self.store.history(self.workflow, before.version):
            assert entry.body["event"]["kind"] == "event-refused"
        state, earlier = load_state(now.snapshot), load_state(before.snapshot)
        assert state == earlier.model_copy(update={"last_at": state.last_at})
        assert (now.tickets, now.deadlines) == (before.tickets, before.deadlines)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    # To the end.

    def drain(self, event_of: Callable[[Ticket], ev.Event], decide: Callable[[State], ev.Event]) -> None:
        """Without further disturbances it must end, even if every hint so far was lost."""
        self.broker.clear()
        for holding in list(self.working):
            self.die(holding, seen=False)
        for _ in range(LONGEST):
            if self.look().ended:
                return
            waits = self.state.owner == "agent" and self.state.fixer == "outside"
            if self.state.held or self.state.paused or waits:
                assert self.tell(decide(self.state)), f"no way out of {self.state.status}"
                continue
            self.advance(10.0)
            while self.broker:
                self.deliver(0)
            for holding in list(self.working):
                self.finish(holding, event_of(holding.ticket))
        raise AssertionError(f"no end: {self.state.status}, {self.found.tickets}, {self.broker}")
