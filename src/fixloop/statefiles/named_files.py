"""Writes files that others read meanwhile: versions never go back, and no edit is lost or trusted (K23, R13).

They belong to one place, and to one workflow at a time. A file edited by hand is set aside and rendered again.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from fixloop.files.atomic import File, Folders, is_ours, listed, place, read, swap, write_whole
from fixloop.files.folders import own_folder
from fixloop.files.locks import held

LOCK_SECONDS: Final = 30.0
_RECORDS: Final = Path(".fixloop", "files")


class _Value(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")


class Kept(_Value):
    digest: str
    sources: str
    """Identifies the content without making it: a digest of its sources."""
    sizes: tuple[int, ...] = ()
    """The sizes of its parts in bytes, to find each artifact in it again."""

    @classmethod
    def of(cls, parts: tuple[bytes, ...], sources: str) -> "Kept":
        digest = sha256(b"".join(parts)).hexdigest()
        return cls(digest=digest, sources=sources, sizes=tuple(map(len, parts)) if len(parts) > 1 else ())


class Stamp(_Value):
    """The workflow and the version of its state that the files are rendered from."""

    workflow: str = ""
    profile: str = ""
    issue: int = 0
    rebuilt: int = 0
    """How often the workflow was rebuilt from its files; each time its versions restart."""
    version: int = 0
    ended: bool = False
    started_at: datetime | None = None
    snapshot: str = ""
    """The state itself, JSON."""
    configuration: str = ""
    """The frozen configuration, JSON."""

    @property
    def rank(self) -> tuple[int, int]:
        """A sort key: of two states of one workflow, the later is higher."""
        return self.rebuilt, self.version


class Record(Stamp):
    """All that is known about the files of a place."""

    files: dict[str, Kept] = {}
    """By path below the root."""


def read_record(path: Path) -> Record:
    """The record of the last write; empty if there was none, or it cannot be read."""
    try:
        return Record.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return Record()


def write_record(path: Path, record: Record) -> None:
    """Replace the record atomically."""
    write_whole(path, record.model_dump_json(exclude_defaults=True).encode())


class Files(NamedTuple):
    files: Sequence[File]
    """In the order they change; the state file is the last."""
    swapped: Mapping[str, Folders] = MappingProxyType({})
    """The swapped directories, by path."""
    folders: Sequence[str] = ()
    """Further folders that exist, empty or not."""

    def inside(self) -> Iterator[File]:
        """The files of the swapped directories."""
        for directory, inside in self.swapped.items():
            yield from (File.of(f"{directory}/{path}", content) for path, content in inside.files.items())


class Edited(NamedTuple):
    """A file that differs from what fixloop wrote."""

    path: str
    found: bytes | None
    """Its content; None: there is no file."""
    kept: str = ""
    """The path of the copy set aside, below the root."""


class Written(NamedTuple):
    """The result of a write."""

    done: bool
    """False if this or a later version is already written, or the place is another workflow's."""
    before: Record
    """The previous record."""
    edited: tuple[Edited, ...] = ()
    """Files that somebody else changed, made or removed since; set aside and rendered again."""


class NamedFiles:
    """The named files of one place below one folder."""

    def __init__(self, root: Path, name: str) -> None:
        """All paths are relative to `root`; the lock and the record are named after the place, `name`."""
        self._root = root
        self._name = name
        self._record = root / _RECORDS / f"{name}.json"
        self._intent = self._record.with_suffix(".intent")

    @property
    def record(self) -> Record:
        """The record of the files; empty before the first write."""
        return read_record(self._record)

    @property
    def intended(self) -> Record:
        """The record that a killed writer was about to write; empty if there was none."""
        return read_record(self._intent)

    def write(
        self,
        stamp: Stamp,
        files: Files,
        *,
        takes_over: Callable[[Record], bool] = lambda before: False,
        again: bool = False,
    ) -> Written:
        """Bring the files to a version of their state; RefusedError if something else is in the place of a directory.
        `takes_over`: whether they may replace those of another workflow. `again`: also check files of this version."""
        own_folder(self._root)
        self._record.parent.mkdir(exist_ok=True)
        with held(self._record.with_suffix(".lock"), timeout_seconds=LOCK_SECONDS):
            before = self.record
            if before.workflow == stamp.workflow:
                late = before.rank > stamp.rank or (before.rank == stamp.rank and not again)
            else:
                late = bool(before.workflow) and not takes_over(before)
            if late:
                return Written(False, before)
            edited = tuple(self.edited(before, files))
            # After a crash it is not known which files were written.
            touched = before.files.keys() if self._intent.exists() else {edit.path for edit in edited}
            known = {path: kept for path, kept in before.files.items() if path not in touched}
            after = {file.path: known[file.path] for file in files.files if file.path in known}
            changed = [
                file.made()
                for file in files.files
                if file.path not in after or after[file.path].sources != file.sources
            ]
            after |= {file.path: Kept.of(file.parts(), file.sources) for file in changed}
            after |= {file.path: Kept.of(file.parts(), "") for file in files.inside()}
            record = Record(**stamp.model_dump(), files=after)
            write_record(self._intent, record)
            aside = self._set_aside(stamp, edited)
            for directory, inside in files.swapped.items():
                edited_there = any(path.startswith(f"{directory}/") for path in touched)
                is_there = is_ours(self._root, directory) and not edited_there
                if not is_there or _below(known, directory) != _below(after, directory):
                    swap(self._root, directory, inside)
            place(self._root, changed, files.folders)
            write_record(self._record, record)
            self._intent.unlink(missing_ok=True)
            return Written(True, before, aside)

    def forget(self) -> None:
        """Delete the record of this place; its files stay."""
        for path in (self._record, self._intent):
            path.unlink(missing_ok=True)

    def edited(self, before: Record, files: Files) -> Iterator[Edited]:
        """The files of `before` that differ from what was written, and others' files in the places of `files` (K23)."""
        intent = self.intended.files
        ours: dict[str, set[str]] = {}
        for path, kept in (*before.files.items(), *intent.items()):
            ours.setdefault(path, set()).add(kept.digest)
        there = sorted(path for directory in files.swapped for path in listed(self._root, directory))
        new = {file.path: file for file in (*files.files, *files.inside())}
        for path in dict.fromkeys((*before.files, *there, *new)):
            found = read(self._root, path, files.swapped)
            if found is None:
                is_known = bool(intent) or path not in before.files
            else:
                is_known = sha256(found).hexdigest() in ours.get(path, ())
                is_known = is_known or (path in new and new[path].content == found)
            if not is_known:
                yield Edited(path, found)

    def _set_aside(self, stamp: Stamp, edited: Sequence[Edited]) -> tuple[Edited, ...]:
        """Keep others' edits where fixloop never writes a file."""
        if not edited:
            return ()
        number = 1
        while (self._root / (aside := f"{_RECORDS}/edited/{self._name}.{stamp.version}.{number}")).exists():
            number += 1
        kept = [one._replace(kept=f"{aside}/{one.path}" if one.found is not None else "") for one in edited]
        place(self._root, (File.of(edit.kept, edit.found) for edit in kept if edit.found is not None))
        return tuple(kept)


def records_below(root: Path) -> Iterator[Record]:
    """The record of each place below a folder."""
    for path in sorted((root / _RECORDS).glob("*.json")):
        record = read_record(path)
        if record.workflow:
            yield record


def _below(kept: Mapping[str, Kept], directory: str) -> dict[str, Kept]:
    return {path: entry for path, entry in kept.items() if path.startswith(f"{directory}/")}
