"""The six specialists, their phases and gates (A2, U1-U3), and their nine status codes (A49-A52, K19).

This file has everything that affects a specialist's status: the codes, who may set them, and their transitions; the
diagram in docs/ is generated from it.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from fixloop.errors import ProtocolError, UsageError
from fixloop.protocol.event import Value


class Specialist(NamedTuple):
    """One validator slot."""

    name: str
    """Short name, as in ids (K3)."""
    phase: str
    failure_type: str
    """The failure type in B20."""
    expected: str
    """Expected Outcome of a fix request (A29, U3)."""

    @property
    def handle(self) -> str:
        """The agent's address, `@{name}-specialist`."""
        return f"@{self.name}-specialist"

    @property
    def title(self) -> str:
        """`Test Runner Specialist`, as a signature."""
        return f"{self.name.replace('-', ' ').title()} Specialist"


SPECIALISTS: Final = (
    Specialist(
        "unit-test",
        "Unit Test Writing",
        "Test Failures",
        "All unit tests pass, public functions and classes have tests",
    ),
    Specialist(
        "integration-test",
        "Integration Test Writing",
        "Test Failures",
        "All integration tests pass, component interactions have tests",
    ),
    Specialist("test-runner", "Test Execution", "Test Failures", "All tests pass, coverage ≥80%"),
    Specialist(
        "code-quality", "Code Quality", "Quality Issues", "0 lint errors, 0 type errors, formatting compliant"
    ),
    Specialist(
        "security",
        "Security Assessment",
        "Security Vulnerabilities",
        "0 critical and 0 high vulnerabilities, no hard-coded secrets",
    ),
    Specialist(
        "e2e-accessibility", "E2E & Accessibility", "E2E Failures", "All user flows pass, WCAG 2.1 AA 100%"
    ),
)
"""In the fixed order of the phases (U2)."""

NAMES: Final = tuple(entry.name for entry in SPECIALISTS)
AFTER_THE_LAST_PHASE: Final = "Completion"


def specialist(name: str) -> Specialist:
    """The specialist called `name`, with or without `-specialist` (K3); UsageError if there is none (A2)."""
    short = name.removeprefix("@").removesuffix("-specialist")
    for entry in SPECIALISTS:
        if entry.name == short:
            return entry
    raise UsageError(f"unknown specialist {name!r}; the six are {', '.join(NAMES)}")


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


WITH_MAIN_AGENT: Final = (Status.AWAITING_FIX, Status.FIXING)
"""The statuses while the main agent has an open request."""


class Role(StrEnum):
    """The three participants that set statuses (A51)."""

    ORCHESTRATOR = "orchestrator"
    SPECIALIST = "specialist"
    MAIN_AGENT = "main agent"


class Transition(Value):
    """One status change (A53-A55)."""

    specialist: str
    before: Status
    after: Status
    role: Role
    reason: str
    at: datetime


MAY_SET: Final = {
    Role.ORCHESTRATOR: frozenset(
        {Status.PENDING, Status.IN_PROGRESS, Status.AWAITING_FIX, Status.ESCALATED, Status.COMPLETED}
    ),
    Role.SPECIALIST: frozenset({Status.IN_PROGRESS, Status.RE_CHECKING, Status.PASS, Status.FAIL}),
    Role.MAIN_AGENT: frozenset({Status.FIXING}),
}


class Edge(NamedTuple):
    """One legal transition."""

    before: Status
    after: Status
    cause: str
    """The cause of the transition, in a few words."""
    source: str
    """The requirement for it."""


EDGES: Final[tuple[Edge, ...]] = (
    Edge(Status.PENDING, Status.IN_PROGRESS, "the phase begins", "A52"),
    Edge(Status.IN_PROGRESS, Status.PASS, "the checks pass", "A52"),
    Edge(Status.IN_PROGRESS, Status.FAIL, "a check fails", "A52"),
    Edge(Status.IN_PROGRESS, Status.ESCALATED, "late, or it cannot run", "K19"),
    Edge(Status.PASS, Status.COMPLETED, "the phase is done", "A52"),
    Edge(Status.FAIL, Status.AWAITING_FIX, "the failure report is sent", "A52"),
    Edge(Status.FAIL, Status.ESCALATED, "no run is left, or no progress", "A52, K19"),
    Edge(Status.AWAITING_FIX, Status.FIXING, "the main agent has the report", "A52"),
    Edge(Status.AWAITING_FIX, Status.ESCALATED, "late, not delivered, blocked", "K19"),
    Edge(Status.FIXING, Status.RE_CHECKING, "the fix is completed", "A52"),
    Edge(Status.FIXING, Status.ESCALATED, "late, unreadable, blocked", "K19"),
    Edge(Status.RE_CHECKING, Status.PASS, "the checks pass", "A52"),
    Edge(Status.RE_CHECKING, Status.FAIL, "a check fails", "A52"),
    Edge(Status.RE_CHECKING, Status.ESCALATED, "late, or it cannot run", "K19"),
    # A decision leads from an escalation back to where the work continues (K20). The status that an extension restores
    # is set in the name of the role whose operation continues.
    Edge(Status.ESCALATED, Status.IN_PROGRESS, "extend or manual fix: the same run again", "K19"),
    Edge(Status.ESCALATED, Status.AWAITING_FIX, "extend: the report again, or more time", "K19"),
    Edge(Status.ESCALATED, Status.FIXING, "extend: more time", "K19"),
    Edge(Status.ESCALATED, Status.RE_CHECKING, "manual fix, or extend: more time", "K19"),
    Edge(Status.ESCALATED, Status.COMPLETED, "skip: failed but proceeding", "K19"),
    # Only a failed confirmation reopens a phase.
    Edge(Status.COMPLETED, Status.RE_CHECKING, "it fails on the final tree", "K37"),
)
"""Every legal transition, each once: used by the checks, and the source of the diagram."""

TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    status: frozenset(edge.after for edge in EDGES if edge.before is status) for status in Status
}
"""`EDGES` by the status before."""


def check_transition(before: Status, after: Status, role: Role) -> None:
    """Refuse a status that `role` may not set or that cannot follow `before` (A51, A52)."""
    if after not in MAY_SET[role]:
        raise ProtocolError(f"the {role} may not set {after}; it may set {_listed(MAY_SET[role])}")
    if after not in TRANSITIONS[before]:
        raise ProtocolError(f"{after} cannot follow {before}; {_listed(TRANSITIONS[before])} can")


def _listed(statuses: frozenset[Status]) -> str:
    return ", ".join(sorted(statuses))
