"""The named files of a cycle or of handoffs as a state has them: what to write where, below any folder (K23).

The same state gives the same files. A validation loop has none: its log is rendered on demand.
"""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from fixloop.errors import InfrastructureError, UsageError
from fixloop.machine.atomic_files import File, Folders, place
from fixloop.profiles.cycle import CYCLE
from fixloop.profiles.handoff import HANDOFF
from fixloop.profiles.reading import profile_of
from fixloop.protocol.cycle.documents import progress_path
from fixloop.protocol.cycle.files import named_files as cycle_files
from fixloop.protocol.handoff.files import FOLDERS, HANDOFFS
from fixloop.protocol.handoff.files import named_files as handoff_files
from fixloop.statefiles.named_files import Files

ARTIFACT: Final = "sha256:"
"""A part of a file that begins with it is an artifact of this digest; any other is text."""
Artifacts = Callable[[str], bytes | None]
"""Gives the artifact of a digest."""
_IGNORED: Final = {
    ".workflow/.cycle/.gitignore": "*\n",
    ".claude/.gitignore": "/handoffs\n/.handoffs.*\n/events.ndjson\n/state.json\n/.gitignore\n",
}
"""Named files are nobody's work; a `.gitignore` that is there already is left as it is."""


def has_files(snapshot: bytes) -> bool:
    """Whether the workflow that this is a snapshot of has named files."""
    return profile_of(snapshot) in _DRAWN


def drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    """
    The named files of a state; contents are made when they are asked for.

    Raises:
        UsageError: the profile has none.
        ProtocolError: the state cannot be read, or a newer fixloop wrote it.
        InfrastructureError: on making a content, a document that the state names is missing.
    """
    name = profile_of(snapshot)
    if name not in _DRAWN:
        raise UsageError(f"a {name} workflow has no named files; `fixloop log` shows what it says")
    return _DRAWN[name](snapshot, artifacts)


def ignore(root: Path, files: Files) -> None:
    """Have git overlook the named files, unless somebody decided about that already."""
    paths = [file.path for file in files.files]
    for name, text in _IGNORED.items():
        top = f"{PurePosixPath(name).parts[0]}/"
        if any(path.startswith(top) for path in paths) and not (root / name).is_symlink():
            with suppress(FileNotFoundError):  # somebody else laid it at the same moment
                place(root, [File.of(name, text.encode())] if not (root / name).exists() else [])


def _cycle(snapshot: bytes, artifacts: Artifacts) -> Files:
    state = CYCLE.load(snapshot)

    def content(part: str) -> bytes:
        found = artifacts(part.removeprefix(ARTIFACT)) if part.startswith(ARTIFACT) else part.encode()
        if found is None:
            raise InfrastructureError(f"document {part} of {state.workflow} is missing from the store")
        return found

    def file(path: str, parts: tuple[str, ...]) -> File:
        return File(path, _digest("\0".join(parts)), lambda: tuple(map(content, parts)))

    own = [progress_path(state.cycle_id, agent.key, "").rstrip("/") for agent in state.agents]
    return Files([file(*named) for named in cycle_files(state)], folders=own)


def _handoff(snapshot: bytes, artifacts: Artifacts) -> Files:
    files, inside = [], {}
    for named in handoff_files(HANDOFF.load(snapshot)):
        path = PurePosixPath(named.path)
        if path.is_relative_to(HANDOFFS):
            inside[path.relative_to(HANDOFFS).as_posix()] = named.text.encode()
        else:
            files.append(File.of(named.path, named.text.encode()))
    return Files(files, {HANDOFFS: Folders(FOLDERS, inside)})


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


_DRAWN: Final[dict[str, Callable[[bytes, Artifacts], Files]]] = {"cycle": _cycle, "handoff": _handoff}
