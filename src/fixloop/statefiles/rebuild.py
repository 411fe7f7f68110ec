"""Rebuilds lost workflows in Redis from the named files of a cycle or of handoffs (K23, R13).

Rebuilds a state that was committed: the one that the files were last rendered from. Files that differ from it are a
disagreement, which is reported and never merged. The history restarts and says so.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_in
from fixloop.errors import RefusedError, UsageError
from fixloop.files.atomic import listed, read
from fixloop.profile_table import loaded, names, registered
from fixloop.protocol.event import Unexpected
from fixloop.protocol.ticket import Ticket
from fixloop.repository.snapshot import Snapshot, mirror_of
from fixloop.statefiles.named_files import NamedFiles, Record, records_below
from fixloop.statefiles.rendering import ARTIFACT, ProfileFiles, drawn, files_of
from fixloop.statefiles.sync import difference, place_of, project
from fixloop.store.contract import Store
from fixloop.store.keys import issue_of, number_of

_SHOWN: Final = 3
"""The number of disagreements shown."""


def lost(store: Store, root: Path) -> list[Record]:
    """The records below a folder of workflows that were live and that the store does not know."""
    return [record for record in records_below(root) if not record.ended and not _known(store, record)]


def rebuild(
    store: Store,
    root: Path,
    issue: int,
    *,
    cache: Path | None = None,
    hint: Callable[[Ticket, Any], object] | None = None,
) -> str:
    """Put the workflow of an issue back into a store that does not know it, from the files below `root`; returns its
    id. Agents' requests are made again, once: their tickets keep their ids. Their commits come from the mirrors in
    `cache`. An error leaves everything unchanged."""
    found = [record for record in records_below(root) if record.issue == issue]
    if not found:
        raise UsageError(f"there are no named files of issue {issue} below {root}")
    record = max(found, key=lambda record: number_of(record.workflow))
    if _known(store, record):
        told = f"`fixloop files {issue}` draws its files anew"
        raise RefusedError(f"Redis knows workflow {record.workflow}, and is right; {told}")
    chosen, artifacts = _agreed(root, record)
    if chosen.ended:
        raise RefusedError(f"workflow {chosen.workflow} ended; there is nothing to go on with")
    profile = profile_in(chosen.snapshot.encode())
    profile.load(chosen.snapshot.encode())
    work = _work(chosen, cache)
    store.use_issue(chosen.workflow[:8], issue)
    bundle = store.put_artifact(chosen.workflow, work) if work else ""
    for data in artifacts:
        store.put_artifact(chosen.workflow, data)
    if chosen.configuration:
        store.put_artifact(chosen.workflow, chosen.configuration.encode(), shared=True)
    try:
        state = json.loads(chosen.snapshot)
        restored = _files(chosen).restored(workflow=chosen.workflow, state=state, bundle=bundle)
        applied = ProfileEngine(store, profile, hint).start(restored)
    except Unexpected as error:
        raise RefusedError(str(error)) from None
    if applied.status == "exists":
        told = f"issue {issue} is live as workflow {applied.other}; `fixloop cancel {issue}` it first"
        raise RefusedError(told)
    project(store, chosen.workflow, root=root)
    return chosen.workflow


def _known(store: Store, record: Record) -> bool:
    """Whether the store has it, had it, or has a later one of its feature."""
    project_, issue = record.workflow.partition("-")[0], issue_of(record.workflow)
    if store.read(record.workflow) is not None:
        return True
    retired, latest = store.retired(project_, issue), store.latest(project_, issue)
    others = [name for name in (retired.workflow if retired else "", latest or "") if name]
    return any(number_of(name) >= number_of(record.workflow) for name in others)


def _files(record: Record) -> ProfileFiles:
    return loaded(registered(record.profile).files)  # type: ignore[no-any-return]


def _swapped() -> tuple[str, ...]:
    """The swapped directories of all profiles: their files are read through a link."""
    return tuple(own.swapped for own in map(files_of, names()) if own is not None and own.swapped)


def _work(record: Record, cache: Path | None) -> bytes:
    """The agents' commits so far, as a bundle on top of the workflow's start; empty if there are none."""
    state = json.loads(record.snapshot)
    told, tip = state.get("snapshot", ""), state.get("tip", "")
    if cache is None or not told or not tip:
        return b""
    taken = Snapshot.model_validate_json(told)
    mirror = mirror_of(taken, cache)
    if tip == taken.commit:
        return b""
    if not mirror.has(tip):
        raise RefusedError(
            f"commit {tip[:12]}, the work of {record.workflow} so far, is not in {mirror.path}; "
            "rebuild on the machine whose worker made it"
        )
    with mirror.bundled(tip, since=taken.commit) as file:
        return file.read_bytes()


def _agreed(root: Path, record: Record) -> tuple[Record, list[bytes]]:
    """The state of the files, and its documents; a killed writer may have left some or all files of the next state."""
    named = NamedFiles(root, place_of(record.snapshot.encode(), record.workflow))
    known = [found for found in (named.intended, record) if found.workflow == record.workflow]
    _refuse_disagreement(root, known)
    # Every content in the files: whole files, and the parts of logs.
    pool: dict[str, bytes] = {}
    for path, kept in (item for found in known for item in found.files.items()):
        content = read(root, path, _swapped())
        if content is None:
            continue
        pieces = [content, *(content[start:end] for start, end in pairwise([0, *accumulate(kept.sizes)]))]
        pool |= {sha256(piece).hexdigest(): piece for piece in pieces}
    missing = ""
    for found in known:
        parts = [part for _, own in _parts(found) for part in own]
        wanted = [part.removeprefix(ARTIFACT) for part in parts if part.startswith(ARTIFACT)]
        missing = next((digest for digest in wanted if digest not in pool), "")
        if not missing:
            return found, [pool[digest] for digest in wanted]
    raise RefusedError(
        f"document {missing[:12]} of workflow {record.workflow} is not among the files in {root}; "
        "nothing was rebuilt"
    )


def _refuse_disagreement(root: Path, known: list[Record]) -> None:
    """Raises RefusedError if a file differs from what was written, with field and value."""
    digests: dict[str, set[str]] = {}
    for record in known:
        for path, kept in record.files.items():
            digests.setdefault(path, set()).add(kept.digest)
    last = known[-1]
    # The files that are rendered from the state alone.
    made = drawn(last.snapshot.encode(), lambda digest: None)
    documents = {path for path, parts in _parts(last) if any(part.startswith(ARTIFACT) for part in parts)}
    certain = (*made.inside(), *(file for file in made.files if file.path not in documents))
    ours = {file.path: file.content for file in certain}
    told = []
    # A workflow that waited for the place has no files there.
    swapped = _files(last).swapped
    for path in listed(root, swapped) if swapped and last.files else ():
        digests.setdefault(path, set())
    for path, allowed in digests.items():
        found = read(root, path, _swapped())
        if found is None and (len(known) > 1 or path not in last.files):
            continue
        if found is not None and sha256(found).hexdigest() in allowed:
            continue
        if found is not None and path not in ours and path in last.files:
            told.append(f"{path} was edited by hand: its content is not the one of version {last.version}")
        else:
            told.append(difference(path, found, ours.get(path)))
    if told:
        more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        listed_ones = "; ".join(told[:_SHOWN])
        raise RefusedError(f"{listed_ones}{more}; undo that, then rebuild again: nothing was changed")


def _parts(record: Record) -> Iterable[tuple[str, tuple[str, ...]]]:
    snapshot = record.snapshot.encode()
    return _files(record).parts(profile_in(snapshot).load(snapshot))
