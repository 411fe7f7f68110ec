"""The named files of a cycle or of handoffs as a state has them: what to write where, below any folder (K23).

The same state gives the same files. A validation loop has none: its log is rendered on demand.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.files.atomic import File, place
from fixloop.profile_table import loaded, names, profile_of, registered
from fixloop.protocol.event import Start
from fixloop.statefiles.named_files import Files

ARTIFACT: Final = "sha256:"
"""A part of a file that begins with it is an artifact of this digest; any other is text."""
Artifacts = Callable[[str], bytes | None]
"""Gives the artifact of a digest."""


class ProfileFiles(NamedTuple):
    drawn: Callable[[bytes, Artifacts], Files]
    ignored: Mapping[str, str]
    """Named files are nobody's work; a `.gitignore` that is there already is left as it is."""
    restored: Callable[..., Start]
    """The event with which a workflow that Redis lost goes on: `workflow`, `state`, `bundle`."""
    place: str = ""
    """The place that its workflows share; empty: each has one to itself."""
    swapped: str = ""
    """The folder that changes as a whole; empty: there is none."""
    parts: Callable[[Any], Iterable[tuple[str, tuple[str, ...]]]] = lambda state: ()
    """Given a state: path and parts of each file that may hold artifacts."""


def files_of(profile: str) -> ProfileFiles | None:
    """The named files of a profile; None where it has none."""
    part = registered(profile).files if profile in names() else ""
    found: ProfileFiles | None = loaded(part) if part else None
    return found


def has_files(snapshot: bytes) -> bool:
    """Whether the workflow that this is a snapshot of has named files."""
    return files_of(profile_of(snapshot)) is not None


def drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    """The named files of a state. Contents are made when they are asked for, which is an InfrastructureError where a
    document that the state names is missing."""
    name = profile_of(snapshot)
    own = files_of(name)
    if own is None:
        raise UsageError(f"a {name} workflow has no named files; `fixloop log` shows what it says")
    return own.drawn(snapshot, artifacts)


def ignore(root: Path, files: Files) -> None:
    """Have git overlook the named files, unless somebody decided about that already."""
    paths = [file.path for file in files.files]
    ignored = (own.ignored.items() for own in map(files_of, names()) if own is not None)
    for name, text in chain.from_iterable(ignored):
        top = f"{PurePosixPath(name).parts[0]}/"
        if any(path.startswith(top) for path in paths) and not (root / name).is_symlink():
            with suppress(FileNotFoundError):  # somebody else laid it at the same moment
                place(root, [File.of(name, text.encode())] if not (root / name).exists() else [])
