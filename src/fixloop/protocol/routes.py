"""Who may say what to whom: one table of routes for each profile (A3, K26, R1).

A message takes a route that its profile's table has, or it is not said. The `validation` table has no row between
a specialist and the main agent: both talk to the orchestrator only.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER
from fixloop.protocol.specialists import SPECIALISTS

SPECIALIST: Final = "@{specialist}-specialist"
"""Stands for each of the six in a table."""


class ForbiddenRoute(ProtocolError):
    """A message on a route that its profile's table does not have; it was not said."""


class Route(NamedTuple):
    """One row: a type of message and its two ends."""

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
"""By profile; a profile without a table says nothing."""

_SLOTS: Final = frozenset(entry.handle for entry in SPECIALISTS)
HANDLES: Final = _SLOTS | {ORCHESTRATOR, MAIN_AGENT, USER}
"""Every address of the `validation` profile."""


def check_route(profile: str, kind: str, sender: str, recipient: str) -> None:
    """Refuse a message that the profile has no route for (A3)."""
    found = violation(profile, kind, sender, recipient)
    if found:
        raise ForbiddenRoute(found)


def violation(profile: str, kind: str, sender: str, recipient: str) -> str:
    """Why a message may not take this route, in one sentence; empty when it may."""
    routes = ROUTES.get(profile, frozenset())
    if Route(kind, _end(sender), _end(recipient)) in routes:
        return ""
    known = sorted(f"{route.sender} → {route.recipient}" for route in routes if route.kind == kind)
    allowed = " or ".join(known) or f"none, the {profile} profile knows no such message"
    return f"{kind} from {sender} to {recipient} is on no route; allowed is {allowed}"


def _end(agent: str) -> str:
    return SPECIALIST if agent in _SLOTS else agent
