"""A validation loop's verdict as the result of the reviewer that it stood for."""

import json

from fixloop.engine.verdicts import (
    MOST_ISSUES,
    described,
    failures_of,
    is_passed,
    known_issues,
    missing_in,
    summary_of,
)
from fixloop.protocol.state import State


def review_answer(state: State) -> str:
    """A reviewer's result of an ended loop (D54)."""
    known = {"validation": state.workflow, "summary": summary_of(state)}
    if is_passed(state):
        return json.dumps({"status": "approved", **known, "known_issues": known_issues(state)})
    issues = [
        {
            "id": f"{state.issue}-{number}",
            "severity": "critical",
            "specialist": entry.name,
            "file": failure.file,
            "line": failure.line,
            "description": described(failure),
        }
        for number, (entry, failure) in enumerate(failures_of(state), 1)
    ]
    issues += [
        {
            "id": f"{state.issue}-{each.name}",
            "severity": "critical",
            "specialist": each.specialist,
            "description": text,
        }
        for each, text in missing_in(state)
    ]
    return json.dumps({"status": "needs_fixes", "issues": issues[:MOST_ISSUES], **known})
