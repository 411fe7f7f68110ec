"""New tests have to be able to fail: before the fix, or at least if the product does nothing."""

import sys
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.model import Check
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.fixing_stage import Fixing
from tests.fixtures.inner_pytest import UNUSED

pytestmark = pytest.mark.slow

PYTEST = ("python", "-m", "pytest", *UNUSED, "-p", "no:xdist", "-q", "--junitxml={junit}")
COVERED = (*PYTEST, "--cov=calc", "--cov-report=json:{coverage}")
BROKEN = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TWICE = '\n\ndef twice(a):\n    """Doubled."""\n    a = a + a\n    a = a + 0\n    return a\n'
ADDS = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
ASSERTS = "import calc\n\n\ndef test_twice():\n    assert calc.twice(2) == 4\n"


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


def covered(tmp_path: Path, new: str) -> Fixing:
    """A gate of coverage that is missed, for which a fix writes new tests."""
    files = {"calc.py": RIGHT + TWICE, "tests/test_calc.py": ADDS}
    fixing = Fixing(tmp_path, files, COVERED, {"tests/test_new.py": new})
    check = Check(name="tests", command=COVERED, coverage_percent=90)
    entry = fixing.configuration.specialists[0].model_copy(update={"checks": (check,)})
    fixing.configuration = fixing.configuration.model_copy(update={"specialists": (entry,)})
    return fixing


def evidence(fixing: Fixing) -> Any:
    return fixing.runs[-1].evidence[0]


@pytest.mark.parametrize(
    ("tests", "failed"),
    [
        ("def test_more():\n    assert add(5, 5) == 10\n", 1),
        ("def test_more():\n    assert add(5, 0) == 5\n", 0),
        ("def test_more():\n    assert add(5, 'a' if add(1, 1) != 2 else 5)\n", 0),
    ],
)
def test_the_evidence_says_how_many_new_tests_fail_by_an_assertion_before_the_fix(
    tests: str, failed: int, tmp_path: Path
) -> None:
    fixing = Fixing(
        tmp_path,
        {"calc.py": BROKEN, "tests/test_calc.py": ADDS},
        PYTEST,
        {"calc.py": RIGHT, "tests/test_more.py": f"from calc import add\n\n\n{tests}"},
    )

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert (evidence(fixing).new_tests, evidence(fixing).new_tests_failed_before) == (1, failed)
    of_which = (
        "1 of which failed before the fix" if failed else "none of which failed before the fix, so it proves"
    )
    assert of_which in evidence(fixing).of_new_tests()


def test_a_new_test_has_its_new_fixtures_where_it_runs_before_the_fix(tmp_path: Path) -> None:
    fix = {
        "calc.py": RIGHT,
        "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef five():\n    return 5\n",
        "tests/test_more.py": "from calc import add\n\n\ndef test_more(five):\n    assert add(five, five) == 10\n",
    }
    fixing = Fixing(tmp_path, {"calc.py": BROKEN, "tests/test_calc.py": ADDS}, PYTEST, fix)

    fixing.run()

    assert (evidence(fixing).new_tests, evidence(fixing).new_tests_failed_before) == (1, 1)


def test_a_renamed_test_is_not_new(tmp_path: Path) -> None:
    fix = {"calc.py": RIGHT, "tests/test_calc.py": ADDS.replace("test_adds", "test_sum")}
    fixing = Fixing(tmp_path, {"calc.py": BROKEN, "tests/test_calc.py": ADDS}, PYTEST, fix)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert evidence(fixing).new_tests == 0


@pytest.mark.parametrize(
    "new",
    [
        "import calc\n\n\ndef test_twice():\n    calc.twice(2)\n",
        "import calc\n\n\ndef test_twice():\n    assert calc.twice(2) or True\n",
        "import calc\n\n\ndef test_twice():\n    try:\n        assert calc.twice(2) == 5\n"
        "    except Exception:\n        pass\n",
        "import calc\n\n\ndef test_twice():\n    calc.twice(2) + 1\n",
        f"{ASSERTS.replace('test_twice', 'test_ten').replace('calc.twice(2) == 4', 'calc.add(5, 5) == 10')}\n\n"
        "class TestTwice:\n    def test_it(self):\n        assert calc.twice(1) is not calc\n",
    ],
)
def test_a_gate_that_is_met_by_tests_which_cannot_fail_is_held(new: str, tmp_path: Path) -> None:
    fixing = covered(tmp_path, new)

    fixing.run()

    assert fixing.rules == ["proves-nothing"]
    found = fixing.runs[-1].findings[0]
    assert found.file == "tests/test_new.py"
    assert (
        found.text == "the gate of coverage is met only with 1 new test that passes whatever the product does"
    )


@pytest.mark.parametrize(
    "new",
    [
        ASSERTS,
        "import calc\nimport pytest\n\n\ndef test_twice():\n    with pytest.raises(TypeError):\n"
        "        calc.twice(None)\n"
        "    assert calc.twice(0) == 0\n",
        "import unittest\n\nimport calc\n\n\nclass TestTwice(unittest.TestCase):\n    def test_it(self):\n"
        "        self.assertEqual(calc.twice(3), 6)\n",
        f"{ASSERTS}\n\ndef test_smoke():\n    calc.add(1, 1)\n",
    ],
)
def test_a_gate_that_is_met_by_tests_which_can_fail_is_not_held(new: str, tmp_path: Path) -> None:
    fixing = covered(tmp_path, new)

    state = fixing.run()

    assert state.outcome is WorkflowOutcome.SUCCESS, fixing.rules
    assert evidence(fixing).new_tests >= 1
