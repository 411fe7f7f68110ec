"""Where a failing test's text leads: its frames in the workspace, and the deepest that is the project's own.

Owns the reading of Python, JavaScript, Go and Rust locations. Believes no path that is no file of the workspace.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.reports.limits import cut
from fixloop.reports.tree import SourceTree
from fixloop.repository.change import is_test

_EXCERPT: Final = 64 * 1024
# A path begins where a word does: tried at each letter of a long word, it would take the square of its length.
_FRAME: Final = re.compile(
    r'File "(?P<python>[^"\n]{1,500})", line (?P<number>\d{1,7})'
    r"|(?<![\w./@+~\\-])(?:file://)?(?P<path>[\w./@+~\\-]{1,500}\.\w{1,5}):(?P<line>\d{1,7})\b"
)
_CHAINED: Final = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):",
    re.MULTILINE,
)
_FOREIGN: Final = frozenset(
    {
        ".venv",
        "venv",
        "site-packages",
        "dist-packages",
        "node_modules",
        ".tox",
        ".nox",
        ".git",
        "vendor",
        "target",
    }
)
_OUTERMOST_FIRST: Final = (".py", ".pyi", ".pyx")
_AROUND: Final = (3, 12)
"""The fewest and the most lines that are shown on each side of a frame."""
_LINE_BYTES: Final = 160
_FILE_BYTES: Final = 2 * 1024 * 1024


class Frame(NamedTuple):
    """One place in the workspace that a text names."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def frames_in(text: str, tree: SourceTree) -> Iterator[Frame]:
    """The places in the workspace's own files, in the order of the text; what was installed there is left out."""
    for found in _FRAME.finditer(text[-_EXCERPT:]):
        file = tree.relative(found["python"] or found["path"])
        if _FOREIGN.isdisjoint(file.split("/")) and tree.has_file(file):
            yield Frame(file, int(found["number"] or found["line"]))


def deepest(text: str, tree: SourceTree) -> Frame | None:
    """The place to begin at: the deepest frame of the last exception that is no test's, else the deepest of a test."""
    found = list(frames_in(last_exception(text), tree))
    return _innermost([frame for frame in found if not is_test(frame.file)] or found)


def deepest_of_test(text: str, tree: SourceTree) -> Frame | None:
    """Where in the tests the last exception came up."""
    return _innermost([frame for frame in frames_in(last_exception(text), tree) if is_test(frame.file)])


def _innermost(frames: Sequence[Frame]) -> Frame | None:
    """Python writes the deepest frame last, others write it first."""
    if not frames:
        return None
    return frames[-1] if frames[-1].file.endswith(_OUTERMOST_FIRST) else frames[0]


def last_exception(text: str) -> str:
    """What a traceback says of the exception that ended the test, without those that led to it."""
    *_, last = [0, *(found.end() for found in _CHAINED.finditer(text))]
    return text[last:]


def source_around(root: Path, frame: Frame, room: int = 0) -> str:
    """
    The lines around a frame with their numbers, its own marked; empty where the file has none.

    Args:
        room: Characters that the lines may take if the fewest take less.
    """
    path = root / frame.file
    if not SourceTree(root).has_file(frame.file) or path.stat().st_size > _FILE_BYTES:
        return ""
    rows = path.read_bytes().decode("utf-8", "replace").split("\n")
    if not 1 <= frame.line <= len(rows):
        return ""
    fewest, most = _AROUND
    shown = _numbered(rows, frame.line, fewest)
    for around in range(fewest + 1, most + 1):
        more = _numbered(rows, frame.line, around)
        if len(more) > room:
            break
        shown = more
    return shown


def _numbered(rows: Sequence[str], line: int, around: int) -> str:
    first, last = max(1, line - around), min(len(rows), line + around)
    while not rows[first - 1].strip() and first < line:
        first += 1
    while not rows[last - 1].strip() and last > line:
        last -= 1
    width = len(str(last))
    shown = ((number, cut(rows[number - 1].rstrip(), _LINE_BYTES)) for number in range(first, last + 1))
    marked = (f"{'>' if number == line else ' '} {number:{width}} {row}" for number, row in shown)
    return "\n".join(row.rstrip() for row in marked)
