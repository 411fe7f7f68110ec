"""Reads an agent's results in a workflow of handoffs: its state fields, and the specification it names (D19, D22)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from fixloop.engine import verdicts
from fixloop.engine.profile import AnyState, object_in
from fixloop.files.atomic import read
from fixloop.outside.transfer import snapshot_in
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.files import STATE_FILE, state_document
from fixloop.profiles.handoff.returns import InvalidReturn, read_return
from fixloop.profiles.handoff.shared_state import MOST_OF_A_FIELD, MOST_OF_A_VALUE
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.state import State
from fixloop.repository.git import Git
from fixloop.statefiles.agent_run import AgentRuns, Left
from fixloop.statefiles.sync import tell_of_edits
from fixloop.store.contract import Store

MOST_CHARACTERS: Final = 500


def left_by(
    store: Store, state: Handoffs, snapshot: bytes, name: str, folder: Path, hide: Callable[[bytes], bytes]
) -> Left:
    """The fields of the shared state that the agent wrote; its other changes are in the history."""
    fields = fields_written(snapshot, hide(read(folder, STATE_FILE) or b""))
    tell_of_edits(store, snapshot, folder, name, (STATE_FILE,) if fields else ())
    return Left(fields=fields)


def fields_written(snapshot: bytes, content: bytes) -> dict[str, Any]:
    """The fields that an agent wrote into its copy of `state.json` (D19, D45)."""
    laid = state_document(HANDOFF.load(snapshot))
    return {
        name: value
        for name, value in object_in(content).items()
        if 0 < len(name) <= MOST_OF_A_FIELD
        and (name not in laid or laid[name] != value)
        and len(json.dumps(value)) <= MOST_OF_A_VALUE
    }


def missing_file(state: Handoffs, git: Git, commit: str, answer: str) -> str:
    """What is wrong with the specification that its result names; empty: nothing, or there is no result."""
    try:
        return missing_specification(state, git, commit, read_return(answer))
    except InvalidReturn:
        return ""


def missing_specification(state: AnyState, git: Git, commit: str, said: Mapping[str, Any]) -> str:
    """What is wrong with the `spec` of an agent's result, a path relative to its working directory, in one sentence;
    empty: it names none, or a file of `commit`."""
    spec = said.get("spec")
    if not isinstance(spec, str) or not spec:
        return ""
    path = PurePosixPath(snapshot_in(state).subdirectory, spec)
    can_be = spec.isprintable() and len(spec) <= MOST_CHARACTERS
    if can_be and git.found("cat-file", "-t", f"{commit}:{path}") == "blob":
        return ""
    return (
        f"spec {spec[:100]!r} is no file of the work that was handed in; write it there, where git does not ignore it, "
        "or name the file that is the specification"
    )


def review_answer(state: State) -> str:
    """A reviewer's result for an ended validation loop (D54)."""
    known = {"validation": state.workflow, "summary": verdicts.summary_of(state)}
    if verdicts.is_passed(state):
        return json.dumps({"status": "approved", **known, "known_issues": verdicts.known_issues(state)})
    issues = [
        {
            "id": f"{state.issue}-{number}",
            "severity": "critical",
            "specialist": entry.name,
            "file": failure.file,
            "line": failure.line,
            "description": verdicts.described(failure),
        }
        for number, (entry, failure) in enumerate(verdicts.failures_of(state), 1)
    ]
    issues += [
        {
            "id": f"{state.issue}-{each.name}",
            "severity": "critical",
            "specialist": each.specialist,
            "description": text,
        }
        for each, text in verdicts.missing_in(state)
    ]
    return json.dumps({"status": "needs_fixes", "issues": issues[: verdicts.MOST_ISSUES], **known})


AGENT_RUNS: Final = AgentRuns(
    left=left_by, missing=missing_file, verdict=lambda loop, state, name, keep: (review_answer(loop), None)
)
