"""Finds the error in a failing test's text, and its place: lines, frames and the code around them.

Owns the guessing; every pattern reads a bounded piece of the text, so that no text can make it slow. Ignores paths that
are not files of the workspace.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.protocol.limits import cut
from fixloop.reports.report import SourceTree
from fixloop.repository.change import is_test

_EXCERPT: Final = 4096
_TOKEN: Final = 512
_MOST_TRIES: Final = 1000
_KIND: Final = r"(?:Error|Exception|Failure|Failed|Warning|Timeout|Interrupt|Exit)"
_NAMED: Final = re.compile(r"\b([A-Za-z_]\w{0,60}(?:Error|Exception)|Error|Exception)\b")
_HEAD: Final = re.compile(rf"\s*((?:[\w$]{{1,100}}[.\\]){{0,20}}\w{{0,100}}{_KIND})\s*(?::|$)", re.MULTILINE)
_CRASH: Final = re.compile(
    r"^[ \t]*\S[^:\n]{0,500}:\d{1,7}: ((?:\w{1,100}\.){0,20}[A-Z]\w{0,100})\s*$", re.MULTILINE
)
_PYTHON: Final = re.compile(r"^((?:\w{1,100}\.){0,20}[A-Z]\w{0,100})(?::|$)", re.MULTILINE)
_RAISED: Final = re.compile(r"(?m)^E +((?:\w{1,100}\.){0,20}\w{0,100}(?:Error|Exception|Warning))(?::|$)")
_AFTER_FILE: Final = r'(?:"?,? line |:|\()(\d{1,7})'


def error_type(declared: str | None, message: str, text: str, fallback: str) -> str:
    """
    The kind of error, for the key of a failure (K7).

    Taken from the report's own `type`, else from the start of the message, else from the line that ends a traceback,
    else from the first name in the message or text that looks like an error; else `fallback`.
    """
    if declared and declared.strip():
        return declared.strip()
    if message.startswith("Traceback") and (names := _PYTHON.findall(message[-_EXCERPT:])):
        return str(names[-1])
    if head := _HEAD.match(message[:_EXCERPT]):
        return head[1]
    if crashes := _CRASH.findall(text[-_EXCERPT:]):
        return str(crashes[-1])
    if raised := _RAISED.findall(text[-_EXCERPT:]):
        return str(raised[-1])
    for excerpt in (message[:_EXCERPT], text[:_EXCERPT], text[-_EXCERPT:]):
        if named := _NAMED.search(excerpt):
            return named[1]
    return fallback


def raised_in(text: str) -> str:
    """The error that pytest says was raised, as `KeyError: 'x'`; empty if it names none."""
    excerpt = text[-_EXCERPT:]
    found = [excerpt[match.start(1) :].partition("\n")[0] for match in _RAISED.finditer(excerpt)]
    return found[-1] if found else ""


def line_in(text: str, file: str) -> int | None:
    """The last line of `file` that `text` names, as `path:12`, `path line 12`, `File "path", line 12` or `path(12)`."""
    base = file.rsplit("/", 1)[-1]
    found = [*re.finditer(re.escape(base) + _AFTER_FILE, text)] if base else []
    for place in found[: -_MOST_TRIES - 1 : -1]:
        end = place.start() + len(base)
        token = re.split(r"[\s\"'()<>]", text[max(end - _TOKEN, 0) : end])[-1]
        path = token.replace("\\", "/").removeprefix("./")
        # The same file, relative to a folder above or below the workspace.
        if path == file or path.endswith(f"/{file}") or file.endswith(f"/{path}"):
            return int(place[1])
    return None


_FRAMES_EXCERPT: Final = 64 * 1024
# A path begins where a word does: matching at each letter of a long word would take quadratic time.
_FRAME: Final = re.compile(
    r'File "(?P<python>[^"\n]{1,500})", line (?P<number>\d{1,7})'
    r"|(?<![\w./@+~\\-])(?:file://)?(?P<path>[\w./@+~\\-]{1,500}\.\w{1,5})(?::|,? line )(?P<line>\d{1,7})\b"
)
_NOT_IMPORTED: Final = re.compile(r"^E .*(?:No module named|cannot import name .* from) '(\w+)", re.MULTILINE)
# A place, its source, where in it, and the error; or as compilers of TypeScript print it. Not that a package lacks what
# is imported from it, nor that its types are missing.
_UNCAUGHT: Final = re.compile(
    r"^(?: *Exception during run: )?(?:"
    r"(?:file://)?(?P<script>/\S{1,500}:\d{1,7})\n(?:[^\n]*\n){1,9}? *\^+ *\n\n?"
    r"(?!.*The requested module '[^./])(?:Uncaught )?\w*Error\b"
    r"|(?P<esbuild>/\S{1,500}:\d{1,7}):\d{1,7}: ERROR: "
    r"|(?P<typescript>\S{1,500}\.[cm]?tsx?\(\d{1,7}),\d{1,7}\): error TS(?!2307|2688|7016))",
    re.MULTILINE,
)
_CHAINED: Final = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):",
    re.MULTILINE,
)
_FOREIGN: Final = frozenset(
    {".venv", "venv", "site-packages", "dist-packages", "node_modules"}
    | {".tox", ".nox", ".git", "vendor", "target"}
)
_OUTERMOST_FIRST: Final = (".py", ".pyi", ".pyx")
_AROUND: Final = (3, 12)
"""The minimum and maximum of lines shown on each side of a frame."""
_LINE_BYTES: Final = 160
_FILE_BYTES: Final = 2 * 1024 * 1024


class Frame(NamedTuple):
    """One place in the workspace that a text names."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def frames_in(text: str, tree: SourceTree) -> Iterator[Frame]:
    """The places in the workspace's own files, in the order of the text, without installed packages."""
    for found in _FRAME.finditer(text[-_FRAMES_EXCERPT:]):
        file = tree.relative(found["python"] or found["path"])
        if _FOREIGN.isdisjoint(file.split("/")) and tree.has_file(file):
            yield Frame(file, int(found["number"] or found["line"]))


def conftest_error(output: str, tree: SourceTree) -> Frame | None:
    """The place in the project's own code that keeps pytest from loading a conftest.py; None if it is elsewhere, or if
    something cannot be imported that is not the project's."""
    _, _, text = output.partition("ImportError while loading conftest ")
    if imported := _NOT_IMPORTED.search(text):
        parts = (f"{folder}{imported[1]}{end}" for folder in ("", "src/") for end in (".py", "/__init__.py"))
        if not any(map(tree.has_file, parts)):
            return None
    last = [found[0] for found in _FRAME.finditer(text)][-1:]
    return next((frame for each in last for frame in frames_in(each, tree)), None)


def script_error(output: str, tree: SourceTree) -> Frame | None:
    """The place in the project's own code of the error that ended a script of Node.js, if it could be loaded."""
    places = (found[found.lastgroup or 0].replace("(", ":") for found in _UNCAUGHT.finditer(output))
    return next((frame for place in places for frame in frames_in(place, tree)), None)


def deepest(text: str, tree: SourceTree) -> Frame | None:
    """The place to start: the last exception's deepest frame outside tests, else its deepest frame in a test."""
    found = list(frames_in(last_exception(text), tree))
    return _innermost([frame for frame in found if not is_test(frame.file)] or found)


def deepest_of_test(text: str, tree: SourceTree) -> Frame | None:
    """The deepest frame of the last exception inside a test."""
    return _innermost([frame for frame in frames_in(last_exception(text), tree) if is_test(frame.file)])


def _innermost(frames: Sequence[Frame]) -> Frame | None:
    """Python writes the deepest frame last; others write it first."""
    if not frames:
        return None
    return frames[-1] if frames[-1].file.endswith(_OUTERMOST_FIRST) else frames[0]


def last_exception(text: str) -> str:
    """The part of a traceback for the exception that ended the test, without those that led to it."""
    *_, last = [0, *(found.end() for found in _CHAINED.finditer(text))]
    return text[last:]


def source_around(root: Path, frame: Frame, room: int = 0) -> str:
    """The numbered lines around a frame, its own marked; more than the minimum if they fit in `room`."""
    path = root / frame.file
    if not SourceTree(root).has_file(frame.file) or path.stat().st_size > _FILE_BYTES:
        return ""
    rows = path.read_bytes().decode("utf-8", "replace").split("\n")
    if not 1 <= frame.line <= len(rows):
        return ""
    fewest, most = _AROUND
    shown = ""
    for around in range(most, fewest - 1, -1):
        inside = range(max(1, frame.line - around), min(len(rows), frame.line + around) + 1)
        told = [number for number in inside if number == frame.line or rows[number - 1].strip()]
        width, marks = len(str(told[-1])), {frame.line: ">"}
        cuts = {at: cut(rows[at - 1].rstrip(), _LINE_BYTES) for at in range(told[0], told[-1] + 1)}
        shown = "\n".join(f"{marks.get(at, ' ')} {at:{width}} {row}".rstrip() for at, row in cuts.items())
        if len(shown) <= room:
            break
    return shown
