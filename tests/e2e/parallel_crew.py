"""The scripted crew, but RA and EP come back only when both have begun: each needs its own process for that."""

import os
import time
from pathlib import Path
from typing import Any, Final

from fixloop.statefiles.agent_run import Played
from fixloop.testing import ScriptedCrew

PARALLEL: Final = ("ra: ok; ep: ok", ("ra.1.1", "ep.1.1"))
"""The name of the feature whose agents meet, and their tickets."""
_POLL_SECONDS: Final = 0.02


class ParallelCrew(ScriptedCrew):
    """Of any other feature just what it is scripted to be."""

    def __init__(self, executions: str) -> None:
        super().__init__(executions)
        self._begun = Path(executions)

    def play(self, work: Any, snapshot: bytes) -> Played | None:
        """Be the agent, then wait for the other one."""
        played = super().play(work, snapshot)
        state, ticket = work.holding.state, work.holding.ticket
        name, meet = PARALLEL
        if state.name == name and ticket.id.removeprefix(f"{ticket.workflow}.") in meet:
            wanted = {f"{ticket.workflow}.{each}" for each in meet}
            while not work.cancelled() and not wanted <= self._tickets():
                time.sleep(_POLL_SECONDS)
        return played

    def _tickets(self) -> set[str]:
        return {line.partition(" ")[0] for line in self._begun.read_text().splitlines()}


def parallel_crew() -> ParallelCrew:
    """The factory that `FIXLOOP_CREW` names."""
    return ParallelCrew(os.environ["FIXLOOP_EXECUTIONS"])
