"""A folder's content as a git tree, and the differences of two trees.

Owns the only way in which a folder is hashed: a separate index and a full read of every file, so that neither the
user's index nor a clock has an influence. Excludes pipes, sockets, devices, `.fixloop/`, and untracked caches.
"""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.repository.git import Git, explained, shown
from fixloop.repository.git_config import git_directory

CACHES: Final = (
    *(".venv", "venv", "node_modules", "__pycache__", "*.pyc", ".tox", ".nox", ".hypothesis"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".coverage", ".coverage.*", ".testmondata*"),
    *(".aider.*.history*", ".aider.tags.cache.*"),
)
"""Untracked files with these names are never part of a tree: tools make them, nobody writes them."""

NAMED_FILES: Final = (
    "**/.workflow/.cycle/",
    *(f"**/.claude/{name}" for name in ("handoffs", ".handoffs.*", "events.ndjson", "state.json")),
)
"""Rendered from the state of a cycle or of handoffs, in any folder (K23); untracked, they are no part of the work."""
NEVER: Final = frozenset({b".git", b".fixloop"})
READ_BY_GIT: Final = frozenset({b".gitignore", b".gitattributes", b".gitmodules", b".git"})
NOT_ENTERED: Final = frozenset(name.encode() for name in CACHES) | NEVER
NEW_BYTES: Final = 1_000_000_000
"""For new and grown files: what git reads in ten seconds. Sparse files count with their apparent size."""
FOREIGN_SECONDS: Final = 20.0
"""For git in a repository that a command may have changed, so that git waits for a pipe, for example."""
MOST_NESTED: Final = 500
"""Folders below each other, counted from the root; Python's own limit for calls is 1,000."""
GITLINK: Final = "160000"
SYMLINK: Final = "120000"
ABSENT: Final = "000000"
_OF_A_FILE: Final = (b"error: open(", b"fatal: failed to encode", b"fatal: BOM is", b"fatal: true/false ")
"""What git says of a file, or of its encoding in `.gitattributes`, whoever wrote it."""
_LOOKED_AT: Final = 8000
"""The bytes that decide whether a file is binary, as in git."""
OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_known: Final = lru_cache(maxsize=4)(Git.output)
"""The object of an id never changes, and each run reads the same few again and again."""


class Entry(NamedTuple):
    """What git knows about one path."""

    mode: str
    blob: str
    sparse: bool = False
    """Left out of the checkout on purpose, so that its absence is no deletion."""


class Delta(NamedTuple):
    """A path that differs between two trees; mode `000000` if it does not exist."""

    path: bytes
    old: Entry
    new: Entry
    before: bytes
    """A renamed file's name in the old tree."""

    @property
    def is_deletion(self) -> bool:
        return self.new.mode == ABSENT

    @property
    def is_addition(self) -> bool:
        return self.old.mode == ABSENT

    @property
    def is_submodule(self) -> bool:
        return GITLINK in (self.old.mode, self.new.mode)


def write_tree(git: Git, *, tracked: Mapping[bytes, Entry], without: Collection[bytes] = frozenset()) -> str:
    """
    Write the content of the folder with `git` at its top as a tree, without its index; returns the tree's id.

    Includes the tracked files as they are on disk, and untracked ones that are neither ignored nor caches.
    `tracked`: paths that count as tracked, ignored or not. `without`: paths to leave out unless they are tracked.
    """
    _refuse_special_files(os.fsencode(git.directory))
    with git.empty_index() as own:
        files = _fill(own, tracked)
        excludes = [f"--exclude={name}" for name in (*CACHES, *NAMED_FILES, ".fixloop")]
        listed = records(own.output("ls-files", "-o", "-z", "--exclude-standard", *excludes))
        files += [path for path in files_only(own, listed) if path not in without]
        _refuse_large_files(own, files, tracked)
        _hash(own, files)
        return own.text("write-tree", "--missing-ok")


def tree_of_files(git: Git, files: Iterable[bytes]) -> str:
    """Write these files of git's directory as a tree and return its id."""
    with git.empty_index() as own:
        _hash(own, sorted(files))
        return own.text("write-tree")


def globbed(git: Git, globs: Sequence[str], directory: Path) -> list[bytes]:
    """The files outside git's index that match a pattern relative to `directory`; returned relative to the top."""
    if not globs:
        return []
    patterns = [f":(glob){glob}" for glob in globs]
    there = replace(git, directory=directory)
    done = there.run("ls-files", "-o", "-z", "--full-name", "--", *patterns, accept=(0, 128))
    if done.returncode:
        raise UsageError(f"`copy` in [workspace] holds a pattern that git refuses: {', '.join(globs)}")
    return files_only(git, records(done.stdout))


def files_only(git: Git, listed: Iterable[bytes]) -> list[bytes]:
    """The paths that are regular files or symlinks, reached through real folders, and not fixloop's own."""
    top, parents = os.fsencode(git.directory), dict[bytes, bool]()
    return [path for path in listed if not _is_excluded(path) and _is_file(top, path, parents)]


def entries_on_disk(git: Git, recorded: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """What git would record for these paths as they are now on disk; missing ones are left out."""
    with git.empty_index() as own:
        _fill(own, recorded)
        files = [path for path in recorded if _is_file(os.fsencode(git.directory), path, {})]
        _refuse_large_files(own, files, recorded)
        _hash(own, files)
        return tracked_in_index(own)


def tracked_in_index(git: Git) -> dict[bytes, Entry]:
    """The current index, without unmerged entries."""
    found = {}
    for line in records(git.output("ls-files", "-s", "-t", "-z")):
        head, _, path = line.partition(b"\t")
        tag, mode, blob, stage = head.decode().split(" ")
        if stage == "0":
            found[path] = Entry(mode, blob, tag == "S")
    return found


def tracked_in_tree(git: Git, tree: str) -> dict[bytes, Entry]:
    """Everything in a tree (or a commit's tree)."""
    found = {}
    read = _known if OBJECT.fullmatch(tree) else Git.output
    for line in records(read(git, "ls-tree", "-r", "-z", "--full-tree", tree)):
        head, _, path = line.partition(b"\t")
        mode, _, blob = head.decode().split(" ")
        found[path] = Entry(mode, blob)
    return found


def deltas(git: Git, old: str, new: str, *, renames: bool = False) -> list[Delta]:
    """The differences of two trees or commits; without `renames`, each rename is a deletion and an addition."""
    how = "-M" if renames else "--no-renames"
    fields = iter(records(git.output("diff-tree", "-r", "-z", "--raw", how, "--no-abbrev", old, new, "--")))
    found = []
    for head in fields:
        old_mode, new_mode, old_blob, new_blob, kind = head.decode().removeprefix(":").split(" ")
        before = next(fields)
        path = next(fields) if kind.startswith("R") else before
        found.append(Delta(path, Entry(old_mode, old_blob), Entry(new_mode, new_blob), before))
    return found


def tree_with(git: Git, tree: str, wanted: Mapping[bytes, Entry]) -> str:
    """`tree` (or a commit's) with these paths replaced; those of mode `000000` are removed."""
    # Removals first: a file may become a folder.
    ordered = sorted(wanted.items(), key=lambda item: item[1].mode != ABSENT)
    lines = [b"%s %s\t%s\0" % (entry.mode.encode(), entry.blob.encode(), path) for path, entry in ordered]
    with git.empty_index() as own:
        own.run("read-tree", tree)
        own.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
        return own.text("write-tree", "--missing-ok")


def tree_id(git: Git, commit: str) -> str:
    return git.text("rev-parse", "--verify", f"{commit}^{{tree}}")


def commit_tree(git: Git, tree: str, parents: Sequence[str], message: str, *, dated: str = "") -> str:
    """A commit of `tree`; with `dated`, the same arguments always give the same commit."""
    options = [option for parent in parents for option in ("-p", parent)]
    return git.run("commit-tree", tree, *options, stdin=message.encode(), dated=dated).stdout.decode().strip()


def _refuse_special_files(folder: bytes) -> None:
    """git opens these by name, and would wait for ever for a writer of a pipe; nor does it read paths of any length."""
    if folder.count(b"/") > MOST_NESTED:
        raise UsageError(
            f"folders are nested more than {MOST_NESTED} deep in {shown(folder[:80])}…; remove them"
        )
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        for path in _opened_by_git(entry) if entry.name in READ_BY_GIT else ():
            with contextlib.suppress(OSError, ValueError):
                if stat.S_IFMT(os.stat(path).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                    told = f"{shown(path)} is a pipe, socket or device, which git cannot read; remove it"
                    raise UsageError(told)
        if entry.is_dir(follow_symlinks=False) and entry.name not in NOT_ENTERED:
            _refuse_special_files(entry.path)


def _opened_by_git(entry: os.DirEntry[bytes]) -> list[bytes]:
    """What git opens of such a file or, to see whether it is a repository, of such a folder."""
    own = entry.path
    if entry.name == b".git":
        with contextlib.suppress(OSError, ValueError):
            own = os.fsencode(git_directory(Path(os.fsdecode(own)).parent) or own)
    return [entry.path, *(os.path.join(own, name) for name in (b"HEAD", b"commondir"))]


def _refuse_large_files(own: Git, files: Iterable[bytes], tracked: Mapping[bytes, Entry]) -> None:
    """Refuse new files and growth of more than `NEW_BYTES` in all: reading them takes minutes, or fills the disk."""
    sizes = {path: os.lstat(os.path.join(os.fsencode(own.directory), path)).st_size for path in files}
    if sum(sizes.values()) <= NEW_BYTES:
        return
    known = [path for path in sizes if path in tracked]
    blobs = "".join(f"{tracked[path].blob}\n" for path in known).encode()
    lines = own.run("cat-file", "--batch-check=%(objectsize)", stdin=blobs).stdout.decode().split("\n")
    for path, line in zip(known, lines, strict=False):
        sizes[path] -= int(line) if line.isdigit() else 0
    new = sum(size for size in sizes.values() if size > 0)
    if new > NEW_BYTES:
        largest = max(sizes, key=lambda path: sizes[path])
        raise UsageError(
            f"{new / 1e9:.3g} GB of files are new or have grown, {shown(largest)} above all, and at most "
            f"{NEW_BYTES / 1e9:g} GB are taken; remove them, or have git ignore them"
        )


def _fill(own: Git, tracked: Mapping[bytes, Entry]) -> list[bytes]:
    """Add the existing tracked paths to the index, without dates; returns those to be read again."""
    top, parents = os.fsencode(own.directory), dict[bytes, bool]()
    known, files = [], []
    for path, entry in tracked.items():
        if _is_excluded(path):
            continue
        is_there, blob = _is_file(top, path, parents), entry.blob
        if entry.mode == GITLINK:
            # The commit it is at; the recorded one if it is not checked out.
            folder = os.path.join(top, path)
            is_there = os.path.isdir(folder)
            if is_there and os.path.lexists(os.path.join(folder, b".git")):
                blob = Git(Path(os.fsdecode(folder)), seconds=FOREIGN_SECONDS).commit() or entry.blob
        elif is_there:
            files.append(path)
        if is_there or entry.sparse:
            known.append(b"%s %s 0\t%s\0" % (entry.mode.encode(), blob.encode(), path))
    own.run("update-index", "-z", "--index-info", stdin=b"".join(known))
    return files


def _hash(own: Git, files: list[bytes]) -> None:
    done = own.run(
        "update-index", "-z", "--add", "--remove", "--replace", "--stdin",
        stdin=b"".join(path + b"\0" for path in files),
        accept=(0, 128),
    )  # fmt: skip
    if done.returncode:
        unreadable = [line for line in done.stderr.splitlines() if line.startswith(_OF_A_FILE)]
        if not unreadable:
            raise explained("update-index", done, own.directory)
        said = shown(unreadable[0].partition(b": ")[2])
        raise UsageError(f"a file in {own.directory} cannot be read: {said}")


def _is_excluded(path: bytes) -> bool:
    return not NEVER.isdisjoint(path.split(b"/"))


def _is_file(top: bytes, path: bytes, parents: dict[bytes, bool]) -> bool:
    parent, slash, _ = path.rpartition(b"/")
    if slash and not _is_real_folder(top, parent, parents):
        return False
    try:
        mode = os.lstat(os.path.join(top, path)).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _is_real_folder(top: bytes, folder: bytes, known: dict[bytes, bool]) -> bool:
    if folder not in known:
        parent, slash, _ = folder.rpartition(b"/")
        above = not slash or _is_real_folder(top, parent, known)
        try:
            known[folder] = above and stat.S_ISDIR(os.lstat(os.path.join(top, folder)).st_mode)
        except OSError:
            known[folder] = False
    return known[folder]


def records(output: bytes) -> list[bytes]:
    """The records in the output of a git command with `-z`."""
    return output.split(b"\0")[:-1]


def folders_of(path: bytes) -> list[bytes]:
    """The folders that contain a path, from the top down."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def contents(git: Git, blobs: Iterable[str]) -> dict[str, bytes]:
    """The contents of these blobs, by id or `commit:path`, read by one command."""
    wanted, found, at = dict.fromkeys(blobs), {}, 0
    lines = "".join(f"{blob}\n" for blob in wanted).encode("utf-8", "surrogateescape")
    data = git.output("cat-file", "--batch", stdin=lines)
    for blob in wanted:
        head, _, _ = data[at : at + 200].partition(b"\n")
        at += len(head) + 1
        # `<id> missing` has no size and no content.
        if (size := head.rpartition(b" ")[2]).isdigit():
            if b" blob " in head:
                found[blob] = data[at : at + int(size)]
            at += int(size) + 1
    return found


def texts(git: Git, names: Iterable[str], most_bytes: int) -> dict[str, str]:
    """The text of each blob id or `commit:path`, except missing, binary and larger files, by two git commands."""
    asked = [name for name in dict.fromkeys(names) if "\n" not in name]
    lines = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
    told = git.output("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=lines)
    wanted = [
        name
        for name, line in zip(asked, told.split(b"\n"), strict=False)
        if line.startswith(b"blob ") and line[5:].isdigit() and int(line[5:]) <= most_bytes
    ]
    found = contents(git, wanted).items()
    return {name: data.decode("utf-8", "replace") for name, data in found if b"\0" not in data[:_LOOKED_AT]}
