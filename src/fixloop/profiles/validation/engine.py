"""The `validation` profile's record for the engine."""

from typing import Final

from fixloop.engine.history import recorded
from fixloop.engine.profile import Profile, Told, iso, load_state
from fixloop.protocol import events as ev
from fixloop.protocol.delivery import RECEIPT_DEADLINE
from fixloop.protocol.documents import change_letter
from fixloop.protocol.ids import ticket_id
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR
from fixloop.protocol.outcome import Outcome
from fixloop.protocol.roles import check_party, worker_of
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OperationName, State
from fixloop.protocol.ticket import LEAST_URGENT
from fixloop.protocol.validation import DECIDE_VERSION, decide

_DEADLINES: Final = frozenset(
    (
        RECEIPT_DEADLINE,
        *(name for operation in OperationName for name in (operation.value, operation.reminder_deadline)),
    )
)


def plain_fields(state: State) -> dict[str, str]:
    """Plain fields stored next to the snapshot, for a person with `redis-cli`."""
    active = state.active
    return {
        "project": state.project,
        "name": state.name,
        # The id contains the issue; a missing profile field means this profile.
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
        "parent": state.parent,
        "updated_at": iso(state.last_at),
        # The first waiver to run out.
        "waiver": min((entry.waiver for entry in state.specialists if entry.waiver), default=""),
    }


_BY_STEPS: Final = frozenset({"failure-report", "fix-request", "escalation"})
"""These are delivered by their own steps, with attempts, a request with its report; others are delivered when said."""


def _letters(outcome: Outcome) -> list[Told]:
    state = outcome.state
    if not state.agent:
        return []
    changes = [
        Told(state.agent, *change_letter(state.workflow, state.issue, change), LEAST_URGENT)
        for change in outcome.transitions
    ]
    return changes + [
        Told(state.agent, message.message_id, message.uid, message.body.kind, message.priority.broker)
        for message in outcome.messages
        if message.recipient == MAIN_AGENT and message.body.kind not in _BY_STEPS
    ]


def _fix_tickets(state: State) -> list[str]:
    """Any attempt of the requested fix: the fixer may be a workflow of handoffs."""
    if state.fixer != "command" or not state.current or state.active.has_passed:
        return []
    active = state.active
    return [
        ticket_id(state.workflow, active.name, "fix", active.iteration, attempt, epoch)
        for attempt in range(1, state.attempts + 1)
        for epoch in range(state.epoch + 1)
    ]


VALIDATION: Final[Profile[State]] = Profile(
    name="validation",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=load_state,
    kinds=ev.KINDS,
    fields=plain_fields,
    recorded=recorded,
    check_party=check_party,
    worker_of=worker_of,
    is_deadline=_DEADLINES.__contains__,
    letters=_letters,
    children=_fix_tickets,
    from_parent={
        "cancelled": lambda why: ev.Cancelled(by="fixloop", reason=why),
        "paused": lambda why: ev.Paused(by="fixloop", reason=why),
        "continued": lambda why: ev.Continued(by="fixloop"),
    },
    supersedes=True,
)
