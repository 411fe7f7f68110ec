"""Results that a validation loop reports to the workflow it works for. Pure: from the loop's state to texts."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fixloop.protocol.checks import Unverified
from fixloop.protocol.failures import FailureRef
from fixloop.protocol.messages import Decision, Reason
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import SpecialistState, State

MOST_ISSUES = 50
"""The most issues listed in one answer; the number of further ones is added."""


def go_on(state: State) -> Decision | None:
    """The decision for a child loop whose parent does the fixing: a phase that reached its iteration limit is skipped,
    so that the next one is judged too. Any other escalation waits for a person."""
    opened = state.escalation
    if not _leaves_fixes_to_parent(state) or opened is None or opened.reason is not Reason.MAX_ITERATIONS:
        return None
    return Decision.SKIP


def is_passed(state: State) -> bool:
    """Known issues that a person accepted do not count as failures; failures left to the parent do."""
    left_to_others = _leaves_fixes_to_parent(state) and any(failures_of(state))
    return state.verdict in ("passed", "passed_with_known_issues") and not left_to_others


def _leaves_fixes_to_parent(state: State) -> bool:
    """Whether it has no fixer because its parent does the fixing."""
    return bool(state.parent) and state.fixer == "outside" and not state.agent


def failures_of(state: State) -> Iterator[tuple[SpecialistState, FailureRef]]:
    """The failures of each phase's last run; a person has decided on a run that could not be executed."""
    for entry in state.specialists:
        last = entry.last_run
        if entry.applicable and last is not None and not last.passed and not last.could_not_run:
            yield from ((entry, failure) for failure in last.failures)


def issues_of(state: State) -> list[str]:
    found = [f"{entry.name}: {described(failure)}" for entry, failure in failures_of(state)]
    found += [f"{each.specialist}: {text}" for each, text in missing_in(state)]
    rest = len(found) - MOST_ISSUES
    return found[:MOST_ISSUES] + ([f"{rest} more failures"] if rest > 0 else [])


def missing_in(state: State) -> Iterator[tuple[Unverified, str]]:
    """The checks that did not run, if the verdict is `not_verified`."""
    for each in state.unverified if state.verdict == "not_verified" else ():
        remedy = f"; {each.remedy}" if each.remedy else ""
        yield each, f"{each.name} does not run here: {each.reason}{remedy}"


def known_issues(state: State) -> list[str]:
    return [f"{entry.name}: {issue}" for entry in state.specialists for issue in entry.known_issues]


def described(failure: FailureRef) -> str:
    return f"{failure.described}: {failure.headline}" if failure.headline else failure.described


def summary_of(state: State) -> str:
    applicable = [entry for entry in state.specialists if entry.applicable]
    passed = sum(entry.passed_tree == state.tree and not entry.skipped for entry in applicable)
    told = is_passed(state) or state.verdict == "not_verified"
    outcome = (state.verdict or "").replace("_", " ") if told else "failed"
    specialists = "specialist" if len(applicable) == 1 else "specialists"
    return f"{outcome}: {passed} of {len(applicable)} {specialists} passed on the final tree"


def results_of(state: State) -> Iterator[str]:
    for entry in (each for each in state.specialists if each.applicable):
        last, how = entry.last_run, "was not run"
        if last is not None:
            how = f"{'passed' if last.passed else f'failed with {last.count}'} in run {last.number}"
        yield f"{entry.name} {how}"


def as_json(state: State) -> str:
    document: Mapping[str, Any] = {
        "validation": state.workflow,
        "verdict": state.verdict if is_passed(state) else "not_passed",
        "specialists": [
            {
                "name": entry.name,
                "runs": len(entry.runs),
                "passed": entry.status is Status.COMPLETED and not entry.skipped,
                "failures": [failure.described for failure in last.failures]
                if (last := entry.last_run) is not None and not last.passed
                else [],
            }
            for entry in state.specialists
            if entry.applicable
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_markdown(state: State) -> str:
    head = [f"# Validation: {summary_of(state)}", "", f"`fixloop log {state.workflow}` shows all of it.", ""]
    lines = [f"- {result}" for result in results_of(state)]
    issues = [f"- {issue}" for issue in (() if is_passed(state) else issues_of(state))]
    return "\n".join([*head, *lines, *(["", "## Failures", "", *issues] if issues else []), ""])
