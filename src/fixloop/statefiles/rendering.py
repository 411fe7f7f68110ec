"""Renders the named files of a cycle or of handoffs from a state: contents by path below any folder (K23).

The same state gives the same files. A validation loop has none: its log is rendered on demand.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from fixloop.files.atomic import File, place
from fixloop.profile_table import loaded, names, profile_of, registered
from fixloop.protocol.event import Start
from fixloop.statefiles.named_files import Files

ARTIFACT: Final = "sha256:"
"""A part of a file that begins with this names the digest of an artifact; any other is text."""
Artifacts = Callable[[str], bytes | None]
"""Returns the artifact of a digest."""


class ProfileFiles(NamedTuple):
    drawn: Callable[[bytes, Artifacts], Files]
    ignored: Mapping[str, str]
    """Named files are not part of the work; an existing `.gitignore` is not changed."""
    restored: Callable[..., Start]
    """The event that continues a workflow lost by Redis: `workflow`, `state`, `bundle`."""
    place: str = ""
    """The place that its workflows share; empty: each has its own."""
    swapped: str = ""
    """The swapped directory; empty: there is none."""
    parts: Callable[[Any], Iterable[tuple[str, tuple[str, ...]]]] = lambda state: ()
    """Given a state: path and parts of each file that may hold artifacts."""


def files_of(profile: str) -> ProfileFiles | None:
    """The named files of a profile; None if it has none."""
    part = registered(profile).files if profile in names() else ""
    found: ProfileFiles | None = loaded(part) if part else None
    return found


def has_files(snapshot: bytes) -> bool:
    """Whether the workflow of this snapshot has named files."""
    return files_of(profile_of(snapshot)) is not None


def drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    """The named files of a state whose profile has some. Contents are made on demand, with an InfrastructureError if a
    document that the state names is missing."""
    own: ProfileFiles = loaded(registered(profile_of(snapshot)).files)
    return own.drawn(snapshot, artifacts)


def ignore(root: Path, files: Files) -> None:
    """Make git ignore the named files, unless somebody has already decided about that."""
    paths = [file.path for file in files.files]
    ignored = (own.ignored.items() for own in map(files_of, names()) if own is not None)
    for name, text in chain.from_iterable(ignored):
        top = f"{PurePosixPath(name).parts[0]}/"
        if any(path.startswith(top) for path in paths) and not (root / name).is_symlink():
            with suppress(FileNotFoundError):  # somebody else wrote it at the same moment
                place(root, [File.of(name, text.encode())] if not (root / name).exists() else [])
