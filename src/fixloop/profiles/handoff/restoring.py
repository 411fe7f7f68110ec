"""A handoff workflow whose Redis was lost goes on from what its named files hold (K23)."""

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft, Outcome
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.moment import Moment
from fixloop.protocol.refusals import Unexpected


def restored(event: ev.HandoffsRestored, now: Moment) -> Outcome:
    """
    The state as it was; what was asked of an agent is asked again, and its time begins anew.

    Raises:
        Unexpected: it ended; there is nothing to go on with.
    """
    before = Handoffs.model_validate(event.state)
    if before.ended:
        raise Unexpected(
            f"workflow {before.workflow} ended ({before.outcome}); there is nothing to go on with"
        )
    draft = Draft(before.with_(rebuilt=before.rebuilt + 1), now)
    draft.note("rebuilt from the named files")
    draft.ask_again()
    return draft.outcome()
