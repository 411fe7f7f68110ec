"""Scripted specialists and fixers for tests and benchmarks: the engine at work without a tool or a repository.

`FIXLOOP_CREW=fixloop.testing:scripted_crew` makes a worker use them. A workflow's script is its feature's name:
`"scripted 3 1 0"` fails with 3 failures, then 1, then passes; a fix changes the tree and touches one file.
"""

from typing import Any, Final, Literal, cast

from fixloop.protocol.events import FixCompleted, RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.state import Completion, State
from fixloop.protocol.ticket import Ticket

__all__ = ["MESSAGE_BYTES", "ScriptedCrew", "script_of", "scripted_crew"]

MESSAGE_BYTES: Final = 1024
"""How much a scripted run has to say in all."""


def script_of(name: str) -> tuple[int, ...]:
    """The failure counts in a scripted feature's name; `(0,)` where it has none."""
    return tuple(int(word) for word in name.split() if word.isdigit()) or (0,)


class ScriptedCrew:
    """Does what the feature's name says, at once."""

    acknowledges = False

    def check(self, work: Any) -> RunFinished:
        """Fail or pass as scripted."""
        state, ticket = _of(work)
        script = script_of(state.name)
        count = script[min(ticket.iteration, len(script)) - 1]
        text = "x" * (MESSAGE_BYTES // max(1, count))
        failures = tuple(
            Failure(
                name=f"test_{n}", file="test_scripted.py", line=n, error_type="AssertionError", message=text
            )
            for n in range(1, count + 1)
        )
        return RunFinished(
            step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
            specialist=ticket.specialist,
            iteration=ticket.iteration,
            attempt=ticket.attempt,
            outcome="failed" if count else "passed",
            tree=state.tree,
            failures=failures,
        )

    def fix(self, work: Any) -> FixCompleted:
        """Claim to have mended everything, with a new tree."""
        _, ticket = _of(work)
        completion = Completion(
            iteration=ticket.iteration,
            by="scripted fixer",
            summary="scripted",
            fixes=(f"fix {ticket.iteration}",),
            files=("scripted.py",),
            tip=f"commit-{ticket.iteration}",
            tree=f"tree-{ticket.iteration}",
        )
        return FixCompleted(specialist=ticket.specialist, completion=completion)

    def notify(self, work: Any) -> str:
        """Nobody is told."""
        return "scripted"

    def settle(self, work: Any, state: State) -> None:
        """Nothing lies outside."""


def scripted_crew() -> ScriptedCrew:
    """The factory that `FIXLOOP_CREW` names."""
    return ScriptedCrew()


def _of(work: Any) -> tuple[State, Ticket]:
    return work.holding.state, work.holding.ticket
