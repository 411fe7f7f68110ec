"""A validation loop's verdict as the answer of the agent of a cycle that it stood for, and its documents."""

import json

from fixloop.engine.verdicts import (
    as_json,
    as_markdown,
    is_passed,
    issues_of,
    known_issues,
    results_of,
    summary_of,
)
from fixloop.profiles.cycle.documents import progress_path
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.state import State


def phase_answer(state: State, agent: str, cycle_id: str) -> str:
    """The PHASE_RESULT of an ended loop (C33)."""
    issues = [f"blocker: {text}" for text in issues_of(state)]
    if is_passed(state):
        issues = [f"major: {text}" for text in known_issues(state)]
    files = json.dumps([progress_path(cycle_id, agent, name) for name in worker(agent).documents])
    return "\n".join(
        [
            "PHASE_RESULT:",
            f"- phase: {agent}",
            f"- status: {'success' if is_passed(state) else 'failed'}",
            f"- files_written: {files}",
            f"- summary: {summary_of(state)}",
            *([f"- test_results: {results_of(state)}"] if agent == "vas" else []),
            f"- issues: {json.dumps(issues, ensure_ascii=False)}",
            "",
        ]
    )


def phase_documents(state: State, agent: str) -> dict[str, bytes]:
    """The documents of the agent it stands for, by name (C12)."""
    texts = {"test-results.json": as_json(state), "summary.md": f"# Summary\n\n{summary_of(state)}\n"}
    return {name: texts.get(name, as_markdown(state)).encode() for name in worker(agent).documents}
