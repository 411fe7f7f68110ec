"""The participants, and who may send which handoff to whom (D2-D13, G9, G20)."""

from enum import StrEnum
from typing import Final

from fixloop.errors import RefusedError
from fixloop.intake.feature import Kind as Kind, Priority as Priority
from fixloop.protocol.event import ORCHESTRATOR, Unexpected

AGENTS: Final = ("planner", "builder", "reviewer", "fixer")
"""Class 2 of the seed (D13, U14)."""


class HandoffStatus(StrEnum):
    """The status of a handoff (D4)."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    COMPLETED = "completed"
    REJECTED = "rejected"

    @property
    def folder(self) -> str:
        """The folder of its file (D14); a rejected handoff is among the completed ones (G9)."""
        return "completed" if self is HandoffStatus.REJECTED else self.value


class HandoffType(StrEnum):
    """The message types (D6-D11)."""

    TASK_HANDOFF = "task_handoff"
    REVIEW_REQUEST = "review_request"
    FIX_REQUEST = "fix_request"
    REREVIEW_REQUEST = "rereview_request"
    COMPLETION = "completion"
    ESCALATION = "escalation"

    @property
    def is_handoff(self) -> bool:
        """Whether it is stored as a file (G20): the two types for the orchestrator are not."""
        return self in _ROUTES


_ROUTES: Final = {
    HandoffType.TASK_HANDOFF: ("planner", "builder"),
    HandoffType.REVIEW_REQUEST: ("builder", "reviewer"),
    HandoffType.FIX_REQUEST: ("reviewer", "fixer"),
    HandoffType.REREVIEW_REQUEST: ("fixer", "reviewer"),
}


class ForbiddenRoute(Unexpected):
    """A message without a row in the table; it was not sent."""


def receiver(kind: HandoffType) -> str:
    """The recipient of this kind of handoff."""
    return _ROUTES[kind][1]


def sent_by(agent: str) -> HandoffType:
    """The kind of handoff that an agent sends; each has exactly one."""
    return next(kind for kind, (sender, _) in _ROUTES.items() if sender == agent)


def check_route(kind: str, sender: str, recipient: str) -> HandoffType:
    """Refuse (ForbiddenRoute) a message of an unknown type, or between agents that may not send it (D5, D12)."""
    if kind not in list(HandoffType):
        raise ForbiddenRoute(f"{kind!r} is no type of message; there are {', '.join(HandoffType)}")
    found = HandoffType(kind)
    ends = _ROUTES.get(found)
    to_orchestrator = ends is None and sender in AGENTS and recipient == ORCHESTRATOR
    if (sender, recipient) != ends and not to_orchestrator:
        wanted = " to ".join(ends) if ends else "any agent to orchestrator"
        raise ForbiddenRoute(f"a {kind} from {sender} to {recipient} is on no route; it goes from {wanted}")
    return found


def check_agent(name: str) -> None:
    """Refuse a name that takes no part. RefusedError names the participants."""
    if name not in AGENTS:
        raise RefusedError(f"{name!r} is no agent of a handoff workflow; there are {', '.join(AGENTS)}")
