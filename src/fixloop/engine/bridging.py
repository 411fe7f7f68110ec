"""Child workflows: a validation loop as an agent of a cycle or of handoffs, or handoffs as the fixer of a loop.

A child is named after the ticket it works for, so a run never starts two. While the child works, its ticket is delayed;
it is woken when the child has a result. If the wake-up is lost, the delay ends by itself.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import AnyOutcome, Profile, profile_in, profile_named
from fixloop.engine.verdicts import go_on
from fixloop.errors import Damaged, NewerVersion
from fixloop.protocol import events as validation
from fixloop.protocol.event import Start, Unexpected
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from fixloop.store.keys import issue_of, project_hash, workflow_id, workflow_of
from fixloop.store.records import Snapshot

EngineOf = Callable[[Profile[Any]], ProfileEngine[Any]]
Hint = Callable[[Ticket], object]


def child_of(ticket: str) -> str:
    """The id of the child workflow that does a ticket's work; UsageError if this is no ticket id."""
    return workflow_id(project_hash(ticket), issue_of(workflow_of(ticket)), 1)


def attended(
    store: Store, engine_of: EngineOf, ticket: Ticket, profile: Profile[Any], begin: Callable[[str], Start]
) -> Any:
    """The state of the child that works for `ticket`, or None until it has ended. A missing child is started with the
    event that `begin` makes from its id; a child whose parent does the fixing is told to continue after a failed
    phase."""
    child, engine = child_of(ticket.id), engine_of(profile)
    if store.read(child) is None:
        engine.start(begin(child))
        # Pass on a cancellation or pause of the parent that happened while the child was being created.
        found = store.read(ticket.workflow)
        if not _is_awaited(found, ticket.id):
            _tell(store, engine_of, child, "cancelled")
        elif found is not None and found.fields.get("held"):
            _tell(store, engine_of, child, "paused")
    state = engine.state(child)
    while isinstance(state, State) and state.escalation is not None and (decision := go_on(state)):
        opened = state.escalation.message_id
        event = validation.DecisionMade(
            decision=decision,
            by=ticket.workflow,
            reason=f"{ticket.specialist} has it fixed",
            escalation=opened,
        )
        engine.apply(child, event, operation=f"go-on/{opened}")
        state = engine.state(child)
    return state if state.ended else None


def is_given_up(store: Store, engine_of: EngineOf, state: Any) -> bool:
    """Whether no workflow waits for a child any more; it is then cancelled. Checked before each of its steps, and at
    intervals while it stands still, because the notice of its parent's end may have been lost."""
    parent = getattr(state, "parent", "")
    try:
        if not parent or _is_awaited(store.read(workflow_of(parent)), parent):
            return False
    except (Damaged, NewerVersion):
        # The parent cannot be read. Once it is set aside, the child is given up.
        return False
    _tell(store, engine_of, state.workflow, "cancelled")
    return True


def _is_awaited(found: Snapshot | None, ticket: str) -> bool:
    return found is not None and any(kept.ticket.id == ticket for kept in found.tickets)


def has_word_of(store: Store, ticket: str) -> bool:
    """Whether the child that works for `ticket` has a result or a decision to report to it."""
    found = store.read(child_of(ticket))
    return found is not None and _has_result(profile_in(found.snapshot).load(found.snapshot))


def _has_result(state: Any) -> bool:
    return bool(state.ended or (isinstance(state, State) and go_on(state)))


def wake(store: Store, ticket: str, hint: Hint) -> None:
    """Make the delayed ticket that a child works for claimable, and hint it."""
    woken = store.wake(ticket)
    if woken is not None:
        hint(woken)


def bridge(store: Store, engine_of: EngineOf, outcome: AnyOutcome[Any], hint: Hint) -> None:
    """After a commit, notify the parent and the children of this workflow. A notice may be lost or arrive twice."""
    state = outcome.state
    parent = getattr(state, "parent", "")
    if parent and _has_result(state):
        wake(store, parent, hint)
    void = set(outcome.dropped)
    asked = outcome.withdraws_tickets or outcome.holds is not None
    at_work = profile_named(state.profile).children(state) if asked else ()
    if outcome.withdraws_tickets:
        void.update(at_work)
    for ticket in void:
        _tell(store, engine_of, child_of(ticket), "cancelled")
    if outcome.holds is not None:
        for ticket in at_work:
            if ticket not in void:
                _tell(store, engine_of, child_of(ticket), "paused" if outcome.holds else "continued")


def _tell(store: Store, engine_of: EngineOf, child: str, word: str) -> None:
    with suppress(Damaged, NewerVersion, Unexpected):
        found = store.read(child)
        if found is None:
            return
        profile = profile_in(found.snapshot)
        if not profile.load(found.snapshot).ended:
            operation = f"{word}/{found.version}"
            event = profile.from_parent[word]("by the workflow that it works for")
            engine_of(profile).apply(child, event, operation=operation)
