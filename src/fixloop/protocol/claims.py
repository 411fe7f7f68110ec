"""Compares the files an agent says it changed with those that did change (A32).

The record always has the real change. A difference is noted, because a reader of the completion may otherwise rely on
the agent's words.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_DEEPEST: Final = 40
MOST_SHOWN: Final = 20
"""How many files of a difference are listed; the others are counted."""
#: Text that agents add after a path: a remark, a line number.
_REMARK: Final = re.compile(r"(?:[\s(,;]|:(?:\d|\s|\Z)|\s[-–—]).*", re.DOTALL)


class Differences(NamedTuple):
    """The differences between an answer and the change."""

    unchanged: tuple[str, ...] = ()
    """Named but not changed."""
    unnamed: tuple[str, ...] = ()
    """Changed but not named."""


def differences(named: Sequence[str], changed: Sequence[str]) -> Differences:
    """Compare the entries of Files Modified (paths with or without a remark, folders with a trailing slash) with the
    changed files, relative to the workspace's root."""
    # Keys are paths and folders.
    meaning = defaultdict[str, set[str]](set, {name: {name} for name in changed})
    for name in changed:
        for at, character in enumerate(name):
            if character == "/":
                meaning[name[: at + 1]].add(name)
    meant = [_files_named_by(entry, meaning) for entry in named]
    unchanged = [entry for entry, files in zip(named, meant, strict=True) if not files]
    mentioned = set[str]().union(*meant)
    return Differences(_shortened(unchanged), _shortened([name for name in changed if name not in mentioned]))


def _files_named_by(entry: str, meaning: Mapping[str, set[str]]) -> set[str]:
    """The changed files that an entry names, also by an absolute path; none if it names something else."""
    if entry in meaning and not entry.endswith("/"):
        return meaning[entry]
    plain, found = entry.strip(), set[str]()
    for path in {plain, _REMARK.sub("", plain)}:
        path = path.strip("`\"'").removeprefix("./")
        tails = [path]
        if path.startswith("/"):
            parts = path.split("/")[-_DEEPEST:]
            tails += ["/".join(parts[at:]) for at in range(1, len(parts))]
        found = found.union(*(meaning.get(tail, ()) for tail in tails))
    return found


def _shortened(names: Iterable[str]) -> tuple[str, ...]:
    found = list(names)
    if len(found) <= MOST_SHOWN:
        return tuple(found)
    return (*found[:MOST_SHOWN], f"and {len(found) - MOST_SHOWN} more")
