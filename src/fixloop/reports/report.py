"""The result of one report file, built the same way for every format from a list of tests or findings.

A list without tests proves nothing. Owns the readers' only exception, and finds a failure's place in its text. Paths
from a report become relative to the workspace and never leave it: a path that points elsewhere is kept as a bare name,
and no path is opened or followed here.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from fixloop.configuration.layout import files_below
from fixloop.errors import UsageError
from fixloop.protocol.checks import Counts, RunOutcome
from fixloop.protocol.failures import Failure, Severity
from fixloop.protocol.limits import MAX_FAILURES, NAME_BYTES, clean, cut, short_name

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


class Unusable(UsageError):
    """A file proves nothing as a report; `read_report` turns this into the outcome `error`."""


class Report(BaseModel):
    """One report file's verdict and entries; counts are exact, texts not yet bounded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: RunOutcome
    """PASSED, FAILED or ERROR."""
    reason: str
    """One sentence."""
    counts: Counts = Counts()
    failures: tuple[Failure, ...] = ()
    warnings: tuple[Failure, ...] = ()
    """Findings that fail only if the exit code is not 0, as with `--max-warnings`."""
    passed_names: tuple[str, ...] = ()
    cases: frozenset[str] = frozenset()
    """The passed names that are tests: neither files that load nor parents of subtests."""
    coverage_percent: float | None = None
    findings: int = 0
    """The number of results that could explain a non-zero exit code, even if not failures (K38)."""
    digest: str = ""
    """sha256 of the file, hex; empty when it could not be read."""


def as_json(report: Report) -> dict[str, object]:
    """The document `fixloop read --json` prints."""
    shown = {"name", "file", "line", "error_type", "message"}
    included = {"outcome": True, "reason": True, "counts": True}
    return report.model_dump(mode="json", include={**included, "failures": {"__all__": shown}})


# `path:12:5`, `path:12` and `(path:12:5)`, absolute or relative, also as a file: URL.
# A path begins where a word does: matching at each letter of a long word would take quadratic time.
_PLACE: Final = re.compile(
    r"(?<![\w./@+~-])(?:file://)?(?P<path>[\w./@+~-]{1,400}\.\w{1,6})(?::|,? line )(?P<line>\d{1,7})(?!\d)"
)
_NOT_OWN: Final = re.compile(r"(?:^|/)(?:node_modules|vendor|\.cargo)/")
_EXCERPT: Final = 64 * 1024


def failure_of(
    name: str,
    kind: str,
    message: str,
    file: str = "",
    line: int | None = None,
    severity: Severity = Severity.HIGH,
    **more: Any,
) -> Failure:
    """One failure of a report, its name and kind short enough for a state."""
    more |= {"name": short_name(name), "error_type": short_name(kind)}
    return Failure(file=file, line=line, message=message, severity=severity, **more)


@dataclass
class Tests:
    """Collects the tests of one report."""

    passed: list[str] = field(default_factory=list)
    skipped: int = 0
    errors: int = 0
    """The number of failures reported as errors."""
    flaky: int = 0
    """The number that passed only on a rerun."""
    failures: list[Failure] = field(default_factory=list)
    not_counted: list[str] = field(default_factory=list)
    """Passed names that are not tests themselves: files that load, parents of subtests."""

    def add(self, failure: Failure) -> None:
        """Raises Unusable if there are too many failures to compare two runs."""
        if len(self.failures) >= MAX_FAILURES:
            raise Unusable(f"lists more than {MAX_FAILURES} failing tests; run a smaller part of them")
        self.failures.append(failure.model_copy(update={"suggestion": suggestion_for(failure)}))

    def fail(self, name: str, kind: str, message: str, file: str = "", line: int | None = None) -> None:
        self.add(failure_of(name, kind, clean(message).strip(), file, line))

    def report(self) -> Report:
        """The result; a name that failed once has not passed."""
        passed, bad, errors, skipped = len(self.passed), len(self.failures), self.errors, self.skipped
        total = passed + skipped + bad
        if total == 0:
            outcome, reason = RunOutcome.ERROR, "proves nothing: it lists no tests"
        elif skipped == total:
            outcome, reason = RunOutcome.ERROR, f"proves nothing: all {total} tests were skipped"
        elif bad:
            outcome, reason = RunOutcome.FAILED, f"{bad} of {total} tests did not pass"
        else:
            again = f", {self.flaky} of them only when run again" if self.flaky else ""
            outcome, reason = RunOutcome.PASSED, f"{passed} of {total} tests passed{again}"
        failing = {failure.name for failure in self.failures}
        cases = [name for name in map(short_name, self.passed) if name not in failing]
        also = (name for name in map(short_name, self.not_counted) if name not in failing)
        return Report(
            outcome=outcome,
            reason=reason,
            counts=Counts(total=total, passed=passed, failed=bad - errors, errors=errors, skipped=skipped),
            failures=tuple(self.failures),
            passed_names=(*cases, *also),
            cases=frozenset(cases),
            findings=bad,
        )


def findings_report(errors: Sequence[Failure], warnings: Sequence[Failure], looked_at: str) -> Report:
    """The report of a tool that lists findings: errors fail; warnings fail if its exit code is not 0."""
    if len(errors) + len(warnings) > MAX_FAILURES:
        raise Unusable(f"lists more than {MAX_FAILURES} findings; check a smaller part")
    also = f", {len(warnings)} warnings" if warnings else ""
    return Report(
        outcome=RunOutcome.FAILED if errors else RunOutcome.PASSED,
        reason=f"{len(errors)} errors{also} in {looked_at}",
        counts=Counts(total=len(errors), failed=len(errors)),
        failures=tuple(errors),
        warnings=tuple(warnings),
        findings=len(errors) + len(warnings),
    )


def finding(rule: str, file: str, line: int | None, message: str, *, is_warning: bool) -> Failure:
    """One finding of a linter or compiler, named after its rule."""
    return failure_of(rule, rule, message, file, line, Severity.LOW if is_warning else Severity.MEDIUM)


def suggestion_for(failure: Failure) -> str:
    """Advice on a failing test whose error is misleading (B22); empty if the error is clear."""
    if failure.message.startswith("[XPASS(strict)]"):
        return "the test is marked as expected to fail, and passes: find what made it pass, and whether that is meant"
    return ""


def place_in(text: str, tree: SourceTree, folders: Iterable[str] = ()) -> tuple[str, int | None]:
    """The first place in `text` inside the project; bare file names, as Go's, are looked for in `folders`."""
    folders = tuple(folders)
    for found in _PLACE.finditer(text[:_EXCERPT]):
        path = tree.relative(found["path"])
        below = () if "/" in path else (f"{folder}/{path}" for folder in folders)
        for candidate in (*below, path):
            if not _NOT_OWN.search(candidate) and tree.has_file(candidate):
                return candidate, int(found["line"])
    return "", None
