"""Every test that passed before a fix has to pass after it, under any name."""

import os
import sys
from pathlib import Path

import pytest

from fixloop.protocol.messages import Decision, Reason
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.fixing_stage import Fixing

pytestmark = pytest.mark.slow

# The report is a file of the project: only its interpretation is tested here.
CHECK = ("sh", "-c", "cp report.xml {junit}; ! grep -q failure report.xml")
TESTS = """
from calc import add

def test_adds():
    assert add(2, 2) == 4

def test_is_fine():
    assert add(0, 0) == 0
"""


def report(**ends: str) -> str:
    """`test_x="failure"`, and the like; an empty word for a pass. `__` in a name stands for the end of its file's."""
    cases = []
    for name, end in ends.items():
        file, _, test = name.rpartition("__")
        inner = f"<{end}/>" if end else ""
        cases.append(f'<testcase classname="tests.{file or "test_calc"}" name="{test}">{inner}</testcase>')
    return f'<testsuite name="pytest" tests="{len(cases)}">{"".join(cases)}</testsuite>'


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def project(tmp_path: Path, *fixes: dict[str, str | None], first: str = "") -> Fixing:
    begun = first or report(test_adds="failure", test_is_fine="")
    return Fixing(tmp_path, {"tests/test_calc.py": TESTS, "report.xml": begun}, CHECK, *fixes)


def test_a_fix_that_keeps_all_passing_tests_passing_is_not_held(tmp_path: Path) -> None:
    fixing = project(tmp_path, {"report.xml": report(test_adds="", test_is_fine="", test_more="")})

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert fixing.rules == []


@pytest.mark.parametrize("end", ["gone", "skipped"])
def test_a_test_that_passed_before_and_is_gone_or_skipped_holds_the_run(tmp_path: Path, end: str) -> None:
    ends = {"test_adds": ""} | ({"test_is_fine": "skipped"} if end == "skipped" else {})
    fixing = project(tmp_path, {"report.xml": report(**ends)})

    state = fixing.run()

    assert state.escalation is not None
    assert state.escalation.reason is Reason.INTEGRITY_HOLD
    [found] = state.escalation.findings
    assert (found.rule, found.check, found.file) == ("not-seen-again", "tests", "tests/test_calc.py")
    assert found.old == "tests/test_calc.py::test_is_fine"


def test_later_runs_are_compared_with_what_a_person_accepted(tmp_path: Path) -> None:
    fixing = project(tmp_path, {"report.xml": report(test_adds="")})
    fixing.run()

    state = fixing.decide(Decision.ACCEPT)

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert fixing.rules == []
    kept = fixing.store.get_artifact(fixing.workflow, state.specialist("test-runner").cases["tests"])
    assert kept == b'["tests/test_calc.py::test_adds"]'


def test_a_renamed_failing_test_is_recognised_when_it_passes(tmp_path: Path) -> None:
    renamed = TESTS.replace("test_adds", "test_sums")
    now = report(test_sums="", test_is_fine="")
    fixing = project(tmp_path, {"tests/test_calc.py": renamed, "report.xml": now})

    state = fixing.run()

    assert not state.specialist("test-runner").owed
    assert fixing.runs[-1].passed == ("tests/test_calc.py::test_adds",)
    assert fixing.runs[-1].renamed == {"tests/test_calc.py::test_adds": "tests/test_calc.py::test_sums"}
    assert "not-seen-again" not in fixing.rules


def test_a_renamed_failing_test_that_asserts_less_stays_owed(tmp_path: Path) -> None:
    weaker = TESTS.replace("test_adds", "test_sums").replace("== 4", ">= 4")
    now = report(test_sums="", test_is_fine="")
    fixing = project(tmp_path, {"tests/test_calc.py": weaker, "report.xml": now})

    state = fixing.run()

    assert [ref.name for ref in state.specialist("test-runner").owed] == ["tests/test_calc.py::test_adds"]
    assert fixing.runs[-1].passed == ()


def test_tests_moved_to_another_file_are_recognised(tmp_path: Path) -> None:
    now = report(test_sums__test_adds="", test_sums__test_is_fine="")
    fixing = project(tmp_path, {"tests/test_calc.py": None, "tests/test_sums.py": TESTS, "report.xml": now})

    fixing.run()

    assert fixing.runs[-1].passed == ("tests/test_calc.py::test_adds",)
    assert "not-seen-again" not in fixing.rules


def test_a_test_that_passed_after_an_earlier_fix_has_to_pass_to_the_end(tmp_path: Path) -> None:
    first = report(test_adds="failure", test_is_fine="failure")
    half, rest = report(test_adds="failure", test_is_fine=""), report(test_adds="")
    fixing = project(tmp_path, {"report.xml": half}, {"report.xml": rest}, first=first)

    fixing.run()

    assert fixing.rules == ["not-seen-again"]


def test_a_workflow_from_before_there_were_holds_is_not_held(tmp_path: Path) -> None:
    fix: dict[str, str | None] = {"report.xml": report(test_adds="")}
    begun = {"tests/test_calc.py": TESTS, "report.xml": report(test_adds="failure", test_is_fine="")}
    fixing = Fixing(tmp_path, begun, CHECK, fix, trusted="")

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert state.specialist("test-runner").cases == {}
