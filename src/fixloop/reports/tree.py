"""The workspace files that a report may name.

Makes paths from a report relative to the workspace, and never leaves it: a path that points elsewhere is kept as a bare
name, and no path is opened or followed here.
"""

import os
import posixpath
import re
from functools import cached_property
from pathlib import Path
from typing import Final

from fixloop.configuration.layout import files_below
from fixloop.protocol.limits import NAME_BYTES, clean, cut

# A module, or a folder such as `my-package` that pytest names like one.
_PART: Final = re.compile(r"[\w-]+")
# A drive or a URL: neither is a path below the workspace.
_ELSEWHERE: Final = re.compile(r"/?[A-Za-z][A-Za-z0-9+.-]*:/")


class SourceTree:
    """The workspace's files; without a root, every relative path is accepted and no file exists."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        # Tools report the given path or the real one; both are the workspace.
        self._bases = () if root is None else (os.path.abspath(root), os.path.realpath(root))
        self._known: dict[str, bool] = {}

    def relative(self, text: str) -> str:
        """The path relative to the workspace; a bare name if outside it, empty for the root or no file."""
        path = " ".join(clean(text).replace("\\", "/").splitlines()).strip()
        if not path or _ELSEWHERE.match(path):
            return _bare(path)
        path = posixpath.normpath(path)
        inside = self._below_a_base(path) if path.startswith("/") else path
        if inside is None or inside == ".." or inside.startswith("../"):
            return _bare(path)
        return "" if inside == "." else cut(inside, NAME_BYTES)

    def has_file(self, relative: str) -> bool:
        """Whether the workspace itself has the regular file `relative`; links out of it do not count."""
        if self._root is None or not relative:
            return False
        if relative not in self._known:
            path = os.path.join(self._root, relative)
            inside = os.path.isfile(path) and self._below_a_base(os.path.realpath(path)) is not None
            self._known[relative] = inside
        return self._known[relative]

    def ending_in(self, end: str) -> str:
        """The first file of the workspace whose path ends in `end`; without one, its bare name."""
        return next((path for path in self._paths if f"/{path}".endswith(f"/{end}")), _bare(end))

    def module_file(self, dotted: str) -> tuple[str, list[str]]:
        """The Python file of `package.module.Class`, and the rest of the name; without a file, all its parts."""
        parts = dotted.split(".")
        folder = ""
        for place, part in enumerate(parts):
            if not _PART.fullmatch(part):
                break
            path = posixpath.join(folder, part)
            if self.has_file(f"{path}.py"):
                return f"{path}.py", parts[place + 1 :]
            if self._root is None or not os.path.isdir(os.path.join(self._root, path)):
                break
            folder = path
        return "", parts

    @cached_property
    def _paths(self) -> list[str]:
        root = self._root
        return [] if root is None else [str(path.relative_to(root)) for path in files_below(root)]

    def _below_a_base(self, path: str) -> str | None:
        path = f"/{path.lstrip('/')}"
        for base in self._bases:
            if f"{path}/".startswith(f"{base.rstrip('/')}/"):
                return path[len(base.rstrip("/")) + 1 :] or "."
        return None


def _bare(path: str) -> str:
    name = posixpath.basename(path.rstrip("/"))
    return "" if name in {"..", "."} else cut(name, NAME_BYTES)
