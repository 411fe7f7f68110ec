"""The archive's files: `{directory}/{project}/{day}.{host}.jsonl.gz`, by the day on which a workflow ended (UTC).

Each host writes its own files, so that the lock is only needed between processes of one machine: not every shared file
system locks across machines. Nothing is overwritten, except purged records.
"""

import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.errors import InfrastructureError, ProtocolError
from fixloop.files.atomic import sync
from fixloop.files.locks import take
from fixloop.store.archive.record import Member, erase, line_of, member, read, stored_of, walk
from fixloop.store.keys import feature_of, issue_of, number_of
from fixloop.store.records import Stored

SUFFIX: Final = ".jsonl.gz"
LOCK_SECONDS: Final = 60.0


class Archived(NamedTuple):
    """An archived workflow, from its record's header."""

    workflow: str
    ended_at: datetime
    version: int
    fields: Mapping[str, str]
    path: Path
    place: Member


@dataclass
class _Known:
    """What has been read of a file so far; a file only grows."""

    inode: int
    end: int
    found: list[Archived]


class Archive:
    def __init__(self, directory: Path, *, host: str = "") -> None:
        """Creates nothing yet; `host` replaces this machine's name."""
        self.directory = directory
        self._host = re.sub(r"[^\w-]", "_", host or socket.gethostname()) or "host"
        self._known: dict[Path, _Known] = {}

    def append(self, stored: Stored, ended_at: datetime) -> Path:
        """Append a workflow and wait until it is on the disk; returns the file."""
        told = {"ended_at": ended_at.isoformat(), "version": stored.version, "fields": dict(stored.fields)}
        data = member(f"{stored.workflow}.json", json.dumps(told), line_of(stored, ended_at))
        folder = self.directory / stored.workflow.partition("-")[0]
        try:
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                sync(folder.parent)
                sync(folder.parent.parent)
            for number in count(1):
                more = f".{number}" if number > 1 else ""
                path = folder / f"{ended_at:%Y-%m-%d}.{self._host}{more}{SUFFIX}"
                with _locked(path, os.O_RDWR | os.O_CREAT) as file:
                    size = os.fstat(file).st_size
                    if self._index_of(path).end < size:
                        # The file's last record was cut short: a record after it could not be found.
                        continue
                    try:
                        written = 0
                        while written < len(data):
                            written += os.pwrite(file, data[written:], size + written)
                        os.fsync(file)
                    except OSError:
                        os.ftruncate(file, size)
                        raise
                if not size:
                    sync(path.parent)
                return path
        except OSError as error:
            raise InfrastructureError(
                f"cannot write to the archive {self.directory}: {error.strerror}; see FIXLOOP_ARCHIVE_DIR"
            ) from error
        raise AssertionError("count() ended")

    def find(self, workflow: str, ended_at: datetime | None = None) -> Stored | None:
        """The newest archived version of a workflow; faster with its end. Raises as `load`."""
        project, day = workflow.partition("-")[0], f"{ended_at:%Y-%m-%d}." if ended_at is not None else ""
        found = [each for each in self.workflows(project, day) if each.workflow == workflow]
        return self.load(max(found, key=lambda each: each.version)) if found else None

    def load(self, archived: Archived) -> Stored:
        """Load an archived workflow. Raises ProtocolError: its record is damaged, or of a newer version."""
        try:
            with _opened(archived.path, os.O_RDONLY) as file:
                return stored_of(read(file, archived.place))
        except (ValueError, FileNotFoundError, RecursionError) as error:
            raise ProtocolError(f"{archived.workflow} cannot be read from {archived.path}: {error}") from None

    def newest(self, project: str, issue: int) -> str | None:
        found = (each.workflow for each in self.workflows(project) if issue_of(each.workflow) == issue)
        return max(found, key=number_of, default=None)

    def of_issue(self, issue: int) -> Iterator[str]:
        return (each.workflow for each in self.workflows() if issue_of(each.workflow) == issue)

    def workflows(self, project: str = "", day: str = "") -> Iterator[Archived]:
        """The archived workflows of a project, or all, and of a day; a record that a crash duplicated appears twice."""
        for path in sorted(self.directory.glob(f"{project or '*'}/{day}*{SUFFIX}")):
            yield from self._index_of(path).found

    def erase(self, archived: Archived) -> None:
        """Erase a workflow's record, and delete the file if no record is left."""
        try:
            with _locked(archived.path, os.O_RDWR) as file:
                erase(file, archived.place)
                os.fsync(file)
                self._known.pop(archived.path, None)
                if not any(isinstance(each, Member) for each in walk(file)):
                    archived.path.unlink(missing_ok=True)
        except OSError as error:
            raise InfrastructureError(f"cannot change {archived.path}: {error.strerror}") from error

    def damaged(self) -> Iterator[str]:
        """One sentence for each file that does not end with a whole record, after a crash or a change by hand."""
        for path in sorted(self.directory.glob(f"*/*{SUFFIX}")):
            end, size = self._index_of(path).end, path.stat().st_size
            if end < size:
                yield f"{path} cannot be read from byte {end} of {size} on"

    def _index_of(self, path: Path) -> _Known:
        with _opened(path, os.O_RDONLY) as file:
            inode, known = os.fstat(file).st_ino, self._known.get(path)
            if known is None or known.inode != inode:
                known = self._known[path] = _Known(inode, 0, [])
            for each in walk(file, known.end):
                if isinstance(each, int):
                    known.end = each
                    continue
                # A record whose header has another content is not fixloop's.
                with suppress(ValueError, KeyError, TypeError, RecursionError, OverflowError):
                    told: dict[str, Any] = json.loads(each.comment)
                    workflow = each.name.removesuffix(".json")
                    ended_at = datetime.fromisoformat(told["ended_at"])
                    feature_of(workflow)
                    version, fields = int(told["version"]), dict(told["fields"])
                    known.found.append(Archived(workflow, ended_at, version, fields, path, each))
            return known


def archive_at(directory: Path | None) -> Archive | None:
    return None if directory is None else Archive(directory)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o640)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _locked(path: Path, flags: int) -> Iterator[int]:
    with _opened(path, flags) as descriptor:
        if not take(descriptor, patience_seconds=LOCK_SECONDS):
            raise InfrastructureError(f"another process holds {path}; try again later")
        yield descriptor
