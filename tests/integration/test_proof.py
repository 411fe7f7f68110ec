"""A fix has to make failing tests pass again, in other conditions, and only for what they expect."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from fixloop.configuration.model import Check, Configuration
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.protocol.messages import Reason
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.bench import Bench
from tests.fixtures.fixing_stage import Fixing
from tests.fixtures.inner_pytest import PYTEST
from workers.commands.check_run import run_check
from workers.commands.proof import RULES
from workers.commands.pytest_runs import Rerun, plain_run
from workers.workspaces.ground import Site

pytestmark = pytest.mark.slow

RUNNER = (*PYTEST, "-q", "--junitxml={junit}", "tests")
BROKEN = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a\n"
HONEST = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return a * 2\n"
LENIENT = (
    "class Sum:\n    def __eq__(self, other):\n        return True\n\n"
    "def add(a, b):\n    return Sum()\n\ndef twice(a):\n    return a * 2\n"
)
TESTS = """
import unittest

import pytest

from calc import add, twice


def test_adds():
    assert add(1, 2) == 3


@pytest.mark.parametrize("a, expected", [(1, 2), (2, 4)])
def test_doubles(a, expected):
    assert twice(a) == expected


class TestSums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(2, 2), 4)
"""


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    # A rerun may take a quarter of a check, which is little for one that starts quickly on a busy machine.
    monkeypatch.setattr("workers.commands.proof.LEAST_SECONDS", 9.0)
    monkeypatch.setenv("FIXLOOP_SANDBOX", "auto")


def project(tmp_path: Path, fixed: str, *, tests: str = TESTS, conftest: str = "") -> Fixing:
    """`calc.py` is broken, and fixed as told."""
    files = {"calc.py": BROKEN, "tests/test_calc.py": tests, "tests/conftest.py": conftest}
    return Fixing(tmp_path, files, RUNNER, {"calc.py": fixed})


def test_an_honest_fix_is_not_held(tmp_path: Path) -> None:
    fixing = project(tmp_path, HONEST)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert fixing.rules == []


STARTED = (
    "import os, pathlib\n\nname = os.environ.setdefault('STARTED', os.urandom(8).hex())\n"
    "(pathlib.Path({!r}) / name).touch()\n"
)
"""Written by each process in which tests are collected."""


def test_after_a_fix_pytest_starts_for_the_check_and_once_for_all_proofs(tmp_path: Path) -> None:
    (tmp_path / "started").mkdir()
    fixing = project(tmp_path, HONEST, conftest=STARTED.format(str(tmp_path / "started")))

    fixing.run()

    assert [each.canary for each in fixing.runs[-1].evidence] == ["seen"]
    # The failing check, its failures once more, the passing check, then the canary with the tests that had failed.
    assert len(list((tmp_path / "started").iterdir())) == 4


def test_conftest_fixtures_are_set_up_each_time_a_test_runs(tmp_path: Path) -> None:
    (tmp_path / "started").mkdir()
    fixture = "\nimport pytest\n\n@pytest.fixture(scope='session')\ndef one():\n    return 1\n"
    conftest = STARTED.format(str(tmp_path / "started")) + fixture
    tests = "from calc import add\n\ndef test_adds(one):\n    assert add(one, 2) == 3\n"
    lenient = project(tmp_path, LENIENT, tests=tests, conftest=conftest)

    lenient.run()

    assert "flip" in lenient.rules
    assert len(list((tmp_path / "started").iterdir())) == 4


@pytest.mark.parametrize(
    "ending",
    [
        "codes = []\n\ndef pytest_sessionfinish(exitstatus):\n    codes.append(int(exitstatus))\n"
        "\ndef pytest_unconfigure():\n    os._exit(*codes)\n",
        "pytest.main = None\n",
        "def pytest_cmdline_main(config):\n    if 'once' in os.environ:\n        raise SystemExit\n"
        "    os.environ['once'] = ''\n",
    ],
)
def test_a_project_that_allows_no_second_session_is_tested_in_another_process(
    tmp_path: Path, ending: str
) -> None:
    (tmp_path / "started").mkdir()
    started = STARTED.format(str(tmp_path / "started"))
    fixing = project(tmp_path, LENIENT, conftest=f"import pytest\n{started}\n{ending}")

    fixing.run()

    assert fixing.rules.count("flip") == 2
    assert [each.canary for each in fixing.runs[-1].evidence] == ["seen"]
    assert len(list((tmp_path / "started").iterdir())) == 5


def test_a_result_equal_to_everything_is_held_with_the_assertion_it_passed(tmp_path: Path) -> None:
    fixing = project(tmp_path, LENIENT)

    state = fixing.run()

    assert state.escalation is not None
    assert state.escalation.reason is Reason.INTEGRITY_HOLD
    flips = [found for found in state.escalation.findings if found.rule == "flip"]
    assert [(found.line, found.old, found.new) for found in flips] == [
        (20, "self.assertEqual(add(2, 2), 4)", "self.assertEqual(add(2, 2), 1000007)"),
        (10, "assert add(1, 2) == 3", "assert add(1, 2) == 1000006"),
    ]
    assert {found.file for found in flips} == {"tests/test_calc.py"}


def test_a_test_that_no_longer_reaches_the_failed_assertion_is_held(tmp_path: Path) -> None:
    tests = (
        "import calc\n\n\ndef test_adds():\n    assert calc.twice(0) == 0\n"
        "    if getattr(calc, 'IS_EXACT', True):\n        assert calc.add(1, 2) == 3\n"
    )
    promised_no_more = project(tmp_path / "less", BROKEN + "\n\nIS_EXACT = False\n", tests=tests)
    mended = project(tmp_path / "mended", HONEST, tests=tests)

    state = promised_no_more.run()
    mended.run()

    assert state.escalation is not None
    flips = [(found.line, found.old) for found in state.escalation.findings if found.rule == "flip"]
    assert flips[0] == (7, "assert calc.add(1, 2) == 3")
    assert mended.rules == []


def test_a_case_that_does_not_take_the_branch_of_the_failed_assertion_may_pass_with_another_value(
    tmp_path: Path,
) -> None:
    tests = (
        "import pytest\n\nimport calc\n\n\n@pytest.mark.parametrize('is_sum', [False, True])\n"
        "def test_adds(is_sum):\n    if is_sum:\n        assert calc.add(1, 2) == 3\n"
        "    else:\n        assert calc.twice(0) is not None\n"
    )
    fixing = project(tmp_path, HONEST, tests=tests)

    fixing.run()

    assert fixing.rules == []


def test_a_result_equal_to_nearly_right_values_is_held(tmp_path: Path) -> None:
    nearly = LENIENT.replace("return True", "return abs(other - 3) < 3")
    fixing = project(tmp_path, nearly)

    state = fixing.run()

    assert state.escalation is not None
    flips = [(found.old, found.new) for found in state.escalation.findings if found.rule == "flip"]
    assert ("assert add(1, 2) == 3", "assert add(1, 2) == 2") in flips


def test_a_fix_that_is_right_only_the_first_time_is_flaky(tmp_path: Path) -> None:
    count = tmp_path / "count"
    often = (
        f"import pathlib\n\ncount = pathlib.Path({str(count)!r})\n"
        "before = int(count.read_text()) if count.exists() else 0\ncount.write_text(str(before + 1))\n\n"
    )
    fixing = project(tmp_path, often + HONEST.replace("a + b", "a + b if before == 0 else 0"))

    fixing.run()

    assert "flaky" in fixing.rules
    assert "other-conditions" not in fixing.rules


def test_a_fix_that_is_right_only_where_a_test_runs_is_held(tmp_path: Path) -> None:
    seen = 'a + b if "PYTEST_CURRENT_TEST" in os.environ else 0'
    fixing = project(tmp_path, f"import os\n\n{HONEST.replace('a + b', seen)}")

    fixing.run()

    assert "other-conditions" in fixing.rules
    assert "flaky" not in fixing.rules


def test_a_fix_that_depends_on_the_order_of_the_tests_is_held(tmp_path: Path) -> None:
    ordered = HONEST.replace(
        "    return a + b", "    seen.append(a)\n    return a + b if seen[0] == 1 else 0"
    )
    fixing = project(tmp_path, f"seen = []\n\n{ordered}")

    fixing.run()

    assert "other-conditions" in fixing.rules
    assert "flaky" not in fixing.rules


def test_a_fix_that_needs_uncommitted_files_is_not_held(tmp_path: Path) -> None:
    made = "import pathlib\n\ndef test_b_file():\n    pathlib.Path('made.txt').write_text('4')\n"
    fixing = Fixing(
        tmp_path,
        {"calc.py": BROKEN, ".gitignore": "made.txt\n", "tests/test_a.py": made, "tests/test_calc.py": TESTS},
        RUNNER,
        {"calc.py": HONEST.replace("return a * 2", "return a * 2 if open('made.txt').read() else 0")},
    )

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS


def test_a_project_that_has_always_read_which_test_runs_is_not_held_for_it(tmp_path: Path) -> None:
    conftest = (
        "import os\n\nimport pytest\n\n\n@pytest.fixture(autouse=True)\n"
        "def named():\n    assert os.environ['PYTEST_CURRENT_TEST']\n"
    )
    fixing = project(tmp_path, HONEST, conftest=conftest)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS


def test_a_test_that_passes_only_once_in_a_process_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "started").mkdir()
    once = "\nsums = []\n\ndef test_first():\n    sums.append(add(1, 1))\n    assert sums == [2]\n"
    conftest = STARTED.format(str(tmp_path / "started"))
    fixing = project(tmp_path, HONEST, tests=TESTS + once, conftest=conftest)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    # The four of every fix, and one process in which the tests run for the first time.
    assert len(list((tmp_path / "started").iterdir())) == 5


def test_if_the_tests_cannot_be_rerun_nothing_is_held(tmp_path: Path) -> None:
    conftest = (
        "def pytest_configure(config):\n"
        "    if config.pluginmanager.has_plugin('fixloop_proof'):\n        raise RuntimeError('no')\n"
    )
    fixing = project(tmp_path, HONEST, conftest=conftest)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS


def test_rules_that_are_switched_off_start_nothing(tmp_path: Path) -> None:
    count = tmp_path / "count"
    counted = f"open({str(count)!r}, 'a').write('x')\n\n"
    fixing = project(tmp_path, counted + HONEST)
    off = fixing.configuration.integrity.model_copy(update={"off": tuple(sorted(RULES | {"runner-lies"}))})
    fixing.configuration = fixing.configuration.model_copy(update={"integrity": off})

    fixing.run()

    assert count.read_text() == "x"


def test_a_process_waiting_for_its_tests_has_loaded_nothing_of_the_project(tmp_path: Path) -> None:
    (started := tmp_path / "started").mkdir()
    files = {
        "tests/conftest.py": STARTED.format(str(started)),
        "tests/test_calc.py": "def test_adds(): pass\n",
    }
    bench, check = Bench(tmp_path, files), Check(name="tests", command=RUNNER)

    def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult:
        return run_guarded(argv, cwd=cwd, env=env, timeout_seconds=60)

    site = Site(bench.snapshot, Configuration(), bench.cache, "t")
    with site.ground(bench.snapshot.commit) as ground, closing(Rerun(run, check, ground)) as rerun:
        rerun.begin()
        run_check(check, ground, "", run)
        before = len(list(started.iterdir()))
        found = rerun.played([plain_run(["tests/test_calc.py::test_adds"])], 10)

    assert found == {"plain": {"tests/test_calc.py::test_adds": "passed"}}
    assert (before, len(list(started.iterdir()))) == (1, 2)


def test_a_module_without_tests_that_was_not_collected_is_owed_no_more(tmp_path: Path) -> None:
    files = {"calc.py": "RATE = 3\n", "shop.py": "import calc\n\nPRICE = calc.RATES\n"}
    files["test_calc.py"] = "import shop\n\n\ndef test_price():\n    assert shop.PRICE == 3\n"
    fixing = Fixing(tmp_path, files, (*RUNNER[:-1], "--doctest-modules"), {"calc.py": "RATE = RATES = 3\n"})

    state = fixing.run()

    assert {failure.name for failure in fixing.runs[0].failures} == {"shop.py", "test_calc.py"}
    assert state.outcome is WorkflowOutcome.SUCCESS
