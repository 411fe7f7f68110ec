"""Who may bring which event, and whose work a step is (A51).

A status is set in the name of a role, by what a decision makes of an event. So the roles hold if no event comes from
anybody whose it is not: neither through a command, nor from a mailbox, nor as the result of somebody else's ticket.
"""

from collections.abc import Mapping
from typing import Final

from fixloop.protocol.events import BaselineBegun, Event, RunFinished
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.routes import HANDLES, SPECIALIST
from fixloop.protocol.specialists import NAMES
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.ticket import Ticket


class WrongParty(Unexpected):
    """An event from a party that may not bring it; nothing was changed."""


_ANSWERS: Final = frozenset({MAIN_AGENT, USER})
"""The main agent's side may be an agent, or a person in its place."""
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
    # The main agent is the main orchestrator, too (K27): it may decide what was escalated to it, and nothing else.
    "decision-made": _ANSWERS,
    "manual-fix-done": frozenset({USER}),
    "person-notified": frozenset({ORCHESTRATOR}),
    "branch-pushed": _PEOPLE,
    "cancelled": _PEOPLE,
    "paused": _PEOPLE,
    "continued": _PEOPLE,
    "event-refused": frozenset({ORCHESTRATOR}),
}
"""By an event's kind, the handles it may come from."""

_WORKERS: Final[Mapping[str, str]] = {
    "validate": SPECIALIST,
    "recheck": SPECIALIST,
    "confirm": SPECIALIST,
    "fix": MAIN_AGENT,
}
"""Whose work a step is; all others are the orchestrator's."""


def check_party(event: Event, sender: str) -> None:
    """Refuse an event from a party that may not bring it (A51); an empty handle is an unknown sender."""
    may = MAY_BRING.get(event.kind, frozenset({ORCHESTRATOR}))
    specialist = getattr(event, "specialist", "")
    expected = slot(specialist).handle if specialist in NAMES else SPECIALIST
    # Any specialist may bring what it found, and none what another found.
    is_own = isinstance(event, RunFinished | BaselineBegun) and sender == expected
    if sender and (SPECIALIST if is_own else sender) not in may:
        named = " or ".join(sorted(may)).replace(SPECIALIST, expected)
        raise WrongParty(f"{event.kind} is not for {sender} to bring; it comes from {named}")


def worker_of(ticket: Ticket) -> str:
    """The handle of the party that does a ticket's work and brings its result."""
    party = _WORKERS.get(ticket.step, ORCHESTRATOR)
    return slot(ticket.specialist).handle if party == SPECIALIST else party


def handle_of(name: str) -> str:
    """`test-runner`, `main-agent` or `user` as the handle it stands for; what is unknown stays as it is."""
    if name in HANDLES:
        return name
    bare = name.removeprefix("@").removesuffix("-specialist")
    if bare in NAMES:
        return slot(bare).handle
    return {"main-agent": MAIN_AGENT, "orchestrator": ORCHESTRATOR, "user": USER}.get(bare.lower(), name)
