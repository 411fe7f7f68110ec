"""Reads an agent's progress directory after a run of a cycle: documents, new log lines, its plan (C11-C15, C18).

Each content is stored as an artifact before an event names it. Provided files that were not changed are ignored.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from fixloop.engine import verdicts
from fixloop.files.atomic import LIMIT_BYTES, listed, read
from fixloop.profiles.cycle.documents import progress_path
from fixloop.profiles.cycle.events import Written
from fixloop.profiles.cycle.phase_result import InvalidResult
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.state import State
from fixloop.statefiles.agent_run import AgentRuns, Left
from fixloop.statefiles.sync import edited_in
from fixloop.store.contract import Store

_PLAN: Final = "plan.json"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", re.ASCII)
_TASKS: Final = TypeAdapter(tuple[PlanTask, ...])


class Writings(NamedTuple):
    """The files that an agent wrote in one run."""

    documents: tuple[Written, ...] = ()
    logs: tuple[Written, ...] = ()
    plan: tuple[PlanTask, ...] | None = None


def written_by(
    store: Store,
    state: Cycle,
    snapshot: bytes,
    key: str,
    folder: Path,
    *,
    hide: Callable[[bytes], bytes] = bytes,
) -> Writings:
    """An agent's files below `folder`, where the files of `snapshot` were placed; `hide` removes secrets. InvalidResult
    if it changed another agent's file, added a line without a time to a log (C17), or its plan is invalid."""
    own, place = worker(key), progress_path(state.cycle_id, key, "")
    changed = edited_in(store, snapshot, folder)
    for path, sentence in changed.items():
        if not path.startswith(place):
            raise InvalidResult(f"{key} may read this file and not change it: {sentence}")
    laid = {document.name for document in state.documents_of(key)}
    documents, logs, plan, room = [], [], None, LIMIT_BYTES
    for name in sorted(path.removeprefix(place) for path in listed(folder, place.rstrip("/"))):
        content = read(folder, f"{place}{name}")
        is_old = name.startswith("history/") or (name in laid and f"{place}{name}" not in changed)
        if content is None or is_old:
            continue
        room -= len(content) + 4096
        if room < 0:
            raise InvalidResult(
                f"{key} left more in {place} than {LIMIT_BYTES // 1024**2} MiB; remove the rest"
            )
        content = hide(content)
        if name in own.logs:
            logs += _grown(store, state, key, name, content)
        else:
            documents.append(Written(name=name, digest=store.put_artifact(state.workflow, content)))
            if name == _PLAN and name in own.documents:
                plan = _read_plan(content)
    return Writings(tuple(documents), tuple(logs), plan)


def _grown(store: Store, state: Cycle, key: str, name: str, content: bytes) -> list[Written]:
    """The bytes added to a log; not intact if its earlier bytes have changed (C15)."""
    before = b"".join(
        part.text.encode() or store.get_artifact(state.workflow, part.digest) or b""
        for part in state.logs
        if (part.agent, part.name) == (key, name)
    )
    intact = content.startswith(before)
    grown = content[len(before) :] if intact else content
    if not grown and intact:
        return []
    for number, line in enumerate(grown.splitlines() if intact else (), before.count(b"\n") + 1):
        if line.strip() and not _has_time(line):
            told = f"line {number} of {name} has no time; write one into each line"
            raise InvalidResult(f"{told}, as 2026-01-22T10:30:00+08:00")
    # The next part starts on a new line, whether an agent or the orchestrator writes it.
    grown = grown if grown.endswith(b"\n") else grown + b"\n"
    return [Written(name=name, digest=store.put_artifact(state.workflow, grown), intact=intact)]


def _has_time(line: bytes) -> bool:
    for text in _TIME.findall(line.decode(errors="replace")):
        with suppress(ValueError):
            datetime.fromisoformat(text)
            return True
    return False


def _read_plan(content: bytes) -> tuple[PlanTask, ...]:
    try:
        # A list, or an object with `tasks` (C54, U11).
        found = json.loads(content)
        return _TASKS.validate_python(found.get("tasks") if isinstance(found, dict) else found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "tasks"
        raise InvalidResult(f"{_PLAN} is no plan: {where}: {first['msg'].lower()}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidResult(f"{_PLAN} is not valid JSON: {' '.join(str(error).split())[:200]}") from None


def phase_answer(state: State, agent: str, cycle_id: str) -> str:
    """The PHASE_RESULT for an ended validation loop (C33)."""
    issues = [f"blocker: {text}" for text in verdicts.issues_of(state)]
    if verdicts.is_passed(state):
        issues = [f"major: {text}" for text in verdicts.known_issues(state)]
    files = json.dumps([progress_path(cycle_id, agent, name) for name in worker(agent).documents])
    return "\n".join(
        [
            "PHASE_RESULT:",
            f"- phase: {agent}",
            f"- status: {'success' if verdicts.is_passed(state) else 'failed'}",
            f"- files_written: {files}",
            f"- summary: {verdicts.summary_of(state)}",
            *([f"- test_results: {'; '.join(verdicts.results_of(state))}"] if agent == "vas" else []),
            f"- issues: {json.dumps(issues, ensure_ascii=False)}",
            "",
        ]
    )


def phase_documents(state: State, agent: str) -> dict[str, bytes]:
    """The documents of the agent that the loop worked for, by name (C12)."""
    texts = {
        "test-results.json": verdicts.as_json(state),
        "summary.md": f"# Summary\n\n{verdicts.summary_of(state)}\n",
    }
    return {name: texts.get(name, verdicts.as_markdown(state)).encode() for name in worker(agent).documents}


def left_by(
    store: Store, state: Cycle, snapshot: bytes, key: str, folder: Path, hide: Callable[[bytes], bytes]
) -> Left:
    """Like `written_by`, but a violation is returned as a sentence."""
    try:
        return Left(written_by(store, state, snapshot, key, folder, hide=hide))
    except InvalidResult as invalid:
        return Left(wrong=str(invalid))


def verdict_of(loop: State, state: Cycle, key: str, keep: Callable[[bytes], str]) -> tuple[str, Writings]:
    """The answer and documents of an agent whose work an ended validation loop did."""
    documents = phase_documents(loop, key).items()
    written = tuple(Written(name=name, digest=keep(content)) for name, content in documents)
    return phase_answer(loop, key, state.cycle_id), Writings(documents=written)


AGENT_RUNS: Final = AgentRuns(left=left_by, verdict=verdict_of)
