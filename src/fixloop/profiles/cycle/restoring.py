"""A cycle whose Redis was lost goes on from what its named files hold (K23)."""

from fixloop.profiles.cycle import events as ev
from fixloop.profiles.cycle.outcome import Draft, Outcome
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.statuses import AgentStatus
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.moment import Moment
from fixloop.protocol.refusals import Unexpected


def restored(event: ev.CycleRestored, now: Moment) -> Outcome:
    """
    The state as it was; what was asked of an agent is asked again, and its time begins anew.

    Raises:
        Unexpected: it ended; there is nothing to go on with.
    """
    before = Cycle.model_validate(event.state)
    if before.ended:
        raise Unexpected(f"cycle {before.cycle_id} ended ({before.outcome}); there is nothing to go on with")
    draft = Draft(before.with_(rebuilt=before.rebuilt + 1), now)
    draft.tell(ORCHESTRATOR.capitalize(), f"Rebuilt the cycle from its files, v{before.version}")
    draft.ask_again()
    for agent in before.agents:
        if agent.asked and agent.converging and not agent.command:
            draft.set_deadline(f"converge/{agent.key}", draft.clock + before.limits.converge_seconds)
    waits = before.escalations or before.open_blockers() or before.closing
    if not waits and all(agent.status is AgentStatus.COMPLETED for agent in before.agents):
        draft.ask_to_finish()
    return draft.outcome()
