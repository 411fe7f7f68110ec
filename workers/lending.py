"""Lending `node_modules`: in a workspace it is a folder whose entries are links to those of the one that has them.

What a tool adds at its top (`.vite`, `.cache`) lands in the workspace. Links to packages of the project itself lead to
the workspace's; programs in `.bin` and small hidden folders are copied. What a tool writes into a lent package would
be written into the donor, so that is looked for after each run, see `written_into`.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Final

from fixloop.repository.generated import imported_and_ignored
from fixloop.repository.git import Git
from fixloop.repository.tree import records, tracked_in_index

NAME: Final = "node_modules"
STORES: Final = frozenset({".pnpm", ".store", ".bun"})
"""Where package managers keep the packages that the entries link to: large, and nothing else is written there."""
COPIED_FILES: Final = 500
"""A hidden folder with more files is a cache; it is left out."""
SEARCHED: Final = 200_000
"""Of more files than this in one donor nobody looks which ones were written to: 10 µs each, after each check."""


@dataclass(frozen=True)
class Lent:
    """What one workspace was lent."""

    donors: tuple[Path, ...] = ()
    """Each a `node_modules` that is linked to."""

    def written_into(self, since: float) -> tuple[str, ...]:
        """The donors' files, hidden folders aside, that were written, made or removed after `since` (`time.time`)."""
        found = (path for donor in self.donors for path in _changed(os.fspath(donor), since))
        return tuple(islice(found, 5))


def told_of(written: Sequence[str]) -> str:
    """What a command did that wrote into a donor."""
    names = ", ".join(written)
    return (
        f"wrote into packages that it was lent ({names}), or something else did meanwhile: install them again"
    )


def lend_node_modules(top: Path, directory: Path, places: Sequence[Path]) -> Lent:
    """
    Link what other checkouts of the project have in their `node_modules` into a workspace; a tree never holds them.

    Looked for at the top, in `directory`, and wherever a package.json is tracked.

    Args:
        top: the workspace's checkout.
        directory: where commands run in it.
        places: the other checkouts; the first that has a folder lends it.
    """
    donors = []
    folders = sorted({top, directory, *_packages(top)}) if any(place.is_dir() for place in places) else ()
    for giving, folder in product(places, folders):
        donor, own = giving / folder.relative_to(top) / NAME, folder / NAME
        if folder.is_dir() and donor.is_dir() and not os.path.lexists(own):
            real = donor.resolve()
            _link(real, own, _Moved(os.path.realpath(giving), os.path.realpath(top)))
            donors.append(real)
    return Lent(tuple(donors))


def lend_generated(top: Path, directory: Path, made: Path) -> None:
    """Copy the ignored modules that `[workspace] setup` generated and that tracked ones import into a workspace."""
    git = Git(made, ours=True)
    for path in imported_and_ignored(git, tracked_in_index(git), made / directory.relative_to(top)):
        own = top / os.fsdecode(path)
        if not os.path.lexists(own):
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / os.fsdecode(path), own)


def _packages(top: Path) -> Iterator[Path]:
    listed = Git(top, ours=True).output("ls-files", "-z", "--", "package.json", ":(glob)**/package.json")
    for path in records(listed):
        yield (top / os.fsdecode(path)).parent


@dataclass(frozen=True)
class _Moved:
    """From a path in the donor's checkout to the same in the workspace."""

    giving: str
    taking: str

    def target(self, link: str) -> str:
        """Where a link to a package of the project itself leads in the workspace; empty for any other package."""
        real = os.path.realpath(link)
        inside = real.startswith(self.giving + os.sep) and f"{os.sep}{NAME}{os.sep}" not in real
        return self.taking + real[len(self.giving) :] if inside else ""


def _link(donor: Path, own: Path, moved: _Moved) -> None:
    own.mkdir()
    for entry in os.scandir(donor):
        at = own / entry.name
        if entry.name.startswith("@") and entry.is_dir(follow_symlinks=False):
            _link(Path(entry.path), at, moved)
        elif entry.name == ".bin" and entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, at, symlinks=True)
        elif entry.is_symlink() and (target := moved.target(entry.path)):
            at.symlink_to(target)
        elif not entry.name.startswith(".") or entry.name in STORES:
            at.symlink_to(entry.path)
        elif entry.is_file():
            shutil.copyfile(entry.path, at)
        elif _is_small(entry.path):
            shutil.copytree(entry.path, at, symlinks=True)


def _is_small(folder: str) -> bool:
    files = (name for _, _, names in os.walk(folder) for name in names)
    return next(islice(files, COPIED_FILES, None), None) is None


def _changed(donor: str, since: float) -> Iterator[str]:
    """
    Files and folders with a later date; a folder's changes with each entry that is added, removed or renamed.

    The date of the content, not of the inode: other projects' links to a package manager's store change that one.
    """
    waiting, left = [donor], SEARCHED
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                is_cache = entry.name.startswith(".") and entry.name not in STORES
                if is_cache or entry.is_symlink():
                    continue
                left -= 1
                if left < 0:
                    return
                if entry.stat(follow_symlinks=False).st_mtime > since:
                    yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
