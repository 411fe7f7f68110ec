"""What a validation loop that worked for others says to them: its verdict as the answer of the agent it stood for.

Pure: from the loop's state to the texts that an agent of a cycle or of handoffs would have printed and written.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fixloop.protocol.checks import Unverified
from fixloop.protocol.cycle.documents import progress_path
from fixloop.protocol.cycle.workers import worker
from fixloop.protocol.messages import Decision, Reason
from fixloop.protocol.state import FailureRef, SpecialistState, State
from fixloop.protocol.statuses import Status

MOST_ISSUES = 50
"""In one answer; how many more there are is said."""


def go_on(state: State) -> Decision | None:
    """
    What is decided for a loop that judges for others, where a phase failed: the next one is judged, too.

    Whoever it judges for has somebody who fixes; only what nobody can fix so waits for a person.
    """
    opened = state.escalation
    if not _judges(state) or opened is None or opened.reason is not Reason.MAX_ITERATIONS:
        return None
    return Decision.SKIP


def phase_answer(state: State, agent: str, cycle_id: str) -> str:
    """The PHASE_RESULT of an ended loop (C33)."""
    issues = [f"blocker: {text}" for text in _issues(state)]
    if _is_passed(state):
        issues = [f"major: {text}" for text in _known(state)]
    files = json.dumps([progress_path(cycle_id, agent, name) for name in worker(agent).documents])
    return "\n".join(
        [
            "PHASE_RESULT:",
            f"- phase: {agent}",
            f"- status: {'success' if _is_passed(state) else 'failed'}",
            f"- files_written: {files}",
            f"- summary: {_summary(state)}",
            *([f"- test_results: {_results(state)}"] if agent == "vas" else []),
            f"- issues: {json.dumps(issues, ensure_ascii=False)}",
            "",
        ]
    )


def phase_documents(state: State, agent: str) -> dict[str, bytes]:
    """The documents of the agent it stands for, by name (C12)."""
    texts = {"test-results.json": _as_json(state), "summary.md": f"# Summary\n\n{_summary(state)}\n"}
    return {name: texts.get(name, _as_markdown(state)).encode() for name in worker(agent).documents}


def review_answer(state: State) -> str:
    """A reviewer's result of an ended loop (D54)."""
    known = {"validation": state.workflow, "summary": _summary(state)}
    if _is_passed(state):
        return json.dumps({"status": "approved", **known, "known_issues": _known(state)})
    issues = [
        {
            "id": f"{state.issue}-{number}",
            "severity": "critical",
            "specialist": entry.name,
            "file": failure.file,
            "line": failure.line,
            "description": _described(failure),
        }
        for number, (entry, failure) in enumerate(_failures(state), 1)
    ]
    issues += [
        {
            "id": f"{state.issue}-{each.name}",
            "severity": "critical",
            "specialist": each.specialist,
            "description": text,
        }
        for each, text in _missing(state)
    ]
    return json.dumps({"status": "needs_fixes", "issues": issues[:MOST_ISSUES], **known})


def _is_passed(state: State) -> bool:
    """Known issues that a person let pass are none of ours; failures that were left to others are."""
    left_to_others = _judges(state) and any(_failures(state))
    return state.verdict in ("passed", "passed_with_known_issues") and not left_to_others


def _judges(state: State) -> bool:
    """Whether it has nobody who fixes, because those whom it works for have."""
    return bool(state.parent) and state.fixer == "outside" and not state.agent


def _failures(state: State) -> Iterator[tuple[SpecialistState, FailureRef]]:
    """Of the last run of each phase that did not pass; what could not be run, a person has decided on."""
    for entry in state.specialists:
        last = entry.last_run
        if entry.applicable and last is not None and not last.passed and not last.could_not_run:
            yield from ((entry, failure) for failure in last.failures)


def _issues(state: State) -> list[str]:
    found = [f"{entry.name}: {_described(failure)}" for entry, failure in _failures(state)]
    found += [f"{each.specialist}: {text}" for each, text in _missing(state)]
    rest = len(found) - MOST_ISSUES
    shown = found[:MOST_ISSUES] + ([f"{rest} more failures"] if rest > 0 else [])
    return shown


def _missing(state: State) -> Iterator[tuple[Unverified, str]]:
    """What did not run, where that leaves nothing verified."""
    for each in state.unverified if state.verdict == "not_verified" else ():
        remedy = f"; {each.remedy}" if each.remedy else ""
        yield each, f"{each.name} does not run here: {each.reason}{remedy}"


def _known(state: State) -> list[str]:
    return [f"{entry.name}: {issue}" for entry in state.specialists for issue in entry.known_issues]


def _described(failure: FailureRef) -> str:
    return f"{failure.described}: {failure.headline}" if failure.headline else failure.described


def _summary(state: State) -> str:
    applicable = [entry for entry in state.specialists if entry.applicable]
    passed = sum(entry.passed_tree == state.tree and not entry.skipped for entry in applicable)
    told = _is_passed(state) or state.verdict == "not_verified"
    outcome = (state.verdict or "").replace("_", " ") if told else "failed"
    specialists = "specialist" if len(applicable) == 1 else "specialists"
    return f"{outcome}: {passed} of {len(applicable)} {specialists} passed on the final tree"


def _results(state: State) -> str:
    return "; ".join(_result(entry) for entry in state.specialists if entry.applicable)


def _result(entry: SpecialistState) -> str:
    last = entry.last_run
    if last is None:
        return f"{entry.name} was not run"
    how = "passed" if last.passed else f"failed with {last.count}"
    return f"{entry.name} {how} in run {last.number}"


def _as_json(state: State) -> str:
    document: Mapping[str, Any] = {
        "validation": state.workflow,
        "verdict": state.verdict if _is_passed(state) else "not_passed",
        "specialists": [
            {
                "name": entry.name,
                "runs": len(entry.runs),
                "passed": entry.status is Status.COMPLETED and not entry.skipped,
                "failures": [failure.described for failure in _of(entry)],
            }
            for entry in state.specialists
            if entry.applicable
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _of(entry: SpecialistState) -> tuple[FailureRef, ...]:
    last = entry.last_run
    return last.failures if last is not None and not last.passed else ()


def _as_markdown(state: State) -> str:
    head = [f"# Validation: {_summary(state)}", "", f"`fixloop log {state.workflow}` shows all of it.", ""]
    lines = [f"- {_result(entry)}" for entry in state.specialists if entry.applicable]
    issues = [f"- {issue}" for issue in (() if _is_passed(state) else _issues(state))]
    return "\n".join([*head, *lines, *(["", "## Failures", "", *issues] if issues else []), ""])
