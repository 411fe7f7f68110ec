"""A run that passed after a fix is only a claim: judges examine it before it becomes a verdict.

Each judge examines one aspect that the fix cannot control, and yields findings for a person to decide.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from fixloop.intake.redaction_scope import without_secrets
from fixloop.protocol.checks import Finding
from fixloop.protocol.holds import ALL_RULES
from fixloop.repository.tree import Delta, deltas
from workers.commands.apart import apart
from workers.commands.canary import fewer_tests, runner_lies
from workers.commands.claim import Claim
from workers.commands.difference import difference
from workers.commands.flakes import RULE as FLAKY
from workers.commands.moved import started_by_others, work_moved_away
from workers.commands.new_tests import new_tests
from workers.commands.proof import proof
from workers.commands.seen import not_seen_again
from workers.steps.step import Step
from workers.workspaces.ground import Ground

Judge = Callable[[Claim], Iterator[Finding]]
JUDGES: Final[tuple[Judge, ...]] = (
    difference,
    work_moved_away,
    started_by_others,
    apart,
    not_seen_again,
    fewer_tests,
    # May also run the canary.
    proof,
    runner_lies,
    new_tests,
)
MOST: Final = 20
"""Findings that are listed; the rest are counted by rule."""
TEXT_CHARACTERS: Final = 500
SIDE_CHARACTERS: Final = 1000


def findings(claim: Claim) -> tuple[Finding, ...]:
    """The findings of all judges, redacted, at most `MOST` and a count for each rule of the rest."""
    off = claim.configuration.integrity.off
    if ALL_RULES in off:
        return ()
    found = [found for judge in JUDGES for found in judge(claim) if found.rule not in off]
    further = Counter(each.rule for each in found[MOST:])
    listed = found[:MOST] + [
        Finding(rule=rule, text=f"{count} more of this rule, not listed here")
        for rule, count in further.items()
    ]
    hide, side = claim.ground.redaction.text, SIDE_CHARACTERS
    # Redacted before they are truncated to the limits of a state: a truncated secret would not be recognised.
    wholes = [without_secrets(each, hide) for each in listed]
    return tuple(
        whole.with_(text=whole.text[:TEXT_CHARACTERS], old=whole.old[:side], new=whole.new[:side])
        for whole in wholes
    )


def by_chance(claim: Claim) -> tuple[Finding, ...]:
    """The tests that failed and then passed on the same tree, with or without a fix."""
    text = "{} failed, and passed when it ran again on the same tree"
    flaky = [(ran.result.check, name) for ran in claim.ran for name in ran.result.flaky]
    return tuple(
        Finding(rule=FLAKY, text=text.format(name), check=check, file=name.partition("::")[0])
        for check, name in flaky
    )


def changed_since(work: Step, ground: Ground) -> tuple[Delta, ...]:
    state = work.holding.state
    if not state.trusted or state.trusted == state.tip or state.tree in state.accepted:
        return ()
    return tuple(deltas(ground.workspace.mirror.git, state.trusted, state.tip))
