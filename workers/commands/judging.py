"""A run that passed after a fix is a claim: what has to hold before it is a verdict.

Each judge looks at one thing that the fix could not choose, and yields what a person has to decide.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.model import Check, Configuration
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import Finding
from fixloop.repository.tree import Delta, deltas
from workers.commands.check_run import Ran
from workers.steps.step import Step
from workers.workspaces.ground import Ground

Run = Callable[[Sequence[str], Path, Mapping[str, str]], GuardedResult | None]


class Claim(NamedTuple):
    """A passing run of a specialist's checks on a tree that a fix made."""

    work: Step
    configuration: Configuration
    cache: Path
    ground: Ground
    """Where the checks ran; still there, with what they left."""
    checks: tuple[Check, ...]
    ran: tuple[Ran, ...]
    """One for each check, in order."""
    changed: tuple[Delta, ...]
    """What differs between the trusted commit and the tip."""
    run: Run
    """Runs a command under guard in a folder with an environment; None: nobody wants the result any more."""
    canaries: dict[str, str]
    """What a judge learns for the evidence of each check: whether its runner was seen to fail."""

    @property
    def trusted(self) -> str:
        return str(self.work.holding.state.trusted)


Judge = Callable[[Claim], Iterator[Finding]]
JUDGES: Final[tuple[Judge, ...]] = ()
ALL_RULES: Final = "all"
"""In `[integrity] off`: no rule holds anything."""


def findings(claim: Claim) -> tuple[Finding, ...]:
    """What all judges found; nothing where nobody wants it any more, as the result is then refused."""
    off = claim.configuration.integrity.off
    if ALL_RULES in off:
        return ()
    return tuple(found for judge in JUDGES for found in judge(claim) if found.rule not in off)


def changed_since(work: Step, ground: Ground) -> tuple[Delta, ...]:
    state = work.holding.state
    if not state.trusted or state.trusted == state.tip or state.tree in state.accepted:
        return ()
    return tuple(deltas(ground.workspace.mirror.git, state.trusted, state.tip))
