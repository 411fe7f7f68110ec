"""The scripted crew, but some agents return only when others have: each needs its own process."""

import os
import time
from pathlib import Path
from typing import Any, Final

from fixloop.statefiles.agent_run import Played
from fixloop.testing import ScriptedCrew

PARALLEL: Final = ("ra: ok; ep: ok", ("ra.1.1", "ep.1.1"))
"""The name of the feature whose agents meet, and their tickets."""
OUTLASTING: Final = "docs: ok"
"""The name of the feature whose `ra` returns when `docs` has started, and whose `docs` when all others are done."""
_POLL_SECONDS: Final = 0.02


class ParallelCrew(ScriptedCrew):
    """For any other feature, the scripted agent."""

    def __init__(self, executions: str) -> None:
        super().__init__(executions)
        self._begun = Path(executions)

    def play(self, work: Any, snapshot: bytes) -> Played | None:
        """Act as the agent, then wait for the others."""
        played = super().play(work, snapshot)
        while not work.cancelled() and not self._may_return(work):
            time.sleep(_POLL_SECONDS)
        return played

    def _may_return(self, work: Any) -> bool:
        name, ticket = str(work.holding.state.name), work.holding.ticket
        own, begun = ticket.id.removeprefix(f"{ticket.workflow}."), self._tickets(ticket.workflow)
        if name == PARALLEL[0] and own in PARALLEL[1]:
            return begun.issuperset(PARALLEL[1])
        if name == OUTLASTING and own == "ra.1.1":
            return "docs.1.1" in begun
        if name == OUTLASTING and own == "docs.1.1" and "vas.1.1" in begun:
            left: list[str] = [held.ticket.id for held in work.store.read(ticket.workflow).tickets]
            return left == [ticket.id]
        return name != OUTLASTING or own != "docs.1.1"

    def _tickets(self, workflow: str) -> set[str]:
        lines = self._begun.read_text().splitlines()
        return {line.partition(" ")[0].removeprefix(f"{workflow}.") for line in lines}


def parallel_crew() -> ParallelCrew:
    """The factory that `FIXLOOP_CREW` names."""
    return ParallelCrew(os.environ["FIXLOOP_EXECUTIONS"])
