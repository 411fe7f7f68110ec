"""Who may send which message to whom, who may send which event, and who does a step (A3, A51, K26, R1).

Decisions set a status in the name of a role. Roles are enforced by refusing events from the wrong sender, whether from
a command, from a mailbox or as the result of another party's ticket.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import BaselineBegun, Event, RunFinished
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER
from fixloop.protocol.specialists import NAMES, SPECIALISTS, specialist as slot
from fixloop.protocol.ticket import Ticket

SPECIALIST: Final = "@{specialist}-specialist"
"""Stands for each of the six specialists in a table."""


class ForbiddenRoute(ProtocolError):
    """A message on a route that is not in its profile's table; it was not sent."""


class Route(NamedTuple):
    """A message type with its sender and recipient."""

    kind: str
    """The body's `kind`."""
    sender: str
    recipient: str


ROUTES: Final[Mapping[str, frozenset[Route]]] = {
    "validation": frozenset(
        {
            Route("failure-detected", SPECIALIST, ORCHESTRATOR),
            Route("failure-report", ORCHESTRATOR, MAIN_AGENT),
            Route("fix-request", ORCHESTRATOR, MAIN_AGENT),
            Route("fix-completion", MAIN_AGENT, ORCHESTRATOR),
            Route("revalidation-trigger", ORCHESTRATOR, SPECIALIST),
            Route("revalidation-result", SPECIALIST, ORCHESTRATOR),
            Route("success", ORCHESTRATOR, MAIN_AGENT),
            Route("escalation", ORCHESTRATOR, MAIN_AGENT),
            Route("escalation", ORCHESTRATOR, USER),
            # To the late party (A59).
            Route("timeout-reminder", ORCHESTRATOR, MAIN_AGENT),
            Route("timeout-reminder", ORCHESTRATOR, SPECIALIST),
            Route("error-notification", ORCHESTRATOR, MAIN_AGENT),
            Route("protocol-violation", ORCHESTRATOR, MAIN_AGENT),
        }
    )
}
"""By profile; a profile without a table sends no messages."""

_SLOTS: Final = frozenset(entry.handle for entry in SPECIALISTS)
HANDLES: Final = _SLOTS | {ORCHESTRATOR, MAIN_AGENT, USER}
"""Every address in the `validation` profile."""


def check_route(profile: str, kind: str, sender: str, recipient: str) -> None:
    """Refuse a message for which the profile has no route (A3)."""
    found = violation(profile, kind, sender, recipient)
    if found:
        raise ForbiddenRoute(found)


def violation(profile: str, kind: str, sender: str, recipient: str) -> str:
    """Why a message may not take this route, in one sentence; empty if it may."""
    routes = ROUTES.get(profile, frozenset())
    if Route(kind, _role_of(sender), _role_of(recipient)) in routes:
        return ""
    known = sorted(f"{route.sender} → {route.recipient}" for route in routes if route.kind == kind)
    allowed = " or ".join(known) or f"none, the {profile} profile knows no such message"
    return f"{kind} from {sender} to {recipient} is on no route; allowed is {allowed}"


def _role_of(agent: str) -> str:
    return SPECIALIST if agent in _SLOTS else agent


class WrongParty(Unexpected):
    """An event from a party that may not send it; nothing was changed."""


_ANSWERS: Final = frozenset({MAIN_AGENT, USER})
"""The main agent's side: an agent, or a person in its place."""
_PEOPLE: Final = frozenset({USER, ORCHESTRATOR})

MAY_BRING: Final[Mapping[str, frozenset[str]]] = {
    "workflow-started": frozenset({USER, MAIN_AGENT, ORCHESTRATOR}),
    "run-finished": frozenset({SPECIALIST}),
    "baseline-begun": frozenset({SPECIALIST}),
    "report-delivered": frozenset({ORCHESTRATOR}),
    "message-stored": frozenset({ORCHESTRATOR}),
    "delivery-failed": frozenset({ORCHESTRATOR}),
    "receipt-given": _ANSWERS,
    "fix-acknowledged": _ANSWERS,
    "fix-completed": _ANSWERS,
    "fix-failed": frozenset({MAIN_AGENT}),
    "answer-rejected": _ANSWERS,
    "blocker-signalled": _ANSWERS,
    "deadline-reached": frozenset({ORCHESTRATOR}),
    # The main agent is also the main orchestrator (K27): it may decide escalations addressed to it, and no others.
    "decision-made": _ANSWERS,
    "manual-fix-done": frozenset({USER}),
    "person-notified": frozenset({ORCHESTRATOR}),
    "branch-pushed": _PEOPLE,
    "result-noted": frozenset({USER}),
    "cancelled": _PEOPLE,
    "paused": _PEOPLE,
    "continued": _PEOPLE,
    "event-refused": frozenset({ORCHESTRATOR}),
}
"""The handles that an event may come from, by the event's kind."""

_WORKERS: Final[Mapping[str, str]] = {
    "validate": SPECIALIST,
    "recheck": SPECIALIST,
    "confirm": SPECIALIST,
    "fix": MAIN_AGENT,
}
"""The party that does a step; all other steps are the orchestrator's."""


def check_party(event: Event, sender: str) -> None:
    """Refuse an event from a party that may not send it (A51); an empty handle is an unknown sender."""
    may = MAY_BRING.get(event.kind, frozenset({ORCHESTRATOR}))
    specialist = getattr(event, "specialist", "")
    expected = slot(specialist).handle if specialist in NAMES else SPECIALIST
    # A specialist may report its own results, and not another's.
    is_own = isinstance(event, RunFinished | BaselineBegun) and sender == expected
    if sender and (SPECIALIST if is_own else sender) not in may:
        named = " or ".join(sorted(may)).replace(SPECIALIST, expected)
        raise WrongParty(f"{event.kind} is not for {sender} to bring; it comes from {named}")


def worker_of(ticket: Ticket) -> str:
    """The handle of the party that does a ticket's work and reports its result."""
    party = _WORKERS.get(ticket.step, ORCHESTRATOR)
    return slot(ticket.specialist).handle if party == SPECIALIST else party


def handle_of(name: str) -> str:
    """The handle for `test-runner`, `main-agent` or `user`; an unknown name is returned unchanged."""
    if name in HANDLES:
        return name
    bare = name.removeprefix("@").removesuffix("-specialist")
    if bare in NAMES:
        return slot(bare).handle
    return {"main-agent": MAIN_AGENT, "orchestrator": ORCHESTRATOR, "user": USER}.get(bare.lower(), name)
