"""The nine status codes, who may set them, and which may follow which (A49-A52, K19).

Everything that affects a specialist's status is in this file; the diagram in docs/ is drawn from it.
"""

from enum import StrEnum
from typing import Final

from fixloop.errors import ProtocolError

__all__ = ["MAY_SET", "TRANSITIONS", "Role", "Status", "check_transition"]


class Status(StrEnum):
    """The status of one (workflow, specialist) (A50)."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    AWAITING_FIX = "AWAITING_FIX"
    FIXING = "FIXING"
    RE_CHECKING = "RE_CHECKING"
    PASS = "PASS"
    FAIL = "FAIL"
    ESCALATED = "ESCALATED"
    COMPLETED = "COMPLETED"


class Role(StrEnum):
    """The three participants that set statuses (A51)."""

    ORCHESTRATOR = "orchestrator"
    SPECIALIST = "specialist"
    MAIN_AGENT = "main agent"


MAY_SET: Final = {
    Role.ORCHESTRATOR: frozenset(
        {Status.PENDING, Status.IN_PROGRESS, Status.AWAITING_FIX, Status.ESCALATED, Status.COMPLETED}
    ),
    Role.SPECIALIST: frozenset({Status.IN_PROGRESS, Status.RE_CHECKING, Status.PASS, Status.FAIL}),
    Role.MAIN_AGENT: frozenset({Status.FIXING}),
}

TRANSITIONS: Final[dict[Status, frozenset[Status]]] = {
    Status.PENDING: frozenset({Status.IN_PROGRESS}),
    Status.IN_PROGRESS: frozenset({Status.PASS, Status.FAIL, Status.ESCALATED}),
    Status.PASS: frozenset({Status.COMPLETED}),
    Status.FAIL: frozenset({Status.AWAITING_FIX, Status.ESCALATED}),
    Status.AWAITING_FIX: frozenset({Status.FIXING, Status.ESCALATED}),
    Status.FIXING: frozenset({Status.RE_CHECKING, Status.ESCALATED}),
    Status.RE_CHECKING: frozenset({Status.PASS, Status.FAIL, Status.ESCALATED}),
    # Out of an escalation a decision leads back to where the work goes on (K19, K20).
    Status.ESCALATED: frozenset(
        {Status.AWAITING_FIX, Status.FIXING, Status.RE_CHECKING, Status.IN_PROGRESS, Status.COMPLETED}
    ),
    # Only a failed confirmation reopens a phase (K37).
    Status.COMPLETED: frozenset({Status.RE_CHECKING}),
}


def check_transition(before: Status, after: Status, role: Role) -> None:
    """
    Refuse a status that `role` may not set or that cannot follow `before` (A51, A52).

    Raises:
        ProtocolError: naming role, both statuses and what would be legal.
    """
    if after not in MAY_SET[role]:
        raise ProtocolError(f"the {role} may not set {after}; it may set {_listed(MAY_SET[role])}")
    if after not in TRANSITIONS[before]:
        raise ProtocolError(f"{after} cannot follow {before}; {_listed(TRANSITIONS[before])} can")


def _listed(statuses: frozenset[Status]) -> str:
    return ", ".join(sorted(statuses))
