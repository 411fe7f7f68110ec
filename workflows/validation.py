"""The canvas of the `validation` profile, built from state: validate | report | fix | recheck.

A chain's hop is the hint for the next ticket. Ticket ids are derived, so the chain can name tickets that do not exist
yet; a different next ticket (a PASS, a wait, an escalation) replaces the rest.
"""

from fixloop.protocol.ids import ticket_id
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Priority, Ticket


def following(state: State, ticket: Ticket) -> list[Ticket]:
    """The tickets that come after `ticket` if its checks fail and the fixer fixes them."""
    if ticket.step in ("attend", "confirm", "deliver", "escalate", "notify", "push"):
        return []
    rest = []
    n = ticket.iteration
    if ticket.step in ("validate", "recheck"):
        rest.append(_later(state, ticket, "report", n))
    if state.agent:
        # No task waits for the mailbox's reader: the canvas ends there (K31).
        rest.append(_later(state, ticket, "deliver", n))
    if ticket.step != "fix" and state.fixer == "command":
        rest.append(_later(state, ticket, "fix", n))
    if state.fixer == "command":
        rest.append(_later(state, ticket, "recheck", n + 1))
    return rest


def _later(state: State, ticket: Ticket, step: str, iteration: int) -> Ticket:
    name, own = ticket.specialist, state.queue
    queues = {"fix": own or "fixloop.fix", "recheck": own or f"fixloop.{name}"}
    return ticket.model_copy(
        update={
            "id": ticket_id(ticket.workflow, name, step, iteration, 1, state.epoch),
            "step": step,
            "iteration": iteration,
            "attempt": 1,
            "queue": queues.get(step, f"{own or 'fixloop'}.control"),
            "priority": Priority.HIGH.broker if step in ("report", "recheck") else ticket.priority,
        }
    )
