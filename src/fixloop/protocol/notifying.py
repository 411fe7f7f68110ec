"""Telling a person of what waits for an answer, in the profiles whose steps are runs of agents: one step for each line.

Pure: the right to run the notify command once. What comes of it decides nothing.
"""

from typing import Any, Final, Protocol

from fixloop.protocol.ticket import Ticket, own_queue

NOTIFY: Final = "notify"
"""The step that runs the command."""
_FIRST: Final = 0
"""As the broker has it: an escalation is critical (K13)."""


class _Draft(Protocol):
    """What is written on, of either profile."""

    def note(self, text: str) -> None: ...


class _Notified(Protocol):
    """The event that tells what came of it, of either profile."""

    @property
    def detail(self) -> str: ...


def notify_ticket(state: Any) -> Ticket:
    """The right to tell a person of the line that was said last."""
    return Ticket(
        id=f"{state.workflow}.{NOTIFY}.{state.lines}",
        workflow=state.workflow,
        step=NOTIFY,
        queue=own_queue(state),
        priority=_FIRST,
        iteration=state.iteration,
    )


def line_of(ticket: Ticket) -> int:
    """The number of the line that a ticket tells of."""
    return int(ticket.id.rpartition(".")[2])


def notified(draft: _Draft, event: _Notified) -> None:
    """Somebody was told, or was not; that decides nothing."""
    draft.note(f"notified: {event.detail}")
