"""The `validation` profile as the engine knows it."""

from typing import Final

from fixloop.history import recorded
from fixloop.profiles.profile import Profile, iso
from fixloop.protocol.delivering import RECEIPT_DEADLINE
from fixloop.protocol.events import DeadlineReached, EventRefused
from fixloop.protocol.messages import ORCHESTRATOR
from fixloop.protocol.roles import check_party, worker_of
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OperationName, State
from fixloop.protocol.validation import DECIDE_VERSION, decide
from fixloop.snapshots import load_state

__all__ = ["VALIDATION", "plain_fields"]

_DEADLINES: Final = frozenset(
    (
        RECEIPT_DEADLINE,
        *(name for operation in OperationName for name in (operation.value, operation.reminder_deadline)),
    )
)


def plain_fields(state: State) -> dict[str, str]:
    """What a person would look for with `redis-cli`, beside the snapshot (DESIGN, Redis)."""
    active = state.active
    return {
        "project": state.project,
        "name": state.name,
        # The id tells the issue, and all are of this profile that do not say otherwise.
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
        "updated_at": iso(state.last_at),
    }


VALIDATION: Final[Profile[State]] = Profile(
    name="validation",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=load_state,
    fields=plain_fields,
    recorded=recorded,
    refused=EventRefused,
    reached=DeadlineReached,
    check_party=check_party,
    worker_of=worker_of,
    is_deadline=_DEADLINES.__contains__,
    supersedes=True,
)
