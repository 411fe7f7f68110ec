"""A crew whose fixer returns something that is no event, so that the error is raised after the step."""

import os
from typing import Any

from fixloop.testing import ScriptedCrew


class BrokenCrew(ScriptedCrew):
    """Scripted, but for the end of a fix whose script says `lie`."""

    def fix(self, work: Any) -> Any:
        """No event where the script lies."""
        done = super().fix(work)
        return {"not": "an event"} if "lie" in work.holding.state.name else done


def broken_crew() -> BrokenCrew:
    """The factory that `FIXLOOP_CREW` names."""
    return BrokenCrew(os.environ.get("FIXLOOP_EXECUTIONS", ""))
