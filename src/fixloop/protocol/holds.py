"""Decides which passed run is held for a person, and what a person's rejection leads to (issue 15).

A PASS after a fix is a claim. A finding that no rule can judge is neither a pass nor a failure: a person compares both
sides and decides. Workflows that began before integrity holds existed are never held.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fixloop.protocol.checks import Finding
from fixloop.protocol.events import RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.state import OpenEscalation, State

SAME_TREE: Final = "same-tree"
ALL_RULES: Final = "all"
"""In `[integrity] off`: switches all rules off."""
REJECTED: Final = "Held"
"""The error type of rejected findings."""


def findings_on(state: State, event: RunFinished) -> tuple[Finding, ...]:
    """Why a passed run is held; empty if a person has accepted its tree."""
    if not state.trusted or event.tree in state.accepted or ALL_RULES in state.rules_off:
        return ()
    found = list(event.findings)
    # A tree that failed and passes unchanged is flaky, or its result depends on something other than the code.
    for run in state.active.runs:
        if run.tree == event.tree and not run.passed and not run.could_not_run:
            is_rejected = all(ref.error_type == REJECTED for ref in run.failures)
            then = "a person rejected this very tree" if is_rejected else "this very tree failed"
            found.append(Finding(rule=SAME_TREE, text=f"{then} in run {run.number}, and passes now"))
            break
    return tuple(each for each in found if each.rule not in state.rules_off)


def rules_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The rules of the findings, each once."""
    return tuple(dict.fromkeys(found.rule for found in findings))


def as_failures(opened: OpenEscalation, reason: str, specialist: str) -> tuple[Failure, ...]:
    """Rejected findings as failures: one per rule and file, because their identity has to survive an edit."""
    together: dict[tuple[str, str], list[Finding]] = {}
    for found in opened.findings:
        together.setdefault((found.rule, found.file), []).append(found)
    return tuple(
        Failure(
            name=f"held: {rule}",
            file=file,
            line=founds[0].line,
            error_type=REJECTED,
            message="\n".join(_message_lines(founds, reason)),
            check=founds[0].check or specialist,
            suggestion="undo what is shown here, and mend the cause in the code itself",
            # Keeps the findings of one rule in several files apart, each in full in the report.
            frame=f"{file}:{founds[0].line}" if founds[0].line is not None else file,
        )
        for (rule, file), founds in together.items()
    )


def _message_lines(founds: Sequence[Finding], reason: str) -> Iterator[str]:
    for found in founds:
        yield found.text
        for side, text in (("before", found.old), ("now", found.new)):
            if text:
                yield f"{side}:\n{text}"
    if reason:
        yield f"a person rejected it: {reason}"
