"""The output of a command that writes no report: its findings, or one digest of it all (K7).

Owns the reading of lines `path:line[:column]: message`. Refuses to see a finding where no such file exists.
"""

import hashlib
import re
from typing import Final

from fixloop.protocol.failures import Failure, Severity
from fixloop.reports.annotations import annotations_in
from fixloop.reports.limits import MAX_FAILURES, cut, short_name
from fixloop.reports.tree import SourceTree

_FINDING: Final = re.compile(
    r"(?:vet: )?(?P<path>[^\s:][^:]{0,500}):(?P<line>\d{1,7})(?::\d{1,7})?(?:-\d{1,7})?: ?(?P<message>\S.*)"
)
_LEVEL: Final = re.compile(r"(?:fatal )?(error|warning|note|info|hint)\b[: ]*", re.IGNORECASE)
_CODE_FIRST: Final = re.compile(r"([A-Z]{1,6}-?\d{1,6})(?::| )")
_WORD_FIRST: Final = re.compile(r"([a-z][a-z0-9-]{2,40}(?=:)|[\w.]{0,100}(?:Error|Exception)(?=:|\s*$))")
_RATED: Final = re.compile(r"\S{1,40} (CRITICAL|HIGH|MEDIUM|LOW)\b")
_CODE_LAST: Final = re.compile(r"(?:\[([A-Za-z][\w./-]{1,80})\]|\(([a-z][\w-]{1,80})\))\s*$")
_OF_THE_FILE: Final = frozenset({"unformatted"})
"""What a formatter says of a file as a whole; the line it names is only where it noticed."""
_CONTEXT_LINES: Final = 6
_CONTEXT_BYTES: Final = 2048

_WORD: Final = re.compile(r"[^\s'\"()<>\[\]:,;=]+")
_BLANKED: Final = (
    re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b"),
    re.compile(r"(?<!\d)\d++(?:[.,]\d++)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?)\b"),
    re.compile(r"\d+"),
)


def failures_in(output: str, check: str, tree: SourceTree) -> tuple[Failure, ...]:
    """
    One failure for each line that names a place in the workspace.

    A `note:` belongs to the finding before it, and so do the indented lines that follow one.
    """
    if annotated := annotations_in(output, tree):
        return annotated[:MAX_FAILURES]
    found: list[Failure] = []
    notes: list[str] = []
    for text in output.splitlines():
        finding = _finding(text, check, tree)
        if finding is not None and finding.error_type != "note":
            _attach(found, notes)
            found.append(finding)
        elif found and (finding is not None or text[:1].isspace()):
            notes.append(text.strip() if finding is None else finding.message)
        if len(found) >= MAX_FAILURES:
            break
    _attach(found, notes)
    return tuple(found)


def whole_failure(output: str, check: str, command: str, exit_code: int) -> Failure:
    """The one failure of a command that only said no, named after its check."""
    return Failure(
        name=short_name(check),
        error_type=f"exit code {exit_code}",
        message=output.strip() or f"`{command}` ended with exit code {exit_code} and no output",
        severity=Severity.MEDIUM,
        measure=measure_of(output),
    )


def measure_of(output: str) -> str:
    """
    A digest of `output` that only a change of substance changes.

    Digits, paths, addresses and durations are blanked, and lines sorted: parallel tools print in any order.
    """
    output = _WORD.sub(lambda word: "#" if "/" in word[0] else word[0], output)
    for pattern in _BLANKED:
        output = pattern.sub("#", output)
    lines = sorted(line for raw in output.splitlines() if (line := " ".join(raw.split())))
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]


def _finding(text: str, check: str, tree: SourceTree) -> Failure | None:
    match = _FINDING.match(text)
    if match is None:
        return None
    file = tree.relative(match["path"])
    if not tree.has_file(file):
        return None
    kind = _kind(match["message"])
    code = kind if kind not in {"", "error", "warning", "note"} else ""
    return Failure(
        name=short_name(code or check),
        file=file,
        line=None if kind in _OF_THE_FILE else int(match["line"]),
        error_type=short_name(kind),
        message=match["message"].strip(),
        severity=_severity(match["message"]),
    )


def _severity(message: str) -> Severity:
    """As a word in capitals after the code says, in the form the bandit preset asks for; else medium."""
    rated = _RATED.match(message)
    return Severity(rated[1].lower()) if rated else Severity.MEDIUM


def _kind(message: str) -> str:
    """A finding's code, else its level, else nothing."""
    level = _LEVEL.match(message)
    word = level[1].lower() if level else ""
    if word in {"note", "info", "hint"}:
        return "note"
    rest = message[level.end() :] if level else message
    if first := _CODE_FIRST.match(rest):
        return first[1]
    if last := _CODE_LAST.search(rest[-100:]):
        return last[1] or last[2]
    named = _WORD_FIRST.match(rest)
    return named[1] if named else word


def _attach(found: list[Failure], notes: list[str]) -> None:
    if notes:
        context = cut("\n".join(notes[:_CONTEXT_LINES]), _CONTEXT_BYTES)
        found[-1] = found[-1].model_copy(update={"context": context})
        notes.clear()
