"""Maps the lines of one tree to another: renamed files, and lines that stayed, went and were added.

Reads git. Knows nothing of failures.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from fixloop.repository.git import Git, shown
from fixloop.repository.tree import ABSENT, GITLINK, SYMLINK, deltas

_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class LineMap:
    """The changes to one file's lines. Lines count from 1."""

    hunks: tuple[tuple[int, int, int, int], ...] = ()
    """Start and length before, start and length after, in order; a length of 0 names the line before it."""
    removed: Mapping[int, str] = field(default_factory=dict)
    """The text of lines that were removed or changed."""
    added: Mapping[int, str] = field(default_factory=dict)

    def after(self, line: int) -> int | None:
        """The new number of an unchanged line; None for one that was removed or changed."""
        shift = 0
        for start, length, _, new_length in self.hunks:
            first = start if length else start + 1
            if line < first:
                break
            if line < first + length:
                return None
            shift += new_length - length
        return line + shift


@dataclass(frozen=True)
class Moves:
    """The new names of the old tree's files, and the new places of their lines."""

    git: Git
    old: str
    """A commit or a tree."""
    new: str
    _maps: dict[str, LineMap] = field(default_factory=dict, compare=False)

    def name_after(self, path: str) -> str:
        """The path in the new tree; the same if the file was not renamed, or is gone."""
        return self._renamed_and_changed[0].get(path, path)

    def lines(self, path: str) -> LineMap:
        """The line changes of the file that is called `path` in the new tree."""
        if path in self._maps:
            return self._maps[path]
        old, new = self._renamed_and_changed[1].get(path, ("", ""))
        hunks: list[tuple[int, int, int, int]] = []
        removed: dict[int, str] = {}
        added: dict[int, str] = {}
        before = after = 0
        options = ("--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--text")
        output = self.git.output("diff", *options, old, new) if old != new else b""
        for line in output.split(b"\n"):
            if match := _HUNK.match(line):
                start, length, new_start, new_length = (int(part or 1) for part in match.groups())
                hunks.append((start, length, new_start, new_length))
                before, after = start, new_start
            elif hunks and line[:1] == b"-":
                removed[before] = line[1:].decode("utf-8", "replace")
                before += 1
            elif hunks and line[:1] == b"+":
                added[after] = line[1:].decode("utf-8", "replace")
                after += 1
        return self._maps.setdefault(path, LineMap(tuple(hunks), removed, added))

    @cached_property
    def _renamed_and_changed(self) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
        """Renames from old to new, and for each changed path of the new tree its blobs before and after."""
        renamed, changed = {}, {}
        for delta in deltas(self.git, self.old, self.new, renames=True):
            path = shown(delta.path)
            if delta.before != delta.path:
                renamed[shown(delta.before)] = path
            if {delta.old.mode, delta.new.mode}.isdisjoint({ABSENT, GITLINK, SYMLINK}):
                changed[path] = delta.old.blob, delta.new.blob
        return renamed, changed
