"""Reads the output of a command that writes no report: its findings, or one digest of the whole (K7).

Owns the reading of lines `path:line[:column]: message`, of annotations for a CI, TypeScript's and Prettier's forms,
and of tests that failed in runners without a report. A line whose file does not exist is not a finding.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import Final
from urllib.parse import unquote

from fixloop.protocol.failures import Failure, Severity
from fixloop.protocol.limits import MAX_FAILURES, cut, one_line
from fixloop.reports.report import SourceTree, failure_of, finding, place_in
from fixloop.reports.tracebacks import deepest, error_type, frames_in, line_in

_PRINTED: Final = tomllib.loads(Path(__file__).with_name("symptoms.toml").read_text("utf-8"))
_FORMS: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(form, re.MULTILINE) for name, form in _PRINTED["form"].items()
}
FAILING: Final = _FORMS["failing"]
_KEY: Final = re.compile(r"(?:^|,)(file|line|title)=([^,]*)")
_LEVEL: Final = re.compile(r"(?:fatal )?(error|warning|note|info|hint)\b[: ]*", re.IGNORECASE)
_CODE_FIRST: Final = re.compile(r"([A-Z]{1,6}-?\d{1,6})(?::| )")
_WORD_FIRST: Final = re.compile(r"([a-z][a-z0-9-]{2,40}(?=:)|[\w.]{0,100}(?:Error|Exception)(?=:|\s*$))")
_RATED: Final = re.compile(r"\S{1,40} (CRITICAL|HIGH|MEDIUM|LOW)\b")
_CODE_LAST: Final = re.compile(r"(?:\[([A-Za-z][\w./-]{1,80})\]|\(([a-z][\w-]{1,80})\))\s*$")
_OF_THE_FILE: Final = frozenset({"unformatted"})
"""A formatter's message for a whole file; the line it names is only where it noticed."""
_DOTS: Final = re.compile(r"^[.sSxXEFuU]{8,}(?: *\[ *\d+%\])?", re.MULTILINE)
_PATH: Final = re.compile(r"[\w@-]*[./][^\s:(]*")
_LONG: Final = 600
_FIRST_ROWS: Final = 8
"""The characters and rows of a failure that lists show."""
ALL: Final = "All of it:"
"""The line of a long failure that is followed by the whole output."""
_CONTEXT_LINES: Final = 6
_CONTEXT_BYTES: Final = 2048

_WORD: Final = re.compile(r"[^\s'\"()<>\[\]:,;=]+")
_BLANKED: Final = (
    re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b"),
    re.compile(r"(?<!\d)\d++(?:[.,]\d++)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?)\b"),
    re.compile(r"\d+"),
)


def without_packages(output: str, tree: SourceTree) -> str:
    """`output` with the lines of each package together and without its name; paths of its files begin with its
    folder, and those in frames of the JVM with the project's."""
    lines = [(_FORMS["of-package"].fullmatch(line), line) for line in output.split("\n")]
    starts = (
        line for line, _ in lines if line and (line["mark"] == "$" or line["text"].startswith("cache "))
    )
    own: dict[tuple[str, str], list[str]] = {(line["name"], line["task"]): [] for line in starts}
    others = list[str]()
    for found, line in lines:
        rows = own.get((found["name"], found["task"])) if found else None
        if found and rows is not None:
            rows.append(found["text"])
        else:
            others.append(line)
    for (name, task), rows in own.items():
        told = re.search(
            rf"^{re.escape(name)}#{re.escape(task)}: .*command \((/[^)\n]+)\)", output, re.MULTILINE
        )
        others.append(_from_the_top("\n".join(rows), tree.relative(told[1]) if told else name, tree))
    text = _FORMS["npm-package"].sub(
        lambda told: _from_the_top(told[0], tree.relative(told["folder"]), tree), "\n".join(others)
    )
    return _FORMS["jvm-frame"].sub(
        lambda told: told["before"] + tree.ending_in(told["package"].replace(".", "/") + told["file"]), text
    )


def _from_the_top(text: str, folder: str, tree: SourceTree) -> str:
    places = ((path[0], f"{folder}/{path[0]}") for path in _PATH.finditer(text))
    known = {inner: path for inner, path in places if tree.has_file(path)}
    return _PATH.sub(lambda path: known.get(path[0], path[0]), text)


def failures_in(output: str, check: str, tree: SourceTree) -> tuple[Failure, ...]:
    """One failure for each failing test, else for each line that names a place in the workspace; notes and indented
    lines belong to the one before."""
    if tests := failing_tests(output, tree):
        return tests[:MAX_FAILURES]
    lines = _FORMS["repeated"].sub("", output).splitlines()
    if annotated := [each for text in lines if (each := _annotation(text, tree)) is not None]:
        # If there are errors, warnings are left out: they did not make the command fail.
        errors = [each for each in annotated if each.severity is not Severity.LOW]
        return tuple(errors or annotated)[:MAX_FAILURES]
    found: list[Failure] = []
    notes: list[str] = []
    for text in lines:
        placed = _finding(text, check, tree)
        if placed is not None and placed.error_type != "note":
            _attach(found, notes)
            found.append(placed)
        elif found and (placed is not None or text[:1].isspace()):
            notes.append(text.strip() if placed is None else placed.message)
        if len(found) >= MAX_FAILURES:
            break
    _attach(found, notes)
    return tuple(found)


def whole_failure(output: str, check: str, command: str, exit_code: int) -> Failure:
    """The one failure of a command that failed without findings, named after its check."""
    # Without progress; a long output follows its key lines: lists show the head, and cuts take the middle.
    text = _DOTS.sub("", _FORMS["passed"].sub("", _FORMS["banner"].sub("", output))).strip()
    if len(text) > _LONG:
        rows = dict.fromkeys(one_line(found[0]) for found in FAILING.finditer(text))
        told = [*islice(rows, _FIRST_ROWS)]
        last = [one_line(row) for row in filter(str.strip, text.split("\n"))][-_FIRST_ROWS:]
        text = "\n".join([*told, *["…"][: len(told)], *last, "", ALL, text])
    message = text or output.strip() or f"`{command}` ended with exit code {exit_code} and no output"
    kind, measure = f"exit code {exit_code}", measure_of(output)
    return failure_of(check, kind, message, severity=Severity.MEDIUM, measure=measure)


def measure_of(output: str) -> str:
    """
    A digest of `output` that ignores incidental differences.

    Digits, paths, addresses and durations are blanked, and lines sorted: parallel tools print in any order.
    """
    output = _WORD.sub(lambda word: "#" if "/" in word[0] else word[0], output)
    for pattern in _BLANKED:
        output = pattern.sub("#", output)
    lines = sorted(line for raw in output.splitlines() if (line := " ".join(raw.split())))
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]


def _annotation(text: str, tree: SourceTree) -> Failure | None:
    if match := _FORMS["annotation"].match(text):
        keys = dict(_KEY.findall(match["keys"]))
        path, line = tree.relative(unquote(keys.get("file", ""))), keys.get("line")
        message = re.sub(rf"^{re.escape(path)}:\d+:\d+: ", "", unquote(match["message"]))
        rule = unquote(keys.get("title", "")) or match["level"]
    elif match := _FORMS["typescript"].match(text):
        path, line = tree.relative(match["path"]), match["line"]
        rule, message = match["code"], match["message"]
    elif match := _FORMS["prettier"].match(text):
        path, line = tree.relative(match["path"]), match["line"]
        message = match["message"] or "is not formatted as Prettier would"
        rule = "format" if match["level"] == "warn" else "syntax"
    else:
        return None
    if not tree.has_file(path):
        return None
    number = int(line) if line and line.isdigit() else None
    return finding(rule, path, number, message.strip(), is_warning=match["level"] == "warning")


def _finding(text: str, check: str, tree: SourceTree) -> Failure | None:
    black = _FORMS["black"].match(text)
    found = black or _FORMS["finding"].match(text)
    file = tree.relative(found["path"]) if found else ""
    if found is None or not tree.has_file(file):
        return None
    message = text.replace(found["path"], file) if black else found["message"]
    level = _LEVEL.match(message)
    kind = level[1].lower() if level else ""
    rest = message[level.end() :] if level else message
    # A finding's code, else its level, else nothing.
    coded = _CODE_FIRST.match(rest) or _CODE_LAST.search(rest[-100:]) or _WORD_FIRST.match(rest)
    if kind in {"note", "info", "hint"}:
        kind = "note"
    elif coded:
        kind = coded[coded.lastindex or 0]
    code = kind if kind not in {"", "error", "warning", "note"} else ""
    # By a word in capitals after the code, as in the bandit preset's format; else medium.
    rated = _RATED.match(message)
    severity = Severity(rated[1].lower()) if rated else Severity.MEDIUM
    line = int(found["line"]) if found["line"] and kind not in _OF_THE_FILE else None
    return failure_of(code or check, kind, message.strip(), file, line, severity)


def _attach(found: list[Failure], notes: list[str]) -> None:
    if notes:
        context = cut("\n".join(notes[:_CONTEXT_LINES]), _CONTEXT_BYTES)
        found[-1] = found[-1].model_copy(update={"context": context})
        notes.clear()


_NOT_ANEW: Final = (
    r"(?ms)^There (?:was|were) \d+ (?!failure|error)[^\n]*:\n.*?(?=^--$|\Z)|^\d+ tests failed:\n.*?\n\n"
)
"""PHPUnit's lists of tests that did not fail, and Bun's of those that it has told."""
_LAST_FRAME: Final = re.compile(r'\A.*^ +File "[^\n]*', re.MULTILINE | re.DOTALL)

# The functions that a test of Bats called; what they did not find is in the lines below.
_OF_HELPERS: Final = re.compile(r"(?<=\()from function [^()]{1,2000}(?=in test file )")
# What Node adds to each point besides the error, which its stack names as well.
_OF_NODE: Final = re.compile(r"^(?:duration_ms|type|location|failureType|code|name): .*\n?", re.MULTILINE)
_ERROR: Final = re.compile(r"^ *(?:error|message): (?:[|>]-?\n *)?['\"]?([^\n]+?)['\"]?$", re.MULTILINE)


def failing_tests(output: str, tree: SourceTree) -> tuple[Failure, ...]:
    """Each test that unittest, a TAP producer or a runner of `_FAILED` reports as failed, in their order; what Perl
    prints of a failing point of TAP replaces it."""
    others = list[Failure]()
    listed = re.sub(_NOT_ANEW, "", output)
    for block in (
        found.groupdict() for pattern in _PRINTED["failed"].values() for found in re.finditer(pattern, listed)
    ):
        said, at = block["said"], block.get("at")
        # Perl's rows, which follow the line that names the test, are comments.
        said = re.sub(r"^ *#", "", said, flags=re.MULTILINE) if said.startswith("\n") else said
        told = "\n".join(filter(None, (dedent(said).strip(), at)))
        for each in re.split(r"\n(?! )", block["name"] or at or ""):  # trial names all that failed alike
            name = " > ".join(filter(None, (block.get("suite"), *re.split(r"\n +| › ", each))))
            others.append(_failing(name, told, "failure", (), tree))
    names = {failure.name for failure in others}
    points = (point for point in _of_tap(output, tree) if point.name.rpartition(" > ")[2] not in names)
    return (*_of_unittest(output, tree), *points, *others)


def _of_unittest(output: str, tree: SourceTree) -> Iterator[Failure]:
    for block in _FORMS["unittest"].finditer(output):
        said, method, owner = block["said"].strip("\n"), block["method"], block["owner"]
        # Before Python 3.11 only the class is in parentheses.
        whole = owner if f".{owner}".endswith(f".{method}") else f"{owner}.{method}"
        name = block["other"] or whole.removeprefix("unittest.loader._FailedTest.")
        about = ((block["more"] or "").strip(), block["about"].strip())
        yield _failing(name, said, block["end"].lower(), about, tree)


def _failing(name: str, said: str, kind: str, about: tuple[str, ...], tree: SourceTree) -> Failure:
    """A test whose traceback or message is `said`; its name may have its id in parentheses, as in zope.testrunner."""
    name = re.sub(r"^(\w+) \((\S+\.\1)\)$", r"\2", name)
    # The error follows the last frame and the code it shows; a doctest's, a rule.
    error = next((row for row in _LAST_FRAME.sub("", said).split("\n") if row[:1].strip()), "").strip("-")
    file = tree.module_file(name)[0] or next((frame.file for frame in frames_in(said, tree)), "")
    place = (file, line_in(said, file)) if file else place_in(said, tree)
    head = () if said.startswith(error) else (error,)
    return _failure(name, place, error_type(None, error, said, kind), (*head, *about, said), tree)


def _of_tap(output: str, tree: SourceTree) -> Iterator[Failure]:
    title, depth, failed_at = "", 0, 0
    for point in _FORMS["tap"].finditer(output):
        if point["title"]:
            title = point["title"].strip()
            continue
        indent, name = len(point["indent"]), point["name"].strip() or "unnamed test"
        # The line that ends a group of points is indented less, and fails if one of them does.
        title, depth = "" if indent < depth else title, indent
        if point["bad"] and (point["timed"] or not point["directive"]):
            is_told, failed_at = indent < failed_at, indent
            text = _OF_HELPERS.sub("", dedent(point["yaml"] or point["comments"] or "").strip("\n"))
            error = _ERROR.search(text)
            full = f"{title} > {name}" if title and title != name else name
            about = (error[1] if error else name, _OF_NODE.sub("", text).strip())
            if not is_told:
                yield _failure(full, place_in(text, tree), error_type(None, "", text, "failure"), about, tree)


def _failure(
    name: str, place: tuple[str, int | None], kind: str, about: tuple[str, ...], tree: SourceTree
) -> Failure:
    frame = str(deepest(about[-1], tree) or "")
    return failure_of(name, kind, "\n".join(filter(None, about)), *place, frame=frame)
