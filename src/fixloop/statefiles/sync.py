"""Brings the named files of a cycle or of handoffs to the store's version (K23, R13).

They are rendered after each commit. An edited file is set aside and rendered again, and the history records it, in one
sentence: file, field and value (C5).
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_in
from fixloop.errors import FixloopError, InfrastructureError
from fixloop.files.atomic import place, read
from fixloop.profile_table import profile_of
from fixloop.repository.snapshot import Snapshot
from fixloop.secrets.redaction import Redaction
from fixloop.statefiles.named_files import Files, NamedFiles, Record, Stamp, Written
from fixloop.statefiles.rendering import drawn, files_of, has_files, ignore
from fixloop.store import records
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.keys import issue_of, number_of

HAND: Final = "hand"
"""The presumed author of a change to a file."""


class Projected(NamedTuple):
    """The result of a projection."""

    written: bool
    """False if there was nothing to write, or it was already written."""
    problem: str = ""
    """One sentence about the obstacle. The workflow is as it was: its files are written next time."""
    edits: tuple[str, ...] = ()
    """One sentence for each file that somebody had changed: file, field, value and where the edit is kept."""


def project(store: Store, workflow: str, *, root: Path | None = None, again: bool = False) -> Projected:
    """Bring a workflow's named files to the store's version; a problem is returned, never raised.

    They are below `root`, else in the workflow's repository; nothing is written if that is a URL or not on this
    machine. `again`: also look for edits if this version is already written.
    """
    try:
        with reading(workflow):
            found = store.read(workflow)
            if found is None or not has_files(found.snapshot):
                return Projected(False)
            top = root or root_of(found.snapshot)
            if top is None or not top.is_dir():
                return Projected(False)
            return _project(store, found, top, again)
    except FixloopError as error:
        return Projected(False, str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        said = f"the named files of {workflow} cannot be written: {where}{error.strerror or error}"
        return Projected(False, said)


def lay(store: Store, snapshot: bytes, folder: Path) -> None:
    """Write the named files of a state into the `folder` where an agent's command will run, as regular files in regular
    folders; RefusedError if something else is in the place of a folder."""
    if not has_files(snapshot):
        return
    files = _drawn(store, snapshot)
    folders = (f"{at}/{name}" for at, inside in files.swapped.items() for name in inside.folders)
    place(folder, files.inside(), folders)
    place(folder, files.files, files.folders)
    ignore(folder, files)


def edited_in(store: Store, snapshot: bytes, folder: Path) -> dict[str, str]:
    """An agent's changes to the files from `lay`: path → one sentence with field and value (C5, C18)."""
    if not has_files(snapshot):
        return {}
    files = _drawn(store, snapshot)
    laid = {file.path: file.content for file in (*files.inside(), *files.files)}
    found = {path: read(folder, path) for path in laid}
    return {path: difference(path, found[path], ours) for path, ours in laid.items() if found[path] != ours}


def tell_of_edits(
    store: Store, snapshot: bytes, folder: Path, agent: str, taken: Collection[str] = ()
) -> tuple[str, ...]:
    """Record in the history what an agent changed in the files from `lay`, a sentence for each that is not among the
    `taken` (D19, K10)."""
    edits = tuple(
        f"{sentence}; the state is written by events under the lock of state.json, never by its file"
        for path, sentence in edited_in(store, snapshot, folder).items()
        if path not in taken
    )
    _tell(store, snapshot, edits, agent)
    return edits


def root_of(snapshot: bytes) -> Path | None:
    """The folder on this machine for a workflow's named files; None for a URL."""
    told = json.loads(snapshot).get("snapshot", "")
    if not told:
        return None
    taken = Snapshot.model_validate_json(told)
    return None if taken.is_url else Path(taken.source) / taken.subdirectory


def place_of(snapshot: bytes, workflow: str) -> str:
    """The place of a workflow's files: each cycle has its own, all handoffs share one (D14, D19)."""
    own = files_of(profile_of(snapshot))
    return (own.place if own is not None else "") or workflow


def _project(store: Store, found: records.Snapshot, root: Path, again: bool) -> Projected:
    named = NamedFiles(root, place_of(found.snapshot, found.workflow))
    before = named.record
    stamp = _stamp(store, found, before)
    if before.workflow == stamp.workflow and before.rank >= stamp.rank and not again:
        return Projected(False)
    files = _drawn(store, found.snapshot)
    # Before the files: after their record, nothing is written that a reader could see half done.
    ignore(root, files)
    written = named.write(stamp, files, takes_over=partial(_takes_over, store, stamp), again=again)
    waits = not written.done and written.before.workflow != stamp.workflow
    if place_of(found.snapshot, found.workflow) != found.workflow:
        # A workflow whose place is taken gets a separate record, from which Redis can also be rebuilt.
        own = NamedFiles(root, found.workflow)
        if waits and not stamp.ended:
            own.write(stamp, Files(()))
        else:
            own.forget()
    if not written.done:
        return Projected(False, _whose(store, root, written.before, stamp))
    edits = tuple(_sentences(store, written))
    if edits:
        _tell(store, found.snapshot, edits, HAND)
        # That made another version.
        told = store.read(found.workflow)
        if told is None:
            raise InfrastructureError(f"workflow {found.workflow} was taken out meanwhile")
        named.write(_stamp(store, told, named.record), _drawn(store, told.snapshot))
    return Projected(True, edits=edits)


def _stamp(store: Store, found: records.Snapshot, before: Record) -> Stamp:
    state: dict[str, Any] = json.loads(found.snapshot)
    digest, kept = state.get("configuration", ""), before.configuration
    if digest and (before.workflow != found.workflow or not kept):
        kept = (store.get_artifact(found.workflow, digest) or b"").decode("utf-8", "replace")
    return Stamp(
        workflow=found.workflow,
        profile=profile_of(found.snapshot),
        issue=state["issue"],
        rebuilt=state.get("rebuilt", 0),
        version=found.version,
        ended=bool(state.get("ended_at")),
        started_at=datetime.fromisoformat(state["started_at"]),
        snapshot=found.snapshot.decode(),
        configuration=kept if digest else "",
    )


def _takes_over(store: Store, stamp: Stamp, before: Record) -> bool:
    """An ended workflow's files may be replaced; if it ended meanwhile, only by those of a later workflow."""
    later = before.started_at is None or (stamp.started_at or before.started_at) > before.started_at
    if stamp.ended and not later:
        return False
    holder = store.read(before.workflow)
    if before.ended or holder is not None:
        return before.ended or bool(holder and holder.fields.get("outcome"))
    retired = store.retired(before.workflow.partition("-")[0], issue_of(before.workflow))
    return retired is not None and number_of(retired.workflow) >= number_of(before.workflow)


def _whose(store: Store, root: Path, before: Record, stamp: Stamp) -> str:
    if before.workflow == stamp.workflow:
        return ""
    said = f"the named files in {root} are those of {before.workflow}"
    if store.read(before.workflow) is None:
        return (
            f"{said}, which Redis does not know: `fixloop files {before.issue} --rebuild` puts it back, "
            "and removing .fixloop/files gives it up"
        )
    return f"{said}; those of {stamp.workflow} take their place when it has ended"


def _sentences(store: Store, written: Written) -> Iterator[str]:
    before, ours = written.before, dict[str, bytes]()
    if written.edited and before.snapshot:
        files = _drawn(store, before.snapshot.encode())
        wanted = {edit.path for edit in written.edited}
        own = (file for file in (*files.inside(), *files.files) if file.path in wanted)
        ours = {file.path: file.content for file in own}
    for edit in written.edited:
        said = difference(edit.path, edit.found, ours.get(edit.path))
        kept = f"; it is kept in {edit.kept}" if edit.kept else ""
        yield f"{said}{kept}; the file was drawn anew, the workflow is as it was"


def _tell(store: Store, snapshot: bytes, edits: tuple[str, ...], sender: str) -> None:
    """Record in the workflow's history that somebody wrote what only the engine writes (C5, D19)."""
    engine = ProfileEngine(store, profile_in(snapshot))
    # A sentence contains the value that was written.
    for said in map(Redaction.of((), os.environ).text, edits):
        engine.refuse(json.loads(snapshot)["workflow"], "state-written", said, sender=sender)


def _drawn(store: Store, snapshot: bytes) -> Files:
    return drawn(snapshot, partial(store.get_artifact, json.loads(snapshot)["workflow"]))


_MOST: Final = 80
"""The characters shown of a value."""
_NOTHING: Final = object()


def difference(path: str, found: bytes | None, written: bytes | None) -> str:
    """The first difference between a file's content and what fixloop wrote there; None: there is no file, none was."""
    if found is None:
        return f"{path} was removed by hand"
    if written is None:
        status = None
        with suppress(ValueError):
            document = json.loads(found)
            status = document.get("status") if isinstance(document, dict) else None
        return f"{path} was made by hand" + (f": status is {_shown(status)}" if status is not None else "")
    try:
        field, value, ours = next(_fields("", json.loads(found), json.loads(written)))
    except ValueError:
        lines, ours = (content.decode("utf-8", "replace").splitlines() for content in (found, written))
        told = "its line ends are others"
        for number, (value, before) in enumerate(zip_longest(lines, ours, fillvalue=_NOTHING), 1):
            if value != before:
                told = f"line {number} is {_shown(value)}, and was written as {_shown(before)}"
                break
        return f"{path} was edited by hand: {told}"
    except StopIteration:
        return f"{path} was edited by hand: it is laid out in another way"
    return f"{path} was edited by hand: {field} is {_shown(value)}, and was written as {_shown(ours)}"


def _fields(name: str, found: Any, written: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every field that differs: its name, the value found, the value written."""
    if isinstance(found, dict) and isinstance(written, dict):
        for key in dict.fromkeys((*written, *found)):
            inner = f"{name}.{key}".lstrip(".")
            yield from _fields(inner, found.get(key, _NOTHING), written.get(key, _NOTHING))
    elif isinstance(found, list) and isinstance(written, list) and len(found) == len(written):
        for number, (value, ours) in enumerate(zip(found, written, strict=True)):
            yield from _fields(f"{name}[{number}]", value, ours)
    elif found != written or type(found) is not type(written):
        yield name or "the document", found, written


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
