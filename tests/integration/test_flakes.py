"""Failures run once more on the same tree before an agent is asked: a test that then passes is no bug."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fixloop.errors import ExitCode
from fixloop.protocol.messages import Decision, Reason
from fixloop.protocol.state import State, WorkflowOutcome
from tests.fixtures.command_stage import said
from tests.fixtures.fixing_stage import Fixing
from tests.fixtures.inner_pytest import PYTEST
from tests.fixtures.repositories import make_repository

pytestmark = pytest.mark.slow

COMMAND = (*PYTEST, "-q", "--junitxml={junit}", "tests")
FLAKY = "tests/test_calc.py::test_often"
ADDS = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n\n\n"
RIGHT, WRONG = (f"def add(a, b):\n    return a {sign} b\n" for sign in "+-")


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("FIXLOOP_SANDBOX", "auto")


def counting(folder: Path, passes: str) -> str:
    """A test that knows how often it ran, and passes where `passes` holds."""
    kept = folder / "count"
    return (
        "import pathlib\n\n\ndef test_often():\n"
        f"    kept = pathlib.Path({str(kept)!r})\n"
        "    count = len(kept.read_text()) if kept.exists() else 0\n    kept.write_text('.' * (count + 1))\n"
        f"    assert {passes}\n"
    )


def project(tmp_path: Path, *, calc: str = RIGHT, passes: str = "count > 0", quarantine: str = "") -> Fixing:
    """One test is right, one counts how often it runs; the fix mends `calc.py`."""
    files = {"calc.py": calc, "tests/test_calc.py": ADDS + counting(tmp_path, passes)}
    fixing = Fixing(tmp_path, files, COMMAND, {"calc.py": RIGHT})
    configured = fixing.configuration.integrity.model_copy(
        update={"quarantine": (quarantine,) if quarantine else ()}
    )
    fixing.configuration = fixing.configuration.model_copy(update={"integrity": configured})
    return fixing


def asked(state: State) -> list[list[str]]:
    """The failures of each run that an agent was asked to fix."""
    return [[ref.name for ref in run.failures] for run in state.active.runs if not run.passed]


def test_a_test_that_also_passes_on_the_same_tree_is_held_without_a_fix_request(tmp_path: Path) -> None:
    fixing = project(tmp_path)

    state = fixing.run()

    assert state.escalation is not None
    assert state.escalation.reason is Reason.INTEGRITY_HOLD
    assert [found.text for found in state.escalation.findings] == [
        f"{FLAKY} failed, and passed when it ran again on the same tree"
    ]
    assert asked(state) == []
    assert fixing.decide(Decision.ACCEPT).outcome is WorkflowOutcome.SUCCESS


def test_only_the_other_failures_are_sent_to_the_agent(tmp_path: Path) -> None:
    fixing = project(tmp_path, calc=WRONG)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert asked(state) == [["tests/test_calc.py::test_adds"]]
    assert [run.evidence[0].flaky for run in fixing.runs] == [(FLAKY,), ()]


@pytest.mark.parametrize(("days", "is_held"), [(0, False), (-1, True)])
def test_a_quarantine_holds_until_its_last_day_and_is_named(tmp_path: Path, days: int, is_held: bool) -> None:
    until = (datetime.now(UTC) + timedelta(days=days)).date()
    fixing = project(tmp_path, quarantine=f"{FLAKY} ann {until}")

    state = fixing.run()

    assert (state.escalation is not None) == is_held
    why = "" if is_held else f" (in quarantine until {until}, ann)"
    assert fixing.runs[0].evidence[0].flaky == (f"{FLAKY}{why}",)


def test_a_test_that_fails_only_after_another_is_a_bug(tmp_path: Path) -> None:
    after = "from calc import seen\n\n\ndef test_later():\n    assert not seen\n"
    adding = "seen = []\n\n\ndef add(a, b):\n    %sreturn a + b\n"
    files = {"calc.py": adding % "seen.append(a)\n    ", "tests/test_a.py": ADDS, "tests/test_b.py": after}
    fixing = Fixing(tmp_path, files, COMMAND, {"calc.py": adding % ""})

    state = fixing.run()

    assert asked(state) == [["tests/test_b.py::test_later"]]
    assert state.outcome is WorkflowOutcome.SUCCESS


def test_tests_that_failed_before_a_fix_are_not_rerun_after_it(tmp_path: Path) -> None:
    fixing = project(tmp_path, passes="count > 4")

    state = fixing.run()

    # In the first run, then alone, three times, and once more after the fix, which changed nothing that matters.
    assert [len(run.failures) for run in fixing.runs[:2]] == [1, 1]
    assert asked(state)[:2] == [[FLAKY], [FLAKY]]


@pytest.mark.parametrize("given", [False, True])
def test_a_test_that_fails_only_with_ci_set_fails_when_a_person_sets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if given:
        monkeypatch.setenv("CI", "true")
    only, both = (f"import os\n\n\ndef test_{name}():\n    assert %s\n" for name in ("only", "both"))
    files = {"tests/test_a.py": only % "'CI' not in os.environ", "tests/test_b.py": both % "False"}
    fixing = Fixing(tmp_path, files, COMMAND, {"calc.py": RIGHT})

    state = fixing.run()

    failed = ["tests/test_a.py::test_only"] if given else []
    assert asked(state)[0] == [*failed, "tests/test_b.py::test_both"]
    why = "it fails with CI=1 alone, which fixloop sets and a shell here does not"
    told = () if given else (f"tests/test_a.py::test_only ({why})",)
    assert fixing.runs[0].evidence[0].flaky == told


def test_a_fix_that_looks_for_ci_passes_no_test_that_failed_before_it(tmp_path: Path) -> None:
    looks = "import os\n\n\ndef add(a, b):\n    return a - b if 'CI' in os.environ else a + b\n"
    files = {"calc.py": WRONG, "tests/test_calc.py": ADDS}
    fixing = Fixing(tmp_path, files, COMMAND, {"calc.py": looks})

    assert asked(fixing.run())[:2] == [["tests/test_calc.py::test_adds"]] * 2


def test_a_project_can_have_each_failure_count(tmp_path: Path) -> None:
    fixing = project(tmp_path)
    off = fixing.configuration.integrity.model_copy(update={"off": ("flaky",)})
    fixing.configuration = fixing.configuration.model_copy(update={"integrity": off})

    assert asked(fixing.run())[0] == [FLAKY]


RUNNER = """
import pathlib, sys

kept = pathlib.Path(sys.argv[1])
count = len(kept.read_text()) if kept.exists() else 0
fails = "" if PASSES else "<failure/>"
case = f'<testcase classname="tests" name="often">{fails}</testcase>'
pathlib.Path(sys.argv[2]).write_text(f"<testsuite>{case}</testsuite>")
kept.write_text("." * (count + 1))
sys.exit(bool(fails))
"""


def other_runner(tmp_path: Path, passes: str, **fix: str) -> Fixing:
    files = {"run.py": RUNNER.replace("PASSES", passes)}
    return Fixing(tmp_path, files, ("python", "run.py", str(tmp_path / "kept"), "{junit}"), fix)


def test_a_runner_without_an_adapter_runs_again_as_a_whole_where_it_is_quick(tmp_path: Path) -> None:
    fixing = other_runner(tmp_path, "count > 0")

    state = fixing.run()

    assert state.escalation is not None
    assert fixing.rules == ["flaky"]


def test_a_result_that_is_right_every_second_time_is_held_with_any_runner(tmp_path: Path) -> None:
    # It runs twice before the fix: in its order, and again.
    passes = "count > 1 and pathlib.Path('fixed').exists() and count % 2 == 0"
    fixing = other_runner(tmp_path, passes, fixed="yes\n")

    fixing.run()

    assert fixing.rules == ["flaky"]


def test_an_honest_fix_is_not_held_with_any_runner(tmp_path: Path) -> None:
    fixing = other_runner(tmp_path, "pathlib.Path('fixed').exists()", fixed="yes\n")

    assert fixing.run().outcome is WorkflowOutcome.SUCCESS


def test_a_check_calls_a_flaky_project_neither_passed_nor_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"calc.py": RIGHT, "tests/test_calc.py": ADDS + counting(tmp_path, "count > 0")}
    where = make_repository(tmp_path / "calc", files)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))

    told = said(capsys, "check", str(where), "--only", "test-runner")

    assert told.code == ExitCode.WAITS
    assert "not verified (what ran has passed: 1 check); failed and then passed on the same tree:" in told.out
    assert FLAKY in told.out
