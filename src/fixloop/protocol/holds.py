"""Which run that passed is held for a person, and what a person's no makes of it (issue 15).

A PASS after a fix is a claim. What a rule saw that it cannot decide is neither a pass nor a failure: a person sees both
sides, and says. Refuses nothing in workflows that began before there were holds.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fixloop.protocol.checks import Finding
from fixloop.protocol.events import RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.state import OpenEscalation, SpecialistState, State

SAME_TREE: Final = "same-tree"
ALL_RULES: Final = "all"
"""In `[integrity] off`: no rule holds anything."""
REJECTED: Final = "Held"
"""The error type of what a person rejected."""


def findings_on(state: State, event: RunFinished) -> tuple[Finding, ...]:
    """Why a run that passed is held; nothing where a person has accepted its tree."""
    if not state.trusted or event.tree in state.accepted or ALL_RULES in state.rules_off:
        return ()
    found = (*event.findings, *_same_tree(state.active, event.tree))
    return tuple(each for each in found if each.rule not in state.rules_off)


def _same_tree(active: SpecialistState, tree: str) -> Iterator[Finding]:
    """What failed and passes without a change is a flake, or something else than the code decides."""
    for run in active.runs:
        if run.tree == tree and not run.passed and not run.could_not_run:
            is_rejected = all(ref.error_type == REJECTED for ref in run.failures)
            then = "a person rejected this very tree" if is_rejected else "this very tree failed"
            yield Finding(rule=SAME_TREE, text=f"{then} in run {run.number}, and passes now")
            return


def rules_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The rules that hold, each once."""
    return tuple(dict.fromkeys(found.rule for found in findings))


def names_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """As failures and known issues name them, each once."""
    return tuple(f"held: {rule}" for rule in rules_of(findings))


def as_failures(opened: OpenEscalation, reason: str, specialist: str) -> tuple[Failure, ...]:
    """What a person rejected, as failures: one for each rule and file, as their identity has to outlive an edit."""
    together: dict[tuple[str, str], list[Finding]] = {}
    for found in opened.findings:
        together.setdefault((found.rule, found.file), []).append(found)
    return tuple(
        Failure(
            name=f"held: {rule}",
            file=file,
            line=founds[0].line,
            error_type=REJECTED,
            message="\n".join(_told(founds, reason)),
            check=founds[0].check or specialist,
            suggestion="undo what is shown here, and mend the cause in the code itself",
            # Each in full in the report: findings of one rule in several files are not one failure.
            frame=f"{file}:{founds[0].line}" if founds[0].line is not None else file,
        )
        for (rule, file), founds in together.items()
    )


def _told(founds: Sequence[Finding], reason: str) -> Iterator[str]:
    for found in founds:
        yield found.text
        for side, text in (("before", found.old), ("now", found.new)):
            if text:
                yield f"{side}:\n{text}"
    if reason:
        yield f"a person rejected it: {reason}"
