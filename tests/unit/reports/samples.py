"""Report files, real and made, for the tests of the readers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.values import FailOn
from fixloop.reports import Report, read_report

JUNIT: Final = Path(__file__).parent / "junit"
SARIF: Final = Path(__file__).parent / "sarif"
GUESTS: Final = Path(__file__).parent / "guests"


def written(directory: Path, files: Mapping[str, str]) -> Path:
    """`directory` with `files` in it, path to content."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return directory


def read(
    directory: Path, kind: str, content: str | bytes, *, root: Path | None = None, **gates: Any
) -> Report:
    """What a file with `content` proves."""
    path = directory / f"report.{kind}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_report(path, kind, root=root, **gates)


def seen(report: Report) -> tuple[str, int, int, int, int, int]:
    """Outcome, total, passed, failed, errors, skipped."""
    counts = report.counts
    return report.outcome.value, counts.total, counts.passed, counts.failed, counts.errors, counts.skipped


def junit(tests: str, *, name: str = "suite", declared: str = "") -> str:
    """A report of one suite that declares `declared` and lists `tests`."""
    return f'<testsuites><testsuite name="{name}" {declared}>{tests}</testsuite></testsuites>'


def pytest_suite(tests: str) -> str:
    """As pytest writes it, without any declared count."""
    return junit(tests, name="pytest")


def sarif(*results: Mapping[str, Any], driver: Mapping[str, Any] | None = None, **run: Any) -> str:
    """A log of one run."""
    tool = {"driver": {"name": "scanner", **(driver or {})}, **run.pop("tool", {})}
    return json.dumps({"version": "2.1.0", "runs": [{"tool": tool, "results": list(results), **run}]})


def sarif_failures(directory: Path, *results: Mapping[str, Any], **run: Any) -> Report:
    """What a log with `results` proves where every level fails."""
    return read(directory, "sarif", sarif(*results, **run), fail_on=FailOn.NOTE)
