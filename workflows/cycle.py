"""The canvas of the `cycle` profile, built from state: each agent after those it depends on, then the end.

Agents that may start together have a canvas each, without a group, because only the state waits for all (K31).
"""

from collections.abc import Iterator

from fixloop.profiles.cycle.outcome import finish_ticket
from fixloop.profiles.cycle.records import AgentStatus
from fixloop.profiles.cycle.state import Cycle
from fixloop.protocol.ticket import Ticket, work_ticket


def following(state: Cycle, ticket: Ticket) -> Iterator[Ticket]:
    """The tickets that come after `ticket` if every agent succeeds."""
    if ticket.step != "work":
        return
    completed = {agent.key for agent in state.agents if state.completed(agent.key)} | {ticket.specialist}
    # Without agents that already work, wait for a person, or are outside.
    held = {key for escalation in state.escalations for key in escalation.agents}
    left = [
        agent
        for agent in state.agents
        if agent.status in (AgentStatus.IDLE, AgentStatus.WAITING)
        and agent.command
        and not agent.asked
        and agent.key not in held | completed
    ]
    while ready := [agent for agent in left if completed.issuperset((*agent.depends_on, *agent.waits_for))]:
        agent = ready[0]
        yield work_ticket(state, agent.with_(runs=agent.runs + 1, attempt=1))
        completed.add(agent.key)
        left.remove(agent)
    if len(completed) == len(state.agents):
        yield finish_ticket(state)
