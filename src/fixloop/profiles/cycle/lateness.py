"""Runs that are late: one request to converge, then a person decides (G15, U13)."""

from fixloop.profiles.cycle import events as ev
from fixloop.profiles.cycle.escalating import escalate
from fixloop.profiles.cycle.messages import Input
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.sending import send
from fixloop.profiles.cycle.state import Agent
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.refusals import NotDue, Unexpected


def deadline_reached(draft: Draft, event: ev.DeadlineReached) -> None:
    """
    A run's limit passed (G7: the timer acts strictly after it).

    Raises:
        NotDue: it lies ahead.
        Unexpected: what it was for is over.
    """
    if draft.clock <= event.due:
        raise NotDue(f"{event.name} falls due in {event.due - draft.clock:.1f} s")
    what, _, key = event.name.partition("/")
    agent = draft.state.agent(key)
    if not agent.asked:
        raise Unexpected(f"{event.name} no longer matters: {key} stands at {agent.status}")
    if what == "run" and not agent.converging:
        _converge(draft, agent)
        return
    escalate(
        draft, "timeout", f"{key} did not report within its time, nor after the request to converge", (key,)
    )


def _converge(draft: Draft, agent: Agent) -> None:
    seconds = draft.state.limits.converge_seconds
    body = Input(
        input=InputKind.CONVERGENCE,
        source=ORCHESTRATOR,
        summary=f"The run's time is over; {seconds / 60:g} minutes are left to come to an end",
        version=draft.state.version,
        actions=("Finish what you are at, write your documents and report what is left as issues",),
        criteria=("PHASE_RESULT is reported",),
        next_step="Output PHASE_RESULT when complete.",
        previous_iteration=draft.state.iteration,
        current_iteration=draft.state.iteration,
    )
    send(draft, agent.key, body, f"{agent.runs}.{agent.attempt}")
    draft.agent(agent.key, converging=True)
    draft.set_deadline(f"converge/{agent.key}", draft.clock + seconds)
