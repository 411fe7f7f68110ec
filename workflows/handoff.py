"""The canvas of the `handoff` profile, built from state: planner | builder | reviewer | fixer | reviewer.

It ends with the review after a fix: its result begins the next round, or ends the workflow. No task waits for an
outside agent: the canvas ends there (K31).
"""

from collections.abc import Iterator
from typing import Final

from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.ticket import Ticket, work_ticket

_NEXT: Final = {"planner": "builder", "builder": "reviewer", "reviewer": "fixer", "fixer": "reviewer"}


def following(state: Handoffs, ticket: Ticket) -> Iterator[Ticket]:
    """The tickets that come after `ticket` if every agent succeeds and the review finds something."""
    if ticket.step != "work":
        return
    activations = {agent.name: agent.activations for agent in state.agents}
    name = ticket.specialist
    while True:
        before, name = name, _NEXT[name]
        agent = state.agent(name)
        if not agent.command:
            return
        activations[name] += 1
        yield work_ticket(state, agent.with_(activations=activations[name], attempt=1))
        if before == "fixer":
            return
