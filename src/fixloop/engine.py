"""The shell around `decide`: read, decide, commit; nothing is decided here.

Used alike by workers, which hold a ticket, and by commands, which bring an event from outside. A commit that
meets a newer version decides again on that version; a repetition gets its first answer (DESIGN, the one rule).
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from fixloop.errors import ProtocolError, UsageError
from fixloop.history import recorded
from fixloop.protocol.delivering import RECEIPT_DEADLINE
from fixloop.protocol.events import DeadlineReached, Event, EventRefused, WorkflowStarted
from fixloop.protocol.messages import ORCHESTRATOR
from fixloop.protocol.moment import Moment
from fixloop.protocol.outcome import NotDue, Outcome, Repeated, Unexpected
from fixloop.protocol.roles import WrongParty, check_party, worker_of
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OperationName, State
from fixloop.protocol.ticket import Ticket
from fixloop.protocol.validation import DECIDE_VERSION, decide
from fixloop.snapshots import load_state
from fixloop.store.contract import Store
from fixloop.store.packing import NOTHING, Context
from fixloop.store.records import Claim, Commit, Committed

__all__ = ["Applied", "Engine", "Holding", "hold", "plain_fields"]

MOST_OF_A_REASON: Final = 500
DEADLINES: Final = frozenset(
    (
        RECEIPT_DEADLINE,
        *(name for operation in OperationName for name in (operation.value, operation.reminder_deadline)),
    )
)
ROUNDS: Final = 8
"""How often a decision is made anew on a newer version before giving up; each round lost one race."""


class Holding(NamedTuple):
    """A claimed ticket as its holder knows it."""

    ticket: Ticket
    owner: str
    fence: int
    version: int
    head: str
    state: State
    moment: Moment
    deaths: int = 0
    context: Context = NOTHING


class _Basis(NamedTuple):
    """What a decision was made on."""

    version: int
    head: str
    context: Context
    moment: Moment
    state: State | None = None

    def moved(self, to: Committed) -> "_Basis":
        """What another commit, which was faster, made of it."""
        return _Basis(to.version, to.head, to.context, self.moment, load_state(to.snapshot or b""))


class Applied(NamedTuple):
    """An event that was committed, or that was known already."""

    outcome: Outcome | None
    """None when there was nothing to commit: a repetition, or a ticket that others took over."""
    status: str
    """`ok`, `dup`, `stale`, `gone`, `exists`; `refused`: it was not its bringer's to bring."""
    version: int
    other: str = ""
    """The workflow that is live already, for `exists`."""

    @property
    def steps(self) -> Sequence[Ticket]:
        return self.outcome.steps if self.outcome is not None else ()


class Engine:
    """Applies events to workflows; `hint` is called for each new ticket and may be lost, `announce` likewise."""

    def __init__(
        self,
        store: Store,
        hint: Callable[[Ticket, State], object] | None = None,
        announce: Callable[[Outcome], object] | None = None,
    ) -> None:
        """
        Nothing is applied yet.

        Args:
            announce: tells a declared agent what a committed outcome says to it.
        """
        self.store = store
        self._hint = hint
        self._announce = announce

    def start(self, event: WorkflowStarted) -> Applied:
        """
        Create the workflow, unless one of its feature is live already.

        Raises:
            UsageError: nothing applies.
        """
        moment = self.store.now(event.workflow)
        outcome = decide(None, event, moment)
        committed = self.store.create(_commit(event, outcome, _Basis(0, "", NOTHING, moment), live=True))
        return self._applied(outcome, committed)

    def state(self, workflow: str) -> State:
        """
        The workflow's present state.

        Raises:
            UsageError: there is no such workflow.
        """
        found = self.store.read(workflow)
        if found is None:
            raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
        return load_state(found.snapshot)

    def apply(self, workflow: str, event: Event, *, operation: str) -> Applied:
        """
        Apply an event that comes from outside, once for each `operation`.

        Raises:
            Unexpected: the state does not allow it; nothing was changed, and the history tells of it.
            UsageError: there is no such workflow.
        """
        try:
            return self._apply(workflow, event, operation)
        except (NotDue, Repeated):
            raise
        except Unexpected as refused:
            kept = getattr(event, "artifacts", ())
            self.refuse(workflow, event.kind, str(refused), sender=event.sender, artifacts=kept)
            raise

    def refuse(
        self, workflow: str, kind: str, reason: str, *, sender: str = "", artifacts: tuple[str, ...] = ()
    ) -> None:
        """
        Have the history tell that an event was refused, once for each sentence; nothing else changes.

        Args:
            kind: the refused event's.
            reason: the sentence with which it was refused.
            sender: the handle it came from, as far as anybody said so.
            artifacts: the digests of what it rested on.
        """
        shown = reason[:MOST_OF_A_REASON]
        event = EventRefused(refused=kind, reason=shown, sender=sender, artifacts=artifacts)
        digest = sha256(event.model_dump_json().encode()).hexdigest()[:32]
        self._apply(workflow, event, f"refused/{digest}")

    def _apply(self, workflow: str, event: Event, operation: str) -> Applied:
        found = self.store.read(workflow)
        if found is None:
            raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
        basis = _Basis(found.version, found.head, found.context, found.moment, load_state(found.snapshot))
        for _ in range(ROUNDS):
            outcome = decide(basis.state, event, basis.moment)
            committed = self.store.commit(_commit(event, outcome, basis, operation=operation))
            if committed.status != "conflict":
                return self._applied(outcome, committed)
            basis = basis.moved(committed)
        raise ProtocolError(f"workflow {workflow} changed {ROUNDS} times in a row; try again")

    def reach(self, workflow: str, name: str, due: float) -> Applied:
        """
        Act on a deadline, if it is still the one the state set (R6).

        Raises:
            NotDue: it lies ahead.
        """
        found = self.store.read(workflow)
        current = found.deadlines.get(name) if found is not None else None
        operation = f"{name}@{due}"
        if found is not None and current is None and name in DEADLINES and found.moment.clock > due:
            # What it was for was faster (K8). One that was acted on has its operation already, and is not told again.
            late = EventRefused(
                refused="deadline-reached", reason=f"{name} no longer matters", sender=ORCHESTRATOR
            )
            self._apply(workflow, late, operation)
        if current is None or abs(current - due) > 0.001:
            return Applied(None, "gone", found.version if found is not None else 0)
        return self.apply(workflow, DeadlineReached(name=name, due=due), operation=operation)

    def finish(self, held: Holding, event: Event, moment: Moment) -> Applied:
        """
        Commit a ticket's result; its holder follows up the new tickets itself.

        Returns:
            `stale` or `gone` when the ticket was withdrawn or taken over: the result is dropped. `refused` when it is
            not for whoever does this ticket's work to bring (A51): the ticket is still held. The history tells of both.
        """
        worker = worker_of(held.ticket)
        try:
            check_party(event, worker)
        except WrongParty as refused:
            self.refuse(held.ticket.workflow, event.kind, str(refused), sender=worker)
            return Applied(None, "refused", held.version)
        applied, reason = self._finish(held, event, moment)
        if applied.status == "stale":
            self.refuse(held.ticket.workflow, event.kind, reason, sender=worker)
        return applied

    def _finish(self, held: Holding, event: Event, moment: Moment) -> tuple[Applied, str]:
        """What became of it, and why it is stale."""
        basis = _Basis(held.version, held.head, held.context, moment, held.state)
        for _ in range(ROUNDS):
            try:
                outcome = decide(basis.state, event, moment)
            except Unexpected as refused:
                return Applied(None, "stale", basis.version), str(refused)
            committed = self.store.commit(_commit(event, outcome, basis, held=held))
            if committed.status != "conflict":
                done = outcome if committed.status == "ok" else None
                return Applied(done, committed.status, committed.version), _too_late(held)
            basis = basis.moved(committed)
        raise ProtocolError(f"workflow {held.ticket.workflow} changed {ROUNDS} times in a row")

    def _applied(self, outcome: Outcome, committed: Committed) -> Applied:
        done = committed.status == "ok"
        if done and self._hint is not None:
            for ticket in (*outcome.steps, *self._released(outcome)):
                self._hint(ticket, outcome.state)
        if done and self._announce is not None:
            self._announce(outcome)
        return Applied(outcome if done else None, committed.status, committed.version, committed.other)

    def _released(self, outcome: Outcome) -> list[Ticket]:
        """The tickets that a pause had held back and nobody has yet."""
        found = self.store.read(outcome.state.workflow) if outcome.holds is False else None
        made = {ticket.id for ticket in outcome.steps}
        tickets = found.tickets if found is not None else ()
        return [kept.ticket for kept in tickets if kept.status == "pending" and kept.ticket.id not in made]


def _too_late(held: Holding) -> str:
    return f"ticket {held.ticket.id} was withdrawn or taken over from fence {held.fence}"


def hold(ticket: Ticket, claim: Claim, owner: str) -> Holding:
    """What a granted claim gives its holder."""
    return Holding(
        ticket=ticket,
        owner=owner,
        fence=claim.fence,
        version=claim.version,
        head=claim.head,
        context=claim.context,
        deaths=claim.deaths,
        state=load_state(claim.snapshot),
        moment=claim.moment,
    )


def plain_fields(state: State) -> dict[str, str]:
    """What a person would look for with `redis-cli`, beside the snapshot (DESIGN, Redis)."""
    active = state.active
    return {
        "project": state.project,
        "name": state.name,
        # The id tells the issue, and all are of this profile that do not say otherwise.
        "profile": state.profile if state.profile != "validation" else "",
        "protocol": state.protocol_version,
        "status": state.status.value,
        "paused": "1" if state.paused else "",
        "held": "1" if state.held is not None else "",
        "outcome": state.outcome.value if state.outcome else "",
        "verdict": state.verdict or "",
        "owner": state.owner,
        "agent": state.agent,
        "phase": slot(active.name).phase,
        "specialist": active.name,
        "iteration": f"{active.iteration}/{active.max_iterations}",
        "tree": state.tree,
        "queue": state.queue,
        "updated_at": _iso(state.last_at),
    }


def _iso(at: datetime) -> str:
    """As the models write it, so that it is the same text wherever it stands."""
    return at.isoformat().replace("+00:00", "Z")


def _changed_fields(before: State | None, after: State) -> dict[str, str]:
    fields = plain_fields(after)
    if before is None:
        return fields
    return dict(fields.items() - plain_fields(before).items())


def _commit(
    event: Event,
    outcome: Outcome,
    basis: _Basis,
    *,
    held: Holding | None = None,
    operation: str = "",
    live: bool | None = None,
) -> Commit:
    state = outcome.state
    # What comes from outside and asks for a step takes the place of the one in progress: a fix brought by hand,
    # that of the fixer which still runs. Left alone, that one would be refused and offered again for ever.
    supersedes = held is None and basis.version > 0 and bool(outcome.steps)
    return Commit(
        workflow=state.workflow,
        expected_version=basis.version,
        head=basis.head,
        context=basis.context,
        snapshot=state.model_dump_json(exclude_defaults=True).encode(),
        fields=_changed_fields(basis.state, state),
        entry=_entry(event, outcome, basis.moment, held),
        ticket=held.ticket.id if held is not None else "",
        owner=held.owner if held is not None else "",
        fence=held.fence if held is not None else 0,
        operation=operation,
        new_tickets=outcome.steps,
        drop_all_tickets=outcome.withdraws_tickets or supersedes,
        set_deadlines=outcome.deadlines,
        clear_deadlines=outcome.cleared_deadlines,
        clear_all_deadlines=outcome.withdraws_tickets,
        hold=outcome.holds,
        stood_seconds=outcome.stood_seconds,
        live=False if state.ended else live,
    )


def _entry(event: Event, outcome: Outcome, moment: Moment, held: Holding | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "at": _iso(outcome.state.last_at),
        "clock": moment.clock,
        "decide": DECIDE_VERSION,
        "event": event.model_dump(mode="json", exclude_defaults=True) | {"kind": event.kind},
    }
    named = _artifacts(event)
    if named:
        entry["artifacts"] = named
    if outcome.messages:
        entry["messages"] = [recorded(message) for message in outcome.messages]
    if outcome.transitions:
        entry["transitions"] = [change.model_dump(mode="json") for change in outcome.transitions]
    if outcome.notes:
        entry["notes"] = list(outcome.notes)
    if held is not None:
        entry["by"] = {"ticket": held.ticket.id, "fence": held.fence, "owner": held.owner}
    return entry


def _artifacts(event: Event) -> list[str]:
    """What the event rests on and the history has to vouch for."""
    single = (getattr(event, name, "") for name in ("configuration", "bundle"))
    return [*getattr(event, "artifacts", ()), *filter(None, single)]
