"""Who takes part, and who passes what to whom (D2-D13, G9, G20)."""

from enum import StrEnum
from typing import Final

from fixloop.errors import RefusedError
from fixloop.intake.feature import Kind as Kind
from fixloop.intake.feature import Priority as Priority
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.refusals import Unexpected

AGENTS: Final = ("planner", "builder", "reviewer", "fixer")
"""Class 2 of the seed (D13, U14)."""


class HandoffStatus(StrEnum):
    """Where a handoff stands (D4)."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    COMPLETED = "completed"
    REJECTED = "rejected"

    @property
    def folder(self) -> str:
        """The directory its file is in (D14); a rejected one lies among the completed (G9)."""
        return "completed" if self is HandoffStatus.REJECTED else self.value


class HandoffType(StrEnum):
    """What is said (D6-D11)."""

    TASK_HANDOFF = "task_handoff"
    REVIEW_REQUEST = "review_request"
    FIX_REQUEST = "fix_request"
    REREVIEW_REQUEST = "rereview_request"
    COMPLETION = "completion"
    ESCALATION = "escalation"

    @property
    def is_handoff(self) -> bool:
        """Whether it is kept as a file (G20): the two that go to the orchestrator are not."""
        return self in _ROUTES


_ROUTES: Final = {
    HandoffType.TASK_HANDOFF: ("planner", "builder"),
    HandoffType.REVIEW_REQUEST: ("builder", "reviewer"),
    HandoffType.FIX_REQUEST: ("reviewer", "fixer"),
    HandoffType.REREVIEW_REQUEST: ("fixer", "reviewer"),
}
_LEGAL: Final = {
    HandoffStatus.PENDING: (HandoffStatus.ACCEPTED, HandoffStatus.REJECTED),
    HandoffStatus.ACCEPTED: (HandoffStatus.COMPLETED, HandoffStatus.REJECTED),
}


class ForbiddenRoute(Unexpected):
    """A message that no row of the table has; it was not sent."""


def receiver(kind: HandoffType) -> str:
    """Who gets this kind of handoff."""
    return _ROUTES[kind][1]


def sent_by(agent: str) -> HandoffType:
    """What an agent passes on; each has one kind of handoff."""
    return next(kind for kind, (sender, _) in _ROUTES.items() if sender == agent)


def check_route(kind: str, sender: str, recipient: str) -> HandoffType:
    """Refuse (ForbiddenRoute) a message of an unknown type, or that these two may not send (D5, D12)."""
    if kind not in list(HandoffType):
        raise ForbiddenRoute(f"{kind!r} is no type of message; there are {', '.join(HandoffType)}")
    found = HandoffType(kind)
    ends = _ROUTES.get(found)
    to_orchestrator = ends is None and sender in AGENTS and recipient == ORCHESTRATOR
    if (sender, recipient) != ends and not to_orchestrator:
        wanted = " to ".join(ends) if ends else "any agent to orchestrator"
        raise ForbiddenRoute(f"a {kind} from {sender} to {recipient} is on no route; it goes from {wanted}")
    return found


def check_move(before: HandoffStatus, after: HandoffStatus) -> None:
    """Refuse (RefusedError) a move that is none of pending → accepted → completed, or a rejection (D16, G9)."""
    if after not in _LEGAL.get(before, ()):
        raise RefusedError(f"a handoff that is {before} cannot become {after}")


def check_agent(name: str) -> None:
    """Refuse somebody who takes no part. Raises RefusedError: naming those who do."""
    if name not in AGENTS:
        raise RefusedError(f"{name!r} is no agent of a handoff workflow; there are {', '.join(AGENTS)}")
