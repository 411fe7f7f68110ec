"""A run that passed after a fix is a claim: what has to hold before it is a verdict.

Each judge looks at one thing that the fix could not choose, and yields what a person has to decide.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fixloop.protocol.checks import Finding
from fixloop.repository.tree import Delta, deltas
from workers.commands.claim import Claim
from workers.steps.step import Step
from workers.workspaces.ground import Ground

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
