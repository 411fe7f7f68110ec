"""The ticket with which a workflow that works for another one asks, now and then, whether anybody still waits for it.

Its holder looks and puts it off again; nothing of that is in a history. It is made with the workflow, and again
where all tickets of it are withdrawn, so that one that waits for a person learns of its parent's end by itself.
"""

from typing import Any, Final

from fixloop.protocol.ticket import Ticket

ATTEND: Final = "attend"
"""The step that looks."""
LOOK_AGAIN_SECONDS: Final = 60.0
"""So late, at worst, a word between a workflow and its child is made up for where it was lost."""
LEAST_URGENT: Final = 9


def attend_ticket(state: Any, version: int) -> Ticket:
    """The right to look; `version` is the workflow's, as the commit that makes the ticket leaves it."""
    return Ticket(
        id=f"{state.workflow}.{ATTEND}.{version}",
        workflow=state.workflow,
        step=ATTEND,
        queue=f"{state.queue or 'fixloop'}.control",
        priority=LEAST_URGENT,
        delay_seconds=LOOK_AGAIN_SECONDS,
    )
