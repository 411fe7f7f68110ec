"""A change taken from a folder: its commit, its files, and which of them judge instead of being judged."""

import os
import posixpath
import re
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from fixloop.errors import UsageError
from fixloop.integrity.parts import has_parts, judging_part
from fixloop.integrity.paths import UNTOLD, Kind, Trust, kind_of, matches, shipped
from fixloop.repository.git import Git, shown
from fixloop.repository.tree import ABSENT, NEVER, Delta, deltas, tree_id

DIFF_BYTES: Final = 1024 * 1024
"""Nobody reads more; the commit itself is complete."""
NAMES_BYTES: Final = 4_000_000
"""Each state of the workflow holds the names, and so does everybody who reads it."""
_UNSEEN: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that a file system may ignore in a name."""
_MOST_SOUGHT: Final = 50
"""The most changed files that are searched for in the tests: each costs a search of the tree."""
_ASSERTS: Final = re.compile(r"^[ \t]*assert|AssertionError|pytest|unittest", re.MULTILINE)


class Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    commit: str
    tree: str
    files: tuple[str, ...] = ()
    """The changed paths, as they are printed."""
    marks: tuple[str, ...] = ()
    """The changed files that judge: tests and their data, gates, runner files."""
    left_out: tuple[str, ...] = ()
    """Files that earlier fixes changed and this change lacks, if a checkout was taken as it is."""


def change_between(git: Git, old: str, new: str) -> Change:
    """The change from one commit to another, both known to `git`. UsageError: it is of too many files to be kept."""
    changed = deltas(git, old, new)
    if (size := sum(len(delta.path) for delta in changed)) > NAMES_BYTES:
        raise UsageError(
            f"{len(changed):,} files were changed, whose names have {size:,} bytes, and at most {NAMES_BYTES:,} are "
            "kept; remove them, or have git ignore them"
        )
    for path in (os.fsdecode(delta.path) for delta in changed if not delta.is_deletion):
        if not NEVER.isdisjoint(os.fsencode(_UNSEEN.sub("", path).casefold()).split(b"/")):
            raise UsageError(f"{shown(os.fsencode(path))} is no part of the project; remove it")
    marks = judging(git, old, changed)
    return Change(
        commit=new,
        tree=tree_id(git, new),
        files=tuple(shown(delta.path) for delta in changed),
        marks=tuple(map(shown, marks)),
    )


def is_test(path: str) -> bool:
    """Whether the path alone shows that it belongs to the tests."""
    return kind_of(path) in (Kind.TEST, Kind.RUNNER)


def judging(git: Git, old: str, changed: Sequence[Delta], trust: Trust = UNTOLD) -> dict[bytes, Kind]:
    """The paths changed since `old` that judge, each with its kind."""
    found: dict[bytes, Kind] = {}
    lists, sought = shipped(), 0
    searched = lists["data"] + lists["helper"]
    for delta in changed:
        path = os.fsdecode(delta.path)
        kind = kind_of(path, trust, is_new=delta.is_addition)
        if kind is Kind.PRODUCT and trust.said_of(path) is None:
            if has_parts(path):
                kind = Kind.GATE if _judging_part_changed(git, delta) else kind
            elif not delta.is_addition and sought < _MOST_SOUGHT and matches(path, searched):
                sought += 1
                kind = Kind.TEST if _is_read_by_tests_alone(git, old, path, trust) else kind
        if kind is not Kind.PRODUCT:
            found[delta.path] = kind
    # A lock file has to match its manifest, which is part of the product.
    judged = [os.fsdecode(delta.path) for delta in changed if delta.path not in found]
    for path in (os.fsdecode(path) for path in list(found)):
        others = {name for lock, names in lists["locks"].items() if matches(path, (lock,)) for name in names}
        above = path.rpartition("/")[0]
        below = (each for each in judged if each.startswith(above and f"{above}/"))
        goes_along = any(posixpath.basename(each) in others for each in below)
        if goes_along and trust.said_of(path) is None:
            del found[os.fsencode(path)]
    return found


def _judging_part_changed(git: Git, delta: Delta) -> bool:
    path = os.fsdecode(delta.path)
    absent = "{}" if path.endswith(".json") else ""
    before, after = (
        judging_part(path, _text(git, entry.blob) if entry.mode != ABSENT else absent)
        for entry in (delta.old, delta.new)
    )
    return before is None or before != after


def _is_read_by_tests_alone(git: Git, old: str, path: str, trust: Trust) -> bool:
    """Whether tests name this data file, or import this module of assertions, and the product does not."""
    name, lists = posixpath.basename(path), shipped()
    stem = name.removesuffix(".py")
    if matches(path, lists["data"]):
        pattern = ("-F", "-e", name)
    elif matches(path, lists["helper"]) and _ASSERTS.search(_text(git, f"{old}:{path}")):
        of_a_name = rf"(.*[^[:alnum:]_])?{re.escape(stem)}([^[:alnum:]_]|$)"
        pattern = ("-E", "-e", rf"^[[:space:]]*(from|import)[[:space:]]{of_a_name}")
    else:
        return False
    # Text for people names files, too.
    others = (":(exclude)*.md", ":(exclude)*.rst", f":(exclude,literal){path}")
    listed = git.found("grep", "-l", "-z", "-I", "--full-name", *pattern, old, "--", *others).split("\0")
    kinds = {kind_of(found.partition(":")[2], trust) for found in listed if found}
    return Kind.TEST in kinds and kinds <= {Kind.TEST, Kind.RUNNER}


def _text(git: Git, blob: str) -> str:
    return git.output("cat-file", "blob", blob).decode(errors="replace")


def diff_between(git: Git, old: str, new: str) -> str:
    """The unified diff from one commit to another; whole lines, at most a megabyte."""
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
    printed = git.output("diff", *plain, old, new, "--")
    if len(printed) > DIFF_BYTES:
        # A line cut in two could leave half a secret.
        printed = printed[: printed.rfind(b"\n", 0, DIFF_BYTES) + 1]
    return printed.decode("utf-8", "replace")
