"""The coverage gate: one figure, compared exactly."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol.failures import compare, same_failures
from fixloop.reports.coverage import read_coverage
from fixloop.reports.report import SourceTree
from tests.fixtures.reports.samples import read, seen


def totals(percent: object, **parts: Any) -> str:
    return json.dumps({"totals": {"percent_covered": percent}, **parts})


@pytest.mark.proves("B68", "S15")
@pytest.mark.parametrize(
    ("percent", "outcome"),
    [
        (79.9, "failed"),
        (79.95, "failed"),
        (79.99999, "failed"),
        (80, "passed"),
        (80.0, "passed"),
        (87.3, "passed"),
        (0, "failed"),
    ],
)
def test_a_figure_below_its_gate_fails_however_close(tmp_path: Path, percent: float, outcome: str) -> None:
    report = read(tmp_path, "coverage", totals(percent), gate=80.0)

    assert report.outcome == outcome
    assert report.coverage_percent == percent
    assert len(report.failures) == (outcome == "failed")


@pytest.mark.proves("G24", "K7")
def test_the_failure_of_a_gate_carries_its_percentage_and_the_worst_files(tmp_path: Path) -> None:
    files = {
        "src/a.py": {"missing_lines": [3, 4, 5, 9]},
        str(tmp_path / "src/b.py"): {"missing_lines": [1]},
        "src/c.py": {"missing_lines": []},
    }

    (failure,) = read(
        tmp_path, "coverage", totals(79.95, files=files, meta={}), gate=80.0, root=tmp_path
    ).failures

    assert (failure.name, failure.error_type, failure.measure) == ("coverage", "CoverageBelowTarget", "79.9")
    assert failure.message.splitlines() == [
        "coverage is 79.95%, the gate is 80%",
        "src/a.py: 4 lines missing: 3-5, 9",
        "src/b.py: 1 lines missing: 1",
    ]
    assert failure.suggestion == ""


@pytest.mark.proves("S32", "K7")
def test_rising_coverage_is_progress_and_three_equal_figures_are_not(tmp_path: Path) -> None:
    def run(percent: float) -> Any:
        return [failure.key for failure in read(tmp_path, "coverage", totals(percent), gate=80.0).failures]

    assert not same_failures([run(60.0), run(70.0), run(78.0)])
    assert same_failures([run(70.0), run(70.01), run(70.0)])
    assert compare(run(60.0), run(70.0)).persisting == ()


def test_without_a_gate_the_figure_is_only_read(tmp_path: Path) -> None:
    report = read(tmp_path, "coverage", totals(12.5))

    assert (report.outcome, report.coverage_percent, report.counts.total) == ("passed", 12.5, 0)


def test_a_gate_is_one_result(tmp_path: Path) -> None:
    assert seen(read(tmp_path, "coverage", totals(50.0), gate=80.0)) == ("failed", 1, 0, 1, 0, 0)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"totals": null}',
        '{"totals": {}}',
        '{"totals": {"percent_covered": NaN}}',
        '{"totals": {"percent_covered": Infinity}}',
        '{"totals": {"percent_covered": 1e999}}',
        '{"totals": {"percent_covered": true}}',
        '{"totals": {"percent_covered": "99"}}',
        '{"totals": {"percent_covered": 101}}',
        '{"totals": {"percent_covered": -1}}',
        '{"totals": {"percent_covered": 100, "num_statements": 0}}',
        "[]",
    ],
)
def test_an_invalid_figure_never_passes(tmp_path: Path, content: str) -> None:
    report = read(tmp_path, "coverage", content, gate=80.0)

    assert report.outcome == "error"
    assert report.coverage_percent is None


@pytest.mark.proves("B68")
@given(percent=st.floats(0, 100), gate=st.floats(0, 100))
def test_a_report_passes_exactly_when_its_figure_reaches_the_gate(percent: float, gate: float) -> None:
    report = read_coverage(totals(percent).encode(), SourceTree(None), gate)

    assert (report.outcome == "passed") == (percent >= gate)
    assert all(float(failure.measure) <= percent + 1e-6 for failure in report.failures)
