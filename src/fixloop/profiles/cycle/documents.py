"""Main documents and logs: issuing, archiving, one version for all; logs only grow (C11-C19, C61, C63, K11, U12)."""

import json
from collections.abc import Iterable
from typing import Final

from fixloop.profiles.cycle import events as ev, records as rec
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.phase_result import InvalidResult
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import field_owner, worker
from fixloop.protocol.durations import iso_stamp

_CHANGES: Final = "changes.log"
MOST_SHOWN: Final = 80
"""The most characters of a value in an error."""


def progress_path(cycle_id: str, agent: str, name: str) -> str:
    """The path of an agent's file, relative to the folder of the cycle (C11)."""
    return f".workflow/.cycle/{cycle_id}.progress/{agent}/{name}"


def check_files(state: Cycle, event: ev.PhaseReported) -> None:
    """Refuse (InvalidResult) another agent's field (C61, K17), a file that is not the agent's own (C18), a log whose
    earlier bytes changed (C15), and a document that the report names and the agent did not write."""
    key = event.result.phase
    own = worker(key)
    for name, value in event.result.fields.items():
        further = (agent.key for agent in state.agents if name in worker(agent.key).fields)
        owner = field_owner(name) or next(further, None)
        if owner not in (None, key):
            text = value if isinstance(value, str) else json.dumps(value)
            shown = repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…")
            raise InvalidResult(f"{key} reports {name} {shown}, which only {owner} writes")
    for written in event.documents:
        if written.name not in own.documents:
            told = f"{key} wrote {written.name}, which is none of its documents: {', '.join(own.documents)}"
            raise InvalidResult(told)
    for log in event.logs:
        if log.name not in own.logs:
            raise InvalidResult(f"{key} wrote {log.name}, which is none of its logs: {', '.join(own.logs)}")
        if not log.intact:
            raise InvalidResult(f"{key} changed earlier lines of {log.name}; a log is only appended to")
    there = {written.name for written in event.documents} | {d.name for d in state.documents_of(key)}
    for path in event.result.files_written:
        name = path.rsplit("/", 1)[-1]
        if name in own.documents and name not in there:
            told = f"{key} says it wrote {path}, but there is no such file in its progress directory"
            raise InvalidResult(told)


def keep_report(draft: Draft, event: ev.PhaseReported) -> None:
    """Issue the documents an agent wrote, archive the ones they replace, append to its logs, set its fields."""
    result, key = event.result, event.result.phase
    own = worker(key)
    for log in event.logs:
        draft.append(logs=rec.LogPart(agent=key, name=log.name, digest=log.digest))
    issued = [document for written in event.documents if (document := _issue(draft, key, written))]
    if not any(log.name == _CHANGES for log in event.logs):
        archived = {(old.agent, old.name) for old in draft.state.archive}
        for document in issued:
            _log(draft, document, "update" if (key, document.name) in archived else "create")
    fields = {name: value for name, value in result.fields.items() if name in own.fields}
    if "summary" in own.fields:
        fields["summary"] = result.summary
    for name, value in fields.items():
        if draft.state.value(name) != value:
            iteration = draft.state.iteration
            kept = rec.FieldValue(name=name, agent=key, value=value, at=draft.at, iteration=iteration)
            draft.append(fields=kept)
    present = {part.name for part in draft.state.logs if part.agent == key}
    names = [document.name for document in draft.state.documents_of(key)]
    names += [name for name in own.logs if name in present]
    draft.agent(key, output_files=tuple(progress_path(draft.state.cycle_id, key, name) for name in names))


def _issue(draft: Draft, key: str, written: ev.Written) -> rec.Document | None:
    """Store a written document as the current issue; None if nothing has changed."""
    state = draft.state
    present, base = state.document(key, written.name), rec.version_of(state.base)
    if present is not None and present.digest == written.digest:
        return None
    version = base
    if present is not None and not present.restamped:
        version = rec.next_revision(base, rec.version_of(present.version))
    rec.check_together(base, version)
    new = rec.Document(
        agent=key,
        name=written.name,
        version=str(version),
        digest=written.digest,
        at=draft.at,
        iteration=state.iteration,
    )
    _replace(draft, present, new)
    return new


def _replace(draft: Draft, present: rec.Document | None, new: rec.Document) -> None:
    """Archive a version before it is replaced, unless the new one only renumbers the old text."""
    if present is None:
        draft.append(documents=new)
        return
    if present.version != new.version:
        draft.append(archive=present)
    draft.update(documents=tuple(new if kept is present else kept for kept in draft.state.documents))


def open_iteration(draft: Draft) -> None:
    """Start the next iteration: every main document is archived and issued at one new version (C14, C16, K11)."""
    state, number = draft.state, draft.state.iteration + 1
    version = str(rec.iteration_version(number, state.versions))
    done = state.iterations[-1].with_(completed_at=draft.at)
    opened = rec.IterationRecord(number=number, version=version, started_at=draft.at)
    draft.update(iteration=number, base=version, iterations=(*state.iterations[:-1], done, opened))
    for present in state.documents:
        new = present.with_(version=version, at=draft.at, iteration=number, restamped=True)
        _replace(draft, present, new)
        if present.version != version:
            _log(draft, new, "version_sync")


def log_tasks(draft: Draft, key: str, tasks: Iterable[str]) -> None:
    """Write each completed task into its agent's `changes.log`, where a search for its id finds it (C67)."""
    for task in tasks:
        _append(draft, key, action="complete", task=task)


def _log(draft: Draft, document: rec.Document, action: str) -> None:
    _append(draft, document.agent, version=document.version, action=action, file=document.name)


def _append(draft: Draft, key: str, **facts: str) -> None:
    line = {"timestamp": iso_stamp(draft.at), "iteration": draft.state.iteration, **facts}
    draft.append(logs=rec.LogPart(agent=key, name=_CHANGES, text=json.dumps(line) + "\n"))
