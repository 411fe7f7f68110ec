"""The formats of CI systems that `fixloop check` writes, read by independent readers."""

import json
from pathlib import Path
from typing import Final

import pytest
from junitparser import JUnitXml

from fixloop.commands.check_files import (
    MOST_ANNOTATIONS,
    Report,
    annotations,
    code_quality,
    junit,
    sarif,
    summary,
)
from fixloop.configuration.values import FailOn
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.failures import Failure, Severity
from fixloop.reports import read_report

WRONG: Final = Failure(
    name="test_add",
    file="test_calc.py",
    line=3,
    error_type="AssertionError",
    message="1 is not 2\n| <b>\x1b[31m",
)
LINT: Final = Failure(
    name="F401", file="calc.py", line=7, message="unused: import, os", severity=Severity.LOW
)


def result(*failures: Failure, outcome: RunOutcome = RunOutcome.FAILED, reason: str = "") -> CheckResult:
    evidence = Evidence(check="pytest", command="pytest", duration_seconds=1.25)
    return CheckResult(check="pytest", outcome=outcome, reason=reason, failures=failures, evidence=evidence)


REPORT: Final = Report(
    "2 failures in 1 of 2 checks",
    [result(WRONG, LINT), result(outcome=RunOutcome.ERROR, reason="pytest is not installed")],
    "shop",
    {"shop/calc.py": frozenset({7})},
)


def test_our_sarif_is_read_by_our_own_reader(tmp_path: Path) -> None:
    path = tmp_path / "check.sarif"
    path.write_text(sarif(REPORT._replace(results=REPORT.results[:1])))

    report = read_report(path, "sarif", fail_on=FailOn.NOTE)

    assert [(failure.name, failure.file, failure.line) for failure in report.failures] == [
        ("AssertionError", "shop/test_calc.py", 3),
        ("F401", "shop/calc.py", 7),
    ]


def test_sarif_says_which_check_could_not_run() -> None:
    runs = json.loads(sarif(REPORT))["runs"]

    assert [run["invocations"][0]["executionSuccessful"] for run in runs] == [True, False]
    assert [each["level"] for each in runs[0]["results"]] == ["error", "note"]


def test_junit_is_read_by_its_library() -> None:
    document = JUnitXml.fromstring(junit(REPORT).encode())

    assert (document.tests, document.failures, document.errors) == (3, 2, 1)
    assert [case.name for suite in document for case in suite] == ["test_add", "F401", "pytest"]
    assert "\x1b" not in junit(REPORT)


def test_code_quality_has_the_fields_that_gitlab_needs() -> None:
    found = json.loads(code_quality(REPORT))

    assert [(each["severity"], each["location"]) for each in found] == [
        ("critical", {"path": "shop/test_calc.py", "lines": {"begin": 3}}),
        ("minor", {"path": "shop/calc.py", "lines": {"begin": 7}}),
    ]
    assert len({each["fingerprint"] for each in found}) == 2


def test_a_fingerprint_outlives_lines_that_are_added_above() -> None:
    moved = REPORT._replace(results=[result(WRONG.model_copy(update={"line": 30}))])

    assert [each["fingerprint"] for each in json.loads(code_quality(moved))] == [
        each["fingerprint"] for each in json.loads(code_quality(REPORT))
    ][:1]


def test_annotations_begin_with_the_lines_that_were_changed_and_count_the_rest() -> None:
    many = [WRONG.model_copy(update={"name": f"test_{n}"}) for n in range(20)]

    rows = annotations(REPORT._replace(results=[result(*many, LINT)]))

    assert rows[0] == "::error file=shop/calc.py,line=7,title=F401::F401%0Aunused: import, os"
    assert len(rows) == MOST_ANNOTATIONS + 1
    assert rows[-1] == "::notice title=fixloop::11 more failures are in the job's summary"


@pytest.mark.parametrize("text", ["a\n::set-output name=x::1", "::error::no", "100%\r\n::add-mask::x"])
def test_no_failure_text_becomes_a_workflow_command(text: str) -> None:
    rows = annotations(Report("no", [result(Failure(name=text, file="a:b,c.py", message=text))]))

    assert len(rows) == 1
    assert "\n" not in rows[0]
    assert "\r" not in rows[0]
    assert rows[0].startswith("::error file=a%3Ab%2Cc.py,title=")


def test_no_tool_output_becomes_a_heading_or_a_cell_of_the_markdown_summary() -> None:
    text = summary(REPORT)

    assert text.startswith("## 2 failures in 1 of 2 checks\n")
    assert "pytest is not installed" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {4}
