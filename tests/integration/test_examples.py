"""The examples hold the defects they promise, and their fixers fix them step by step.

Plays the loop without fixloop: each specialist's own command in a copy of the project, then the fixer with
the environment it would get, until the command passes.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from tests.fixtures.inner_pytest import VARIABLES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LINE = re.compile(r"^([^\s:][^:]*):\d+(?::\d+)?: ")
MAX_RUNS = 5

pytestmark = pytest.mark.slow


class Run(NamedTuple):
    """One run of one specialist."""

    findings: list[str]
    coverage_percent: float | None
    exit_codes: list[int]

    @property
    def passed(self) -> bool:
        return not self.findings


class Project:
    """A copy of an example, and what its specialists found in it."""

    def __init__(self, name: str, directory: Path) -> None:
        caches = shutil.ignore_patterns("__pycache__", ".*_cache", ".coverage", ".fixloop")
        self.top = Path(shutil.copytree(EXAMPLES / name, directory / name, ignore=caches))
        self.reports = directory
        self.runs: dict[str, list[Run]] = {}
        self.environment = _environment(directory)

    def configuration(self) -> dict[str, Any]:
        path = self.top / "fixloop.toml"
        if path.exists():
            return tomllib.loads(path.read_text())
        table: dict[str, Any] = tomllib.loads((self.top / "pyproject.toml").read_text())["tool"]["fixloop"]
        return table

    def play(self, fixes: int = MAX_RUNS) -> None:
        """All specialists in order, each until it passes or the fixer's attempts are used up."""
        for specialist in self.configuration()["specialist"]:
            runs = self.runs.setdefault(specialist, [])
            runs.append(self.validate(specialist))
            while not runs[-1].passed and len(runs) <= fixes:
                assert self.fix(specialist, len(runs)) == 0
                runs.append(self.validate(specialist))

    def validate(self, specialist: str) -> Run:
        table = self.configuration()["specialist"][specialist]
        runs = [self._check(check) for check in table.get("check", [table])]
        percent = next((run.coverage_percent for run in runs if run.coverage_percent is not None), None)
        return Run(
            [finding for run in runs for finding in run.findings],
            percent,
            [code for run in runs for code in run.exit_codes],
        )

    def fix(self, specialist: str, iteration: int) -> int:
        """Start the fixer as fixloop would; its exit code."""
        request, answer = self.reports / "request.json", self.reports / "answer.md"
        request.write_text(json.dumps({"workspace": str(self.top), "answer": str(answer)}))
        variables = {
            "FIXLOOP_SPECIALIST": specialist,
            "FIXLOOP_ITERATION": str(iteration),
            "FIXLOOP_ISSUE": "47",
            "FIXLOOP_REQUEST": str(request),
            "FIXLOOP_ANSWER": str(answer),
        }
        command = self.configuration()["fixer"]["command"]
        return self._run(
            command,
            text=f"Feature #47 ledger, run {iteration} of 5, FIXREQ-47-{iteration}.\n",
            variables=variables,
        ).returncode

    def sources(self) -> dict[str, str]:
        """Every text file by its path, caches and reports left out."""
        paths = (path for path in sorted(self.top.rglob("*")) if path.is_file() and path.name != ".coverage")
        return {path.relative_to(self.top).as_posix(): path.read_text() for path in paths}

    def _check(self, check: dict[str, Any]) -> Run:
        paths = {kind: self.reports / f"report.{kind}" for kind in ("junit", "sarif", "coverage")}
        for path in paths.values():
            path.unlink(missing_ok=True)
        words = shlex.split(check["command"])
        for kind, path in paths.items():
            words = [word.replace("{" + kind + "}", str(path)) for word in words]
        done = self._run(words)
        percent = _coverage(paths["coverage"])
        findings = self._findings(paths, done)
        if not findings and percent is not None and percent < check["coverage_percent"]:
            findings = ["coverage"]
        return Run(findings, percent, [done.returncode])

    def _findings(self, paths: dict[str, Path], done: "subprocess.CompletedProcess[str]") -> list[str]:
        if paths["junit"].exists():
            return _failing_tests(paths["junit"])
        if paths["sarif"].exists():
            return [
                result["ruleId"] for result in json.loads(paths["sarif"].read_text())["runs"][0]["results"]
            ]
        lines = [line for line in done.stdout.splitlines() if self._names_a_file(line)]
        return lines or ["exit code"] * int(done.returncode != 0)

    def _names_a_file(self, line: str) -> bool:
        found = LINE.match(line)
        return found is not None and (self.top / found[1]).is_file()

    def _run(
        self, words: list[str], *, text: str = "", variables: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        environment = self.environment | (variables or {})
        return subprocess.run(
            words, cwd=self.top, env=environment, input=text, capture_output=True, text=True, timeout=60
        )


def _environment(directory: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **VARIABLES,
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MYPY_CACHE_DIR": str(directory / "mypy"),
        "RUFF_CACHE_DIR": str(directory / "ruff"),
        "COVERAGE_FILE": str(directory / "coverage-data"),
    }


def _failing_tests(report: Path) -> list[str]:
    cases = ElementTree.parse(report).iter("testcase")
    failures = (
        (case.get("name"), node) for case in cases for node in case if node.tag in ("failure", "error")
    )
    return [f"{name} {(node.get('message') or '').partition(':')[0]}" for name, node in failures]


def _coverage(report: Path) -> float | None:
    if not report.exists():
        return None
    percent: float = json.loads(report.read_text())["totals"]["percent_covered"]
    return round(percent, 1)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project("ledger", tmp_path_factory.mktemp("ledger"))
    project.play()
    return project


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project("inventory", tmp_path_factory.mktemp("inventory"))
    project.play()
    return project


def test_the_ledger_starts_with_three_failing_tests_of_three_kinds(ledger: Project) -> None:
    runs = ledger.runs["test-runner"]

    kinds = sorted(finding.split()[1] for finding in runs[0].findings)
    assert kinds == ["AssertionError", "AttributeError", "KeyError"]
    assert [len(run.findings) for run in runs] == [3, 1, 0]
    assert set(runs[1].findings) < set(runs[0].findings)


def test_the_ledgers_coverage_rises_over_the_gate(ledger: Project) -> None:
    runs = ledger.runs["test-runner"]

    assert (runs[0].coverage_percent, runs[-1].coverage_percent) == (73.2, 87.3)


def test_each_phase_of_the_ledger_takes_the_runs_that_the_demo_shows(ledger: Project) -> None:
    runs = {name: len(each) for name, each in ledger.runs.items()}

    assert runs == {"unit-test": 1, "integration-test": 1, "test-runner": 3, "code-quality": 3, "security": 2}
    assert all(each[-1].passed for each in ledger.runs.values())


def test_the_ledgers_quality_findings_shrink_in_two_steps(ledger: Project) -> None:
    first, second, third = (len(run.findings) for run in ledger.runs["code-quality"])

    assert first > second > third == 0
    assert ledger.runs["code-quality"][0].exit_codes == [1, 1, 1], "lint, format and types all fail at first"


def test_the_ledgers_security_finding_is_a_shell_injection(ledger: Project) -> None:
    (finding,) = ledger.runs["security"][0].findings

    assert "src/ledger/exchange.py" in finding
    assert "B602 HIGH" in finding


def test_no_fix_of_the_ledger_breaks_an_earlier_phase(ledger: Project) -> None:
    runs = {name: ledger.validate(name) for name in ledger.runs}

    assert {name: run.findings for name, run in runs.items()} == {name: [] for name in ledger.runs}
    assert all(set(run.exit_codes) == {0} for run in runs.values())


def test_the_ledgers_own_answer_names_the_file_it_changed(ledger: Project) -> None:
    answer = (ledger.reports / "answer.md").read_text()

    assert "**Message ID**: FIXDONE-47-1" in answer
    assert "### Files Modified\n- src/ledger/exchange.py\n" in answer
    assert "Yes - please re-run security." in answer


def test_the_ledgers_fixes_touch_no_test_and_no_configuration(ledger: Project) -> None:
    originals = {name: (EXAMPLES / "ledger" / name).read_text() for name in ledger.sources()}

    changed = {name for name, text in ledger.sources().items() if text != originals[name]}

    assert changed
    assert all(name.startswith("src/") for name in changed)


def test_a_prepared_patch_applies_below_the_top_of_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    project = Project("ledger", tmp_path)

    assert project.fix("test-runner", 1) == 0

    before = (EXAMPLES / "ledger" / "src" / "ledger" / "statement.py").read_text()
    assert project.sources()["src/ledger/statement.py"] != before


def test_a_request_without_a_prepared_patch_is_an_error(tmp_path: Path) -> None:
    assert Project("ledger", tmp_path).fix("test-runner", 4) == 1


def test_the_inventory_fails_on_coverage_alone(inventory: Project) -> None:
    first, second = inventory.runs["test-runner"]

    assert first.findings == ["coverage"]
    assert first.exit_codes == [0], "all tests pass"
    assert 60 <= (first.coverage_percent or 0) <= 75
    assert (second.coverage_percent or 0) >= 80


def test_the_inventory_has_a_command_that_only_its_exit_code_judges(inventory: Project) -> None:
    first, second = inventory.runs["integration-test"]

    assert (first.findings, first.exit_codes) == (["exit code"], [1])
    assert (second.findings, second.exit_codes) == ([], [0])


def test_the_inventorys_checker_prints_one_line_for_each_finding(inventory: Project) -> None:
    first, second = inventory.runs["code-quality"]

    assert [line.partition(":")[0] for line in first.findings] == [
        "inventory/labels.py",
        "inventory/reorder.py",
    ]
    assert second.passed


def test_the_stuck_fixer_changes_a_file_each_time_and_fixes_nothing(tmp_path: Path) -> None:
    project = Project("stuck", tmp_path)
    trees = [project.sources()]
    runs = [project.validate("test-runner")]
    for iteration in (1, 2):
        assert project.fix("test-runner", iteration) == 0
        trees.append(project.sources())
        runs.append(project.validate("test-runner"))

    assert runs[0].findings == runs[1].findings == runs[2].findings != []
    assert trees[0] != trees[1] != trees[2]


def test_the_stuck_project_passes_its_other_phase(tmp_path: Path) -> None:
    assert Project("stuck", tmp_path).validate("code-quality").passed


@pytest.mark.parametrize("name", ["ledger", "inventory", "stuck"])
def test_an_example_needs_nothing_but_the_standard_library_and_itself(name: str) -> None:
    known = sys.stdlib_module_names | {"ledger", "inventory", "calendar_rules", "pytest"}
    words = re.compile(r"^\s*(?:from|import) ([A-Za-z_]+)", re.MULTILINE)
    sources = [path.read_text() for path in (EXAMPLES / name).rglob("*.py")]

    assert sources
    assert {word for text in sources for word in words.findall(text)} <= known
