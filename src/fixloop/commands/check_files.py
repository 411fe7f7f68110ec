"""The results of `fixloop check` in the formats of CI systems: SARIF, JUnit, Code Quality, and GitHub's own.

Returns texts and writes nothing. Their paths are relative to the repository's top.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fixloop import __version__
from fixloop.machine.terminal_text import visible
from fixloop.protocol import markdown
from fixloop.protocol.checks import CheckResult, RunOutcome
from fixloop.protocol.failures import Failure, Severity

MOST_ANNOTATIONS: Final = 10
"""The most of one kind that GitHub shows per step."""
MOST_ROWS: Final = 200
MOST_MESSAGE: Final = 2_000
_LEVELS: Final = {Severity.LOW: "note", Severity.MEDIUM: "warning"}
_QUALITY: Final = {
    Severity.LOW: "minor",
    Severity.MEDIUM: "major",
    Severity.HIGH: "critical",
    Severity.CRITICAL: "blocker",
}


class Report(NamedTuple):
    """One check of a project."""

    verdict: str
    results: Sequence[CheckResult]
    folder: str = ""
    """The project's folder in its repository."""
    changed: Mapping[str, frozenset[int]] = MappingProxyType({})
    """The lines that differ from the base, by path."""

    @property
    def failures(self) -> list[Failure]:
        return [failure for result in self.results for failure in result.failures]

    def path(self, failure: Failure) -> str:
        return f"{self.folder}/{failure.file}" if self.folder and failure.file else failure.file

    def is_changed(self, failure: Failure) -> bool:
        return failure.line in self.changed.get(self.path(failure), ())


def sarif(report: Report) -> str:
    """SARIF 2.1.0: one run per check, one result per failure with a place in a file."""
    runs = []
    for result in report.results:
        placed = [failure for failure in result.failures if failure.file]
        rules = sorted({_rule(failure) for failure in placed})
        runs.append(
            {
                "tool": {
                    "driver": {
                        "name": f"fixloop: {result.check}",
                        "version": __version__,
                        "rules": [{"id": rule} for rule in rules],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": result.outcome is not RunOutcome.ERROR,
                        **({"exitCodeDescription": result.reason} if result.reason else {}),
                    }
                ],
                "results": [
                    {
                        "ruleId": _rule(failure),
                        "level": _LEVELS.get(failure.priority, "error"),
                        "message": {"text": _message(failure)},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": report.path(failure)},
                                    **({"region": {"startLine": failure.line}} if failure.line else {}),
                                }
                            }
                        ],
                        "partialFingerprints": {"fixloop/v1": _fingerprint(report, failure)},
                    }
                    for failure in placed
                ],
            }
        )
    schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
    return _json({"$schema": schema, "version": "2.1.0", "runs": runs})


def junit(report: Report) -> str:
    """JUnit: one suite per check, one case per failure; one for a check that could not run."""
    from junitparser import Error, Failure as Wrong, JUnitXml, TestCase, TestSuite

    document = JUnitXml("fixloop")
    for result in report.results:
        suite = TestSuite(visible(result.check))
        for failure in result.failures:
            case = TestCase(visible(failure.name), report.path(failure) or result.check)
            wrong = Wrong(visible(failure.message.partition("\n")[0]), failure.error_type)
            wrong.text = visible(_message(failure))
            case.result = [wrong]
            suite.add_testcase(case)
        if not result.failures:
            case = TestCase(result.check, result.check, result.evidence.duration_seconds)
            if result.outcome is RunOutcome.ERROR:
                case.result = [Error(visible(result.reason))]
            suite.add_testcase(case)
        document.add_testsuite(suite)
    document.update_statistics()
    text: str = document.tostring().decode()
    return text


def code_quality(report: Report) -> str:
    """GitLab's Code Quality: each failure with a place in a file."""
    return _json(
        [
            {
                "description": visible(_message(failure)),
                "check_name": _rule(failure),
                "fingerprint": _fingerprint(report, failure),
                "severity": _QUALITY[failure.priority],
                "location": {"path": report.path(failure), "lines": {"begin": failure.line or 1}},
            }
            for failure in report.failures
            if failure.file
        ]
    )


def annotations(report: Report) -> list[str]:
    """GitHub's workflow commands: failures in changed lines first, and how many did not fit."""
    ordered = sorted(report.failures, key=lambda failure: not report.is_changed(failure))
    shown, rest = ordered[:MOST_ANNOTATIONS], ordered[MOST_ANNOTATIONS:]
    rows = []
    for failure in shown:
        facts = {"file": report.path(failure), "line": failure.line, "title": failure.name}
        told = ",".join(
            f"{name}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}"
            for name, value in facts.items()
            if value
        )
        rows.append(f"::error {told}::{_data(_message(failure))}")
    if rest:
        rows.append(f"::notice title=fixloop::{len(rest)} more failures are in the job's summary")
    return rows


def without_commands(rows: Iterable[str]) -> list[str]:
    """Rows in which GitHub takes nothing that a tool printed for a workflow command; it does even if it is indented."""
    token = secrets.token_hex(16)
    return [f"::stop-commands::{token}", *rows, f"::{token}::"]


def summary(report: Report) -> str:
    """The summary of a job, as Markdown."""
    rows = [f"## {markdown.line(report.verdict)}", "", "| check | outcome | seconds |", "|---|---|--:|"]
    for result in report.results:
        told = result.reason or f"{result.outcome.value}, {len(result.failures)} failures"
        took = f"{result.evidence.duration_seconds:.1f}"
        rows.append(f"| {markdown.cell(result.check)} | {markdown.cell(told)} | {took} |")
    failures = sorted(report.failures, key=lambda failure: not report.is_changed(failure))
    if failures:
        rows += ["", "| failure | place | message |", "|---|---|---|"]
    for failure in failures[:MOST_ROWS]:
        place = f"{report.path(failure)}:{failure.line}" if failure.line else report.path(failure)
        cells = (failure.name, place, failure.message.partition("\n")[0][:300])
        rows.append(f"| {' | '.join(map(markdown.cell, cells))} |")
    if len(failures) > MOST_ROWS:
        rows.append(f"\n{len(failures) - MOST_ROWS} more failures are not listed.")
    return "\n".join(rows) + "\n"


FORMS: Final[Mapping[str, Callable[[Report], str]]] = {
    "sarif": sarif,
    "junit": junit,
    "code_quality": code_quality,
}


def _rule(failure: Failure) -> str:
    # A test's name is not a rule: what it raised is what many have in common.
    return failure.error_type or failure.name


def _message(failure: Failure) -> str:
    text = "\n".join(filter(None, (failure.name, failure.message)))
    return text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 1]}…"


def _fingerprint(report: Report, failure: Failure) -> str:
    """Stays the same for a failure when lines above it move."""
    facts: Iterable[str] = (report.path(failure), failure.name, failure.error_type, failure.measure)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _json(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"
