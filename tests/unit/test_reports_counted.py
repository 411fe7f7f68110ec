"""How many tests a runner says it ran."""

from pathlib import Path

import pytest

from fixloop.configuration.model import Check
from fixloop.protocol.checks import CheckResult, Evidence
from fixloop.reports.symptoms import counted
from fixloop.reports.verdict import judge

UNITTEST_FAILED = (
    "F.s\n====\nFAIL: test_a (tests.T.test_a)\n----\nTraceback\n\n----\n"
    "Ran 3 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n"
)
UNITTEST_PASSED = "...\n----\nRan 3 tests in 0.001s\n\nOK\n"
CARGO = (
    "running 2 tests\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
    "running 1 test\ntest result: ok. 1 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out\n"
)


@pytest.mark.parametrize(
    ("output", "number"),
    [
        ("..F\n1 failed, 2 passed in 0.03s\n", 3),
        ("======= 2 passed, 1 skipped, 3 warnings in 0.03s =======\n", 2),
        ("=== 1 failed, 2 passed, 1 xfailed, 4 deselected, 1 error in 61.20s (0:01:01) ===\n", 5),
        ("3 passed in 1.0s\n3 passed in 1.0s\n", 6),
        (UNITTEST_FAILED, 2),
        (UNITTEST_PASSED, 3),
        ("Ran 1 test in 0.001s\n\nOK (expected failures=1, skipped=1)\n", 0),
        (CARGO, 3),
        ("# tests 4\n# suites 0\n# pass 2\n# fail 1\n# cancelled 0\n# skipped 1\n", 3),
        ("ℹ tests 2\nℹ suites 0\nℹ pass 2\nℹ fail 0\n", 2),
        ("Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", 4),
        (" Test Files  1 passed (1)\n      Tests  1 failed | 4 passed (5)\n", 5),
        ("\n  2 passing (4ms)\n  1 pending\n  1 failing\n", 3),
        ("TAP version 13\n1..3\n# tests 3\n# pass  2\n# fail  1\n", 3),
        ("TAP version 13\n1..3\n# tests 3\n# pass  3\n\n# ok\n", 3),
        ("\n  Total:     4\n  Passed:    3\n  Skipped:   0\n  Duration:  0.04ms\n", 4),
        ("  Ran 3 tests with 1 failures, 0 errors, 0 skipped in 0.002 seconds.\n", 3),
        (
            "│  389  Tests Encountered     │\n│  380  Passes       (97.7%)  │\n│    4  Failures     (1.0%)   │\n",
            384,
        ),
        (" 1510 pass\n 2 skip\n 15 fail\n 2786 expect() calls\n", 1525),
        (" 2 pass\n 0 fail\n", 2),
        ("3 runs, 2 assertions, 1 failures, 1 errors, 0 skips\n", 3),
        ("0 examples, 0 failures\n", 0),
        ("345 specs, 1 failure\nFinished in 13.679 seconds\n", 345),
        ("OK (3 tests, 4 assertions)\n", 3),
        ("ERRORS!\nTests: 3, Assertions: 2, Errors: 1, Failures: 1.\n", 3),
        ("No tests executed!\n", 0),
        ("Files=2, Tests=7,  0 wallclock secs\nResult: PASS\n", 7),
        ("Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS\n", 0),
        ("Ran 13 tests.\n\nOK\n", 13),
        ("2 features passed, 0 failed\n5 scenarios passed, 1 failed, 2 skipped\n", 6),
        ("=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\nFAIL\n", 2),
    ],
)
def test_a_runners_summary_says_how_many_tests_ran(output: str, number: int) -> None:
    assert counted(output) == number


@pytest.mark.parametrize(
    "output",
    [
        "",
        "ok  \tshop\t0.01s\n",
        "--- FAIL: TestA (0.00s)\nFAIL\n",
        "a.py:1: E501 line too long\n",
        "5 passed the gate\n",
    ],
)
def test_an_output_without_a_summary_gives_no_count(output: str) -> None:
    assert counted(output) is None


def judged(folder: Path, output: str, command: tuple[str, ...] = ("make", "test")) -> CheckResult:
    check = Check(name="tests", command=command)
    evidence = Evidence(check="tests", command="make test")
    reports = {"junit": folder / "none.xml"}
    return judge(check, exit_code=0, output=output, reports=reports, workspace=folder, evidence=evidence)


def test_the_evidence_of_a_check_without_a_report_has_the_number(tmp_path: Path) -> None:
    assert judged(tmp_path, UNITTEST_PASSED).evidence.tests == 3
    assert judged(tmp_path, "all is well\n").evidence.tests is None


def test_a_check_s_report_takes_precedence_over_its_output(tmp_path: Path) -> None:
    assert judged(tmp_path, UNITTEST_PASSED, ("pytest", "--junitxml={junit}")).evidence.tests is None
