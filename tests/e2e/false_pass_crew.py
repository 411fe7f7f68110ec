"""A crew whose fixer says that the checks passed: the result of a fix is never a specialist's result (A51)."""

from typing import Any

from fixloop.protocol.events import RunFinished
from fixloop.testing import ScriptedCrew, scripted_crew


class _FalsePassCrew(ScriptedCrew):
    def fix(self, work: Any) -> Any:
        """A PASS, where a completion is asked for."""
        super().fix(work)
        ticket, state = work.holding.ticket, work.holding.state
        return RunFinished(
            step="recheck",
            specialist=ticket.specialist,
            iteration=ticket.iteration,
            outcome="passed",
            tree=state.tree,
        )


def false_pass_crew() -> ScriptedCrew:
    """The factory that `FIXLOOP_CREW` names."""
    crew = _FalsePassCrew()
    crew.__dict__.update(scripted_crew().__dict__)
    return crew
