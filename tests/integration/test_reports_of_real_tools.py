"""The readers on the present output of the tools of a Python project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.configuration.model import Check
from fixloop.protocol.checks import CheckResult, Counts, Evidence, RunOutcome
from fixloop.reports import judge
from fixloop.reports.examples import with_examples, without_reports
from tests.fixtures.inner_pytest import UNUSED
from tests.fixtures.reports.samples import written

pytestmark = pytest.mark.slow

PYTEST = (
    *("python", "-m", "pytest", *UNUSED, "-p", "no:cacheprovider", "--junitxml={junit}"),
    *("--cov=shop", "--cov-report=json:{coverage}", "--cov-fail-under=0"),
)
SHOP = {
    "shop.py": "def total(prices):\n    return sum(prices)\n\n\ndef idle():\n    return 1\n",
    "tests/test_shop.py": "import shop\n\n\ndef test_total():\n    assert shop.total([1, 2]) == 3\n",
}
FAILING = """\
import pytest
import shop


class TestShop:
    def test_key(self):
        {}["x"]


def test_equal():
    assert shop.total([1]) == 2


def test_attribute():
    None.zzz


@pytest.fixture
def broken():
    yield
    raise ValueError("down")


def test_teardown(broken):
    pass


@pytest.mark.parametrize("n", [1, 2], ids=["a::b", "c d"])
def test_each(n):
    assert n == 1


@pytest.mark.skip
def test_skipped():
    pass
"""


def run(project: Path, command: tuple[str, ...], **gates: float) -> CheckResult:
    """The result of a check with `command` in `project`."""
    check = Check(name="check", command=command, coverage_percent=gates.get("coverage_percent"))
    reports = {kind: project.parent / f"{project.name}.{kind}" for kind in check.report_kinds()}
    for path in reports.values():
        path.unlink(missing_ok=True)
    argv = [part.format(**reports) for part in command]
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(project),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(project.parent),
    }
    done = subprocess.run(
        argv, cwd=project, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    result = judge(
        check,
        exit_code=done.returncode,
        output=done.stdout + done.stderr,
        reports=reports,
        workspace=project,
        evidence=Evidence(check="check", command=" ".join(command)),
    )
    return with_examples(result, without_reports(command), project, str)


@pytest.mark.proves("B65", "K7")
def test_pytest_gives_names_places_and_kinds(tmp_path: Path) -> None:
    project = written(tmp_path / "project", {**SHOP, "tests/test_more.py": FAILING})

    result = run(project, PYTEST, coverage_percent=80)

    assert result.outcome is RunOutcome.FAILED
    assert {(failure.name, failure.location, failure.error_type) for failure in result.failures} == {
        ("tests/test_more.py::TestShop::test_key", "tests/test_more.py:7", "KeyError"),
        ("tests/test_more.py::test_equal", "tests/test_more.py:11", "AssertionError"),
        ("tests/test_more.py::test_attribute", "tests/test_more.py:15", "AttributeError"),
        ("tests/test_more.py::test_teardown", "tests/test_more.py:21", "ValueError"),
        ("tests/test_more.py::test_each[c d]", "tests/test_more.py:30", "AssertionError"),
    }
    assert {"tests/test_shop.py::test_total", "tests/test_more.py::test_each[a::b]"} < set(
        result.passed_names
    )
    assert result.evidence.counts == Counts(total=8, passed=2, failed=4, errors=1, skipped=1)


@pytest.mark.proves("B68", "G24")
def test_coverage_below_its_gate_names_the_lines_to_test(tmp_path: Path) -> None:
    project = written(tmp_path / "project", SHOP)

    below, met = (run(project, PYTEST, coverage_percent=gate) for gate in (80, 75))

    (failure,) = below.failures
    assert (below.outcome, failure.name, failure.measure) == (RunOutcome.FAILED, "coverage", "75.0")
    assert "shop.py: 1 lines missing: 6" in failure.message
    assert met.outcome is RunOutcome.PASSED


@pytest.mark.proves("B68")
@pytest.mark.parametrize(
    ("conftest", "module", "location"),
    [
        ("import own\n", "def total(:\n    pass\n", "own.py:1"),
        ("import own\n", "import os\n\nRATE = os.getcwdd()\n", "own.py:3"),
        ("from own import rate\n", "RATE = 3\n", "tests/conftest.py:1"),
        ("import own.more\n", "RATE = 3\n", "tests/conftest.py:1"),
    ],
)
def test_code_that_keeps_its_own_conftest_from_loading_is_a_failure_with_its_place(
    tmp_path: Path, conftest: str, module: str, location: str
) -> None:
    files = SHOP | {"tests/conftest.py": conftest, "own.py": module}

    (failure,) = run(written(tmp_path / "project", files), PYTEST).failures

    assert failure.location == location
    assert "while loading conftest" in failure.message


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"tests/conftest.py": "import nope_x\n"}, "pytest could not load a conftest.py"),
        ({"tests/test_shop.py": ""}, "pytest collected no tests"),
        ({"tests/test_shop.py": "import os\n\n\ndef test_x():\n    os.abort()\n"}, "was ended by SIGABRT"),
        (
            {"tests/test_shop.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_x():\n    pass\n"},
            "all 1 tests were skipped",
        ),
    ],
)
@pytest.mark.proves("K38")
def test_a_run_of_pytest_that_proves_nothing_is_an_error(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    result = run(written(tmp_path / "project", {**SHOP, **files}), PYTEST)

    assert result.outcome is RunOutcome.ERROR
    assert reason in result.reason


def test_a_test_file_that_cannot_be_imported_is_a_failure_that_an_agent_can_fix(tmp_path: Path) -> None:
    project = written(tmp_path / "project", {**SHOP, "tests/test_new.py": "import nope_x\n"})
    broken = run(project, PYTEST, coverage_percent=75)
    written(project, {"tests/test_new.py": "def test_new():\n    pass\n"})

    mended = run(project, PYTEST, coverage_percent=75)

    (failure,) = broken.failures
    assert (failure.name, failure.error_type) == ("tests/test_new.py", "ModuleNotFoundError")
    assert mended.outcome is RunOutcome.PASSED
    assert failure.name in mended.passed_names


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        (("ruff", "check", "--no-cache", "--output-format", "sarif", "--output-file", "{sarif}"), {"F401"}),
        (("ruff", "check", "--no-cache", "--output-format", "concise"), {"F401"}),
        (("python", "-m", "mypy", "--cache-dir", os.devnull, "bad.py"), {"return-value"}),
    ],
)
@pytest.mark.proves("K7")
def test_each_finding_of_a_linter_is_a_failure(
    tmp_path: Path, command: tuple[str, ...], kinds: set[str]
) -> None:
    bad = 'import os\n\n\ndef f() -> int:\n    return "x"\n'
    result = run(written(tmp_path / "project", {"bad.py": bad}), command)

    assert result.outcome is RunOutcome.FAILED
    assert {failure.name for failure in result.failures} == kinds
    assert {failure.file for failure in result.failures} == {"bad.py"}


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "--output-format", "sarif", "--output-file", "{sarif}"),
        ("ruff", "format", "--no-cache", "--check"),
        ("python", "-m", "mypy", "--cache-dir", os.devnull, "."),
        ("bandit", "-r", "."),
        ("python", "-m", "unittest"),
    ],
)
@pytest.mark.proves("K38")
def test_a_tool_in_an_empty_folder_never_passes(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = run(written(tmp_path / "project", {"README": ""}), command)

    assert result.outcome is RunOutcome.ERROR
    assert "was given nothing to check" in result.reason
