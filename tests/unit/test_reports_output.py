"""Findings in the output of commands that write no report, and the digest of what is none."""

from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol.failures import Failure, Severity, same_failures
from fixloop.reports.examples import narrower
from fixloop.reports.output import failures_in, measure_of, whole_failure, without_packages
from fixloop.reports.report import SourceTree
from fixloop.reports.symptoms import counted
from tests.fixtures.reports.samples import written

MYPY = """\
src/a.py:3: error: "A" has no attribute "b"  [attr-defined]
src/a.py:3: note: did you mean "c"?
src/a.py:9:5: error: Missing return statement  [return]
gone.py:1: error: Cannot find it  [misc]
Found 2 errors in 1 file (checked 3 source files)
"""

PRINTED = ("tests/test_a.py", "tests/test_gone.py", "test/kv.js", "test/dash.js")
UNITTEST = """\
.../src/tests/test_a.py:3: DeprecationWarning: old
  self.assertEquals(1, 1)
E......F.2026-11-28 09:56:18 shop: starting
======================================================================
ERROR: test_kind (tests.test_a.TestA.test_kind)
Kinds have names.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "{root}/tests/test_a.py", line 4, in test_kind
    total(1)
    ^^^^^^^^
  File "{root}/src/a.py", line 9, in total
    raise shop.errors.NoKind(
shop.errors.NoKind: no kind 1
======

======================================================================
FAIL: test_sum (tests.test_a.TestA) (n=2)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "{root}/tests/test_a.py", line 8, in test_sum
    self.assertEqual(1, 2)
AssertionError: 1 != 2

Stdout:
what the test printed

======================================================================
ERROR: test_gone (unittest.loader._FailedTest.test_gone)
----------------------------------------------------------------------
ImportError: Failed to import test module: test_gone
Traceback (most recent call last):
  File "/usr/lib/python3.11/unittest/loader.py", line 419, in _find_test_path
    module = self._get_module_from_name(name)
  File "{root}/tests/test_gone.py", line 1, in <module>
    import gone
ModuleNotFoundError: No module named 'gone'

======================================================================
UNEXPECTED SUCCESS: test_odd (tests.test_a.TestA.test_odd)
----------------------------------------------------------------------
Ran 9 tests in 0.001s

FAILED (failures=1, errors=2, unexpected successes=1)
"""
TAPE = """\
> shop@1.0.0 test
> tape 'test/**/*.js'

TAP version 13
# short -k=v
ok 1 should be strictly equal
not ok 2 should be deeply equivalent
  ---
    operator: deepEqual
    expected: |-
      # { b: 123 }
    actual: |-
      { b: 3 }
    at: Test.<anonymous> ({root}/test/kv.js:10:4)
    stack: |-
      Error: should be deeply equivalent
          at Test.assert ({root}/node_modules/tape/lib/test.js:548:48)
          at Test.<anonymous> ({root}/test/kv.js:10:4)
  ...
not ok 3 later # TODO some day
# long
ok 5 should be truthy
# dash
not ok 4 should be truthy
  ---
    operator: ok
    at: Test.<anonymous> ({root}/test/dash.js:3:4)
  ...

1..4
# tests 4
# fail  2
"""
NESTED_TAP = """\
TAP version 13
# Subtest: cart
    # Subtest: total
    not ok 1 - total
      ---
      location: '{root}/test/kv.js:5:3'
      error: |-
        Expected values to be strictly equal:
        1 !== 2
      code: 'ERR_ASSERTION'
      ...
    # Subtest: kind
    ok 2 - kind
    1..2
not ok 1 - cart
  ---
  type: 'suite'
  error: '1 subtest failed'
  ...
# Subtest: alone
not ok 2 - alone # time=2ms
  ---
  error: 'boom'
  ...
1..2
"""


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    return SourceTree(
        written(tmp_path, {"src/a.py": "", "b.sh": "", "src/with space.py": "", **dict.fromkeys(PRINTED, "")})
    )


def mypy_lines(count: int) -> str:
    return "".join(f'src/a.py:{n}: error: "A" has no "b"  [attr-defined]\n' for n in range(1, count + 1))


@pytest.mark.proves("K7", "B21")
def test_each_line_that_names_a_file_of_the_workspace_is_a_failure(tree: SourceTree) -> None:
    found = failures_in(MYPY, "mypy", tree)

    assert [(failure.location, failure.name, failure.error_type) for failure in found] == [
        ("src/a.py:3", "attr-defined", "attr-defined"),
        ("src/a.py:9", "return", "return"),
    ]
    assert found[0].message == 'error: "A" has no attribute "b"  [attr-defined]'
    assert found[0].context == 'note: did you mean "c"?'
    assert found[1].context == ""


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("src/a.py:1:1: E501 line too long (111 > 110)", "E501"),
        ("src/a.py:1:8: F401 [*] `os` imported but unused", "F401"),
        ("src/a.py:1:0: C0114: Missing module docstring (missing-module-docstring)", "C0114"),
        ("src/a.py:1:3: unformatted: File would be reformatted", "unformatted"),
        ("b.sh:1:2: warning: Double quote to prevent globbing [SC2086]", "SC2086"),
        ("src/a.py:1: error: Bad thing", "error"),
        ("./src/a.py:1:2: undefined: foo", "undefined"),
        ("src/a.py:25: AssertionError", "AssertionError"),
        ("src/with space.py:2: something odd", ""),
    ],
)
def test_the_code_of_a_tool_is_the_error_type(tree: SourceTree, line: str, kind: str) -> None:
    (failure,) = failures_in(line, "lint", tree)

    assert failure.error_type == kind
    assert failure.name == (kind if kind not in {"", "error"} else "lint")


def test_each_file_that_black_names_is_a_failure(tree: SourceTree, tmp_path: Path) -> None:
    rows = f"would reformat {tmp_path}/src/a.py", "error: cannot parse: src/with space.py:1:6", "    x = ("
    output = "\n".join((*rows, "error: cannot format b.sh: Cannot parse: 2:1: y = (", "Oh no! 💥 💔 💥"))

    found = failures_in(f"{output}\n2 files would be reformatted.\n", "black", tree)

    assert [(failure.name, failure.location, failure.message) for failure in found] == [
        ("black", "src/a.py", "would reformat src/a.py"),
        ("black", "src/with space.py:1", "error: cannot parse: src/with space.py:1:6"),
        ("black", "b.sh", "error: cannot format b.sh: Cannot parse: 2:1: y = ("),
    ]


def test_a_rating_after_the_code_is_the_severity(tree: SourceTree) -> None:
    found = failures_in("src/a.py:5: B602 HIGH: shell\nsrc/a.py:6: B105 LOW: hm\nsrc/a.py:7: E1 x", "c", tree)

    assert [failure.severity for failure in found] == [Severity.HIGH, Severity.LOW, Severity.MEDIUM]


@pytest.mark.parametrize(
    "line",
    [
        "Found 3 errors in 1 file (checked 3 source files)",
        "/etc/passwd:1: error: no",
        "../a.py:1: error: no",
        "gone.py:1: error: no",
        "src:1: error: a folder",
        "12:30:05: starting",
        "src/a.py: error: no line",
        "src/a.py:1: note: only a note",
        # A warning of Python's own.
        "src/a.py:3: DeprecationWarning: old\n  old()\n",
    ],
)
def test_other_lines_are_no_findings(tree: SourceTree, line: str) -> None:
    assert failures_in(line, "check", tree) == ()


def test_a_link_out_of_the_workspace_is_not_a_file_of_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "secret.py").write_text("")
    (root / "link.py").symlink_to(tmp_path / "secret.py")

    assert failures_in("link.py:1: error: no", "check", SourceTree(root)) == ()


@pytest.mark.proves("S32", "K7")
def test_fewer_findings_are_progress_and_nine_three_times_are_not(tree: SourceTree) -> None:
    def run(count: int) -> list[Failure]:
        return list(failures_in(mypy_lines(count), "mypy", tree))

    assert [len(run(count)) for count in (9, 4, 1, 0)] == [9, 4, 1, 0]
    assert not same_failures([[each.key for each in run(count)] for count in (9, 4, 1)])
    assert same_failures([[each.key for each in run(9)] for _ in range(3)])


@pytest.mark.proves("K7")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("failed in 1.2s", "failed in 340 ms"),
        ("/tmp/x.1/a.py broke", "/var/y/b.py broke"),
        ("at 12:30:01 line 4", "at 09:05:59 line 77"),
        ("object at 0x7f92fd", "object at 0x10ab"),
        ("b broke\na broke\n", "a broke\r\nb broke"),
    ],
)
def test_digits_paths_and_times_do_not_change_the_measure(first: str, second: str) -> None:
    assert measure_of(first) == measure_of(second)


@pytest.mark.proves("K7")
def test_another_text_or_another_number_of_lines_changes_the_measure() -> None:
    assert measure_of("expected a colon") != measure_of("expected a comma")
    assert measure_of("x broke\nx broke") != measure_of("x broke")


@pytest.mark.proves("K7")
def test_a_failing_command_without_findings_is_one_failure_named_after_its_check() -> None:
    failure = whole_failure("it broke\n", "smoke", "make smoke", 2)

    assert (failure.name, failure.file, failure.error_type) == ("smoke", "", "exit code 2")
    assert failure.measure == measure_of("it broke")
    assert whole_failure("", "smoke", "make smoke", 2).message


def printed(output: str, root: Path) -> list[Failure]:
    return list(failures_in(output.replace("{root}", str(root)), "npm test", SourceTree(root)))


def test_each_failing_test_of_unittest_is_a_failure_by_its_id(tree: SourceTree, tmp_path: Path) -> None:
    error, fail, gone = printed(UNITTEST, tmp_path)

    assert (error.name, error.location, error.frame) == (
        "tests.test_a.TestA.test_kind",
        "tests/test_a.py:4",
        "src/a.py:9",
    )
    assert error.message.startswith("shop.errors.NoKind: no kind 1\nKinds have names.\nTraceback")
    assert (fail.name, fail.location, fail.error_type) == (
        "tests.test_a.TestA.test_sum",
        "tests/test_a.py:8",
        "AssertionError",
    )
    assert fail.message.startswith("AssertionError: 1 != 2\n(n=2)\n")
    assert fail.message.endswith("what the test printed")
    assert (gone.name, gone.location, gone.error_type) == (
        "test_gone",
        "tests/test_gone.py:1",
        "ModuleNotFoundError",
    )


TRIAL = """\
===============================================================================
[ERROR]
Traceback (most recent call last):
  File "{root}/tests/test_a.py", line 4, in test_kind
    kind(1)
  File "{root}/src/a.py", line 9, in kind
    raise ValueError(value)
builtins.ValueError: 64

tests.test_a.TestA.test_kind
-------------------------------------------------------------------------------
Ran 85 tests in 0.031s

FAILED (errors=1, successes=84)
"""
ZOPE = """\
.

Failure in test test_kind (tests.test_a.TestA.test_kind)
Traceback (most recent call last):
  File "{root}/tests/test_a.py", line 4, in test_kind
    self.assertEqual(kind(1), [2])
AssertionError: Lists differ: [1] != [2]

- [1]
+ [2]

.

  Ran 3 tests with 1 failures, 0 errors, 0 skipped in 0.009 seconds.
"""
WARD = f"""
       PASS test_a:9  kind of 2
{"─" * 9} kind(1) is 2 {"─" * 9}
{" " * 33}
  Failed at tests/test_a.py:4
{" " * 33}
       3 def _():
    ❱  4     assert kind(1) == 2
{" " * 33}
{"─" * 33}
"""
BUN = """\
test/kv.js:
(pass) kind > of 1 [0.04ms]
5 |   expect(kind(2)).toBe(3)
                      ^
error: expect(received).toBe(expected)

Expected: 3
Received: 2

      at <anonymous> ({root}/test/kv.js:5:19)
(fail) kind > of 2 [0.88ms]

1 tests failed:
(fail) kind > of 2 [0.88ms]

 1 pass
 1 fail
Ran 2 tests across 1 file. [5.00ms]
"""
BUN_LATE = "(fail) kind > of 3 [5000.63ms]\n  ^ this test timed out after 5000ms.\n"
UVU = """\
  FAIL  "short, (compat)"
    Expected values to be strictly equal:  (is)

        ++a    (Expected)
        --b    (Actual)
    at assert ({root}/node_modules/uvu/assert/index.js:33:8)
    at Object.handler ({root}/test/kv.js:5:9)


  Total:     32
  Passed:    31
"""
AVA = """\
  ✔ dash
  ✘ [fail]: concurrency: 1
  ─

  concurrency: 1

  test/kv.js:5

   4:
   5:   t.true(inRange(end()));

  Value is not `true`:

  false

  ─

  1 test failed
"""
MINITEST = """\
  1) Failure:
Calc#test_0001_adds one, two [{root}/test/kv.js:5]:
Expected: 3
  Actual: -1

3 runs, 2 assertions, 1 failures, 0 errors, 0 skips
"""
MINITEST_ERROR = """\
  1) Error:
TestCalc#test_error:
NoMethodError: undefined method `sub' for an instance of Calc

    Calc.new.sub(1)
            ^^^^
    {root}/test/kv.js:5:in `test_error'

3 runs, 2 assertions, 0 failures, 1 errors, 0 skips
"""
SUREFIRE = """\
[INFO] Running a.CalcTest
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.048 s <<< FAILURE! - in a.CalcTest
[ERROR] adds(a.CalcTest)  Time elapsed: 0.013 s  <<< FAILURE!
java.lang.AssertionError: expected:<5> but was:<-1>
\tat a.CalcTest.adds(CalcTest.java:5)

[INFO] Results:
[INFO]
[ERROR] Failures:
[ERROR]   CalcTest.adds:5 expected:<5> but was:<-1>
[INFO]
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
"""
RSPEC = """\
  1) Calc adds
     Failure/Error: expect(Calc.add(1, 2)).to eq(3)

       expected: 3
            got: -1
     # ./test/kv.js:5:in `block (2 levels) in <top (required)>'

Finished in 0.0136 seconds (files took 0.10051 seconds to load)
3 examples, 1 failure
"""
JASMINE = """\
Failures:
1) Calc adds
  Message:
    Expected -1 to be 3.
  Stack:
        at <Jasmine>
        at UserContext.<anonymous> ({root}/test/kv.js:5:44)

3 specs, 1 failure
"""
MOCHA = """\
  half
    1) halves a time

  0 passing (8ms)
  1 failing

  1) half
       halves a time:

      AssertionError: expected 500 to equal 1000
      + expected - actual

      -500
      +1000

      at Context.<anonymous> (test/kv.js:5:82)
      at process.processImmediate (node:internal/timers:483:21)


"""
JEST = """\
FAIL test/kv.js
  half
    ✕ halves (11 ms)
    ✓ one (1 ms)

  ● Console

    console.log
      5

  ● half › halves

    expect(received).toBe(expected) // Object.is equality

    Expected: 1
    Received: 0.5

    > 5 | const { half } = require('..')
        |         ^

      at Object.toBe (test/kv.js:5:88)

Test Suites: 1 failed, 1 total
"""
VITEST = """\
   × q > quarters "all" 17ms

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  test/kv.js > q > quarters "all"
AssertionError: expected 2 to be 1 // Object.is equality

- 1
+ 2

 ❯ test/kv.js:5:51
      5| it('quarters "all"')

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/1]⎯
"""
PHPUNIT = """\
There was 1 failure:

1) CalcTest::testAdd
Failed asserting that -1 is identical to 3.

{root}/test/kv.js:5

--

There was 1 skipped test:

1) CalcTest::testSkip
{root}/test/kv.js:9

FAILURES!
Tests: 3, Assertions: 2, Failures: 1.
"""
PERL = """\
#   Failed test 'adds'
#   at test/kv.js line 5.
#          got: '-1'
#     expected: '3'
# Looks like you failed 1 test of 3.
1..3
not ok 1 - adds
ok 2 - fine
"""


@pytest.mark.parametrize(
    ("output", "name", "location", "error"),
    [
        (MINITEST, "Calc#test_0001_adds one, two", "test/kv.js:5", "Expected: 3\n"),
        (MINITEST_ERROR, "TestCalc#test_error", "test/kv.js:5", "NoMethodError: undefined method `sub' for"),
        (SUREFIRE, "a.CalcTest > adds", "", "java.lang.AssertionError: expected:<5> but was:<-1>\n"),
        (
            SUREFIRE.replace("adds(a.CalcTest) ", "a.CalcTest.adds --"),
            "a.CalcTest.adds",
            "",
            "java.lang.AssertionError: expected:",
        ),
        (RSPEC, "Calc adds", "test/kv.js:5", "expect(Calc.add(1, 2)).to eq(3)\n"),
        (JASMINE, "Calc adds", "test/kv.js:5", "Expected -1 to be 3.\n"),
        (MOCHA, "half > halves a time", "test/kv.js:5", "AssertionError: expected 500 to equal 1000\n"),
        (JEST, "half > halves", "test/kv.js:5", "expect(received).toBe(expected)"),
        (VITEST, 'test/kv.js > q > quarters "all"', "test/kv.js:5", "AssertionError: expected 2 to be 1 "),
        (PHPUNIT, "CalcTest::testAdd", "test/kv.js:5", "Failed asserting that -1 is identical to 3.\n"),
        (PERL, "adds", "test/kv.js:5", "got: '-1'\nexpected: '3'\n"),
        (TRIAL, "tests.test_a.TestA.test_kind", "tests/test_a.py:4", "builtins.ValueError: 64\n"),
        (
            ZOPE,
            "tests.test_a.TestA.test_kind",
            "tests/test_a.py:4",
            "AssertionError: Lists differ: [1] != [2]\n",
        ),
        (BUN, "kind > of 2", "test/kv.js:5", "error: expect(received).toBe(expected)\n"),
        (BUN_LATE, "kind > of 3", "", "this test timed out after 5000ms."),
        (WARD, "kind(1) is 2", "tests/test_a.py:4", "Failed at tests/test_a.py:4"),
        (UVU.replace('"', 'Pairs  "', 1), "Pairs > short, (compat)", "test/kv.js:5", "Expected values"),
        (UVU, "short, (compat)", "test/kv.js:5", "Expected values to be strictly equal:  (is)\n"),
        (AVA, "concurrency: 1", "test/kv.js:5", "test/kv.js:5\n"),
    ],
)
def test_each_failing_test_of_other_runners_is_a_failure_by_its_name(
    tree: SourceTree, tmp_path: Path, output: str, name: str, location: str, error: str
) -> None:
    (failure,) = printed(output, tmp_path)

    assert (failure.name, failure.location) == (name, location)
    assert failure.message.startswith(error)


DOCTEST = """\
======================================================================
FAIL: kind (shop.kinds)
Doctest: shop.kinds.kind
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/usr/lib/python3.11/doctest.py", line 2241, in runTest
    raise self.failureException(self.format_failure(new.getvalue()))
AssertionError: Failed doctest test for shop.kinds.kind
  File "{root}/tests/test_a.py", line 2, in kind

----------------------------------------------------------------------
File "{root}/tests/test_a.py", line 4, in shop.kinds.kind
Failed example:
    kind(1)
Expected:
    2
Got:
    3

----------------------------------------------------------------------
Ran 1 test in 0.001s
"""


TRIALS = f"""{"=" * 79}
[FAIL]
Traceback (most recent call last):
twisted.trial.unittest.FailTest: 1 != 2

tests.test_a.TestA.test_sum
tests.test_a.TestA.test_total
{"=" * 79}
[ERROR]
Traceback (most recent call last):
builtins.KeyError: 'rate'

tests.test_a.TestA.test_rate
{"-" * 79}
Ran 3 tests in 0.006s
"""


def test_each_test_that_trial_names_below_an_error_is_a_failure(tmp_path: Path) -> None:
    told = [
        (failure.name.rpartition(".")[2], failure.message.splitlines()[-1])
        for failure in printed(TRIALS, tmp_path)
    ]

    failed = "twisted.trial.unittest.FailTest: 1 != 2"
    assert told == [("test_sum", failed), ("test_total", failed), ("test_rate", "builtins.KeyError: 'rate'")]


TESTTOOLS = f"""Tests running...
....F..{"=" * 70}
FAIL: tests.test_a.TestA.test_sum
{"-" * 70}
Traceback (most recent call last):
  File "{{root}}/tests/test_a.py", line 8, in test_sum
    self.assertEqual(1, 2)
testtools.matchers._impl.MismatchError: 1 != 2

======================================================================
ERROR: tests.test_a.TestA.test_rate
{"-" * 70}
Traceback (most recent call last):
  File "{{root}}/tests/test_a.py", line 9, in test_rate
KeyError: 'rate'


Ran 7 tests in 0.095s
FAILED (failures=2)
"""


def test_each_test_that_testtools_prints_right_behind_its_dots_is_a_failure(
    tree: SourceTree, tmp_path: Path
) -> None:
    told = [
        (failure.name, failure.location, failure.message.splitlines()[-1])
        for failure in printed(TESTTOOLS, tmp_path)
    ]

    assert told == [
        (
            "tests.test_a.TestA.test_sum",
            "tests/test_a.py:8",
            "testtools.matchers._impl.MismatchError: 1 != 2",
        ),
        ("tests.test_a.TestA.test_rate", "tests/test_a.py:9", "KeyError: 'rate'"),
    ]


def test_a_failing_doctest_of_unittest_is_told_without_a_command_that_could_not_load_it(
    tree: SourceTree, tmp_path: Path
) -> None:
    (failure,) = printed(DOCTEST, tmp_path)

    assert (failure.name, failure.location) == ("shop.kinds.kind", "tests/test_a.py:4")
    assert failure.message.startswith("Doctest: shop.kinds.kind\n")
    assert narrower(("python", "-m", "unittest", "-v"), failure) == ()


def test_each_failing_point_of_tap_is_a_failure_by_its_title(tree: SourceTree, tmp_path: Path) -> None:
    first, second = printed(TAPE, tmp_path)

    assert (first.name, first.location) == ("short -k=v > should be deeply equivalent", "test/kv.js:10")
    assert first.message.startswith("should be deeply equivalent\noperator: deepEqual\n")
    assert "ok 1" not in first.message
    assert (second.name, second.location) == ("dash > should be truthy", "test/dash.js:3")


def test_only_nested_tap_points_that_fail_themselves_are_failures(tree: SourceTree, tmp_path: Path) -> None:
    total, alone = printed(NESTED_TAP, tmp_path)

    assert (total.name, total.location, total.error_type) == ("total", "test/kv.js:5", "failure")
    assert total.message == (
        "Expected values to be strictly equal:\nerror: |-\n  Expected values to be strictly equal:\n  1 !== 2"
    )
    assert (alone.name, alone.message.split("\n")[0]) == ("alone", "boom")


def test_the_comments_below_a_failing_point_of_tap_are_its_message(tree: SourceTree) -> None:
    (failure,) = failures_in("1..1\nnot ok 1 adds\n# (in a.bats)\n#  `x' failed\n", "bats", tree)

    assert (failure.name, failure.message) == ("adds", "adds\n# (in a.bats)\n#  `x' failed")


def test_the_place_of_a_test_of_bats_is_in_its_own_file(tree: SourceTree, tmp_path: Path) -> None:
    (failure,) = printed(
        "1..1\nnot ok 1 adds\n# (from function `check' in file test/dash.js, line 3,\n"
        "#  in test file test/kv.js, line 5)\n#   `check' failed\n",
        tmp_path,
    )

    assert (failure.location, failure.frame) == ("test/kv.js:5", "test/kv.js:5")
    assert failure.message == "adds\n# (in test file test/kv.js, line 5)\n#   `check' failed"


def test_what_npm_prints_before_a_script_is_not_the_message() -> None:
    output = (
        "\n> shop@1.0.0 pretest\n> npm run build\n\n\n> shop@1.0.0 test\n> node test.js\n\nno tests found\n"
    )

    assert whole_failure(output, "npm test", "npm run test", 1).message == "no tests found"
    assert whole_failure(output + "row\n" * 300, "npm test", "npm run test", 1).message.startswith("row\n")


def test_failures_in_packages_that_npm_tests_are_found_in_their_folders(tmp_path: Path) -> None:
    folders = ("packages/a", "packages/b")
    tree = SourceTree(written(tmp_path, {f"{folder}/test/kv.js": "" for folder in folders}))
    ends = "npm error Lifecycle script `test` failed with error:\nnpm error code 1\nnpm error location {}\n"
    output = "".join(
        f"\n> @w/x@1.0.0 test\n> mocha\n\n{MOCHA}{ends.format(tmp_path / each)}" for each in folders
    )

    found = failures_in(without_packages(f"\n> @w/c@1.0.0 test\n> true\n{output}", tree), "npm test", tree)

    assert [failure.location for failure in found] == [f"{folder}/test/kv.js:5" for folder in folders]
    assert "npm error" not in found[0].message


def test_the_places_of_maven_s_failures_are_files_of_the_project(tmp_path: Path) -> None:
    test, code = "src/test/java/a/b/CalcTest.java", "core/src/main/java/a/Calc.java"
    written(tmp_path, dict.fromkeys((test, code, "src/test/java/a/CalcTest.java"), ""))
    said = SUREFIRE.replace("a.CalcTest.adds(", "app//a.b.CalcTest$Adding.lambda$adds$0(").replace(
        "\tat", "\tat java.base/java.util.List.of(List.java:9)\n\tat a.Calc.add(Calc.java:7)\n\tat", 1
    )
    compiler = """\
[ERROR] {0}:[90,6] cannot find symbol
  symbol:   class Calc
[INFO] 1 error
[ERROR] Failed to execute goal a:b:testCompile (default-testCompile) on project a: Compilation failure
[ERROR] {0}:[90,6] cannot find symbol
[ERROR]   symbol:   class Calc
"""

    (failed,) = printed(without_packages(said, SourceTree(tmp_path)), tmp_path)
    (broken,) = printed(compiler.format(tmp_path / test), tmp_path)

    assert (failed.file, failed.line, failed.frame) == (code, 7, f"{code}:7")
    assert f"at app//a.b.CalcTest$Adding.lambda$adds$0({test}:5)" in failed.message
    assert "List.of(List.java:9)" in failed.message
    assert (broken.file, broken.line, broken.message) == (test, 90, "cannot find symbol")
    assert broken.context == "symbol:   class Calc"


def test_what_packages_print_is_read_without_their_names_and_their_files_are_found(tmp_path: Path) -> None:
    tree = SourceTree(
        written(tmp_path, {"packages/core/src/clamp.ts": "", "packages/core/test/clamp.test.ts": ""})
    )
    output = """
> shop@ test /tmp/shop
packages/core test$ vitest run
packages/app test$ vitest run
packages/core test:  FAIL  test/clamp.test.ts > clamp > high
packages/core test:  ❯ test/clamp.test.ts:6:36
packages/core test: src/clamp.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.
packages/core test:       Tests  1 failed | 3 passed (4)
packages/app test:       Tests  3 passed (3)
packages/web test: was never started
"""

    read = without_packages(output, tree)

    assert "\n FAIL  packages/core/test/clamp.test.ts > clamp > high\n" in read
    assert "\n ❯ packages/core/test/clamp.test.ts:6:36\n" in read
    (test,), (type_error,) = (
        failures_in(each, "pnpm test", tree) for each in (read, read.replace(" FAIL ", ""))
    )
    assert test.location == "packages/core/test/clamp.test.ts:6"
    assert type_error.location == "packages/core/src/clamp.ts:3"
    assert counted(output) is None
    assert counted(read) == 7
    assert "\npackages/web test: was never started\n" in read


def test_turbo_s_lines_of_packages_are_read_package_by_package(tmp_path: Path) -> None:
    folders = ("packages/a", "packages/b")
    tree = SourceTree(written(tmp_path, {f"{folder}/test/kv.js": "" for folder in folders}))
    pairs = zip_longest(MOCHA.split("\n"), JEST.split("\n"), fillvalue="")
    told = "".join(
        f"@w/a:test: {one}\n@w/b:test:unit: {other}\n".replace(": \n", ":\n") for one, other in pairs
    )
    output = (
        "> turbo run test\n@w/a:test: cache bypass, force executing 1f\n@w/b:test:unit: cache miss, executing 2f\n"
        f"{told}@w/a#test:  ERROR  command ({tmp_path}/packages/a) /usr/bin/pnpm run test exited (1)\n"
        f"@w/b#test:unit:  ERROR  command ({tmp_path}/packages/b) /usr/bin/pnpm run test exited (1)\n"
    )

    found = failures_in(without_packages(output, tree), "npm test", tree)

    assert [(each.name, each.location) for each in found] == [
        ("half > halves a time", "packages/a/test/kv.js:5"),
        ("half > halves", "packages/b/test/kv.js:5"),
    ]


def test_the_calls_of_a_compiler_that_make_prints_are_not_the_message() -> None:
    output = (
        "cc  -I../src -g -o test1 test1.c\n  g++ -c b.cc\ntest1 failed\nmake: *** [Makefile:9: run] Error 1\n"
    )

    whole = whole_failure(output, "make", "make test", 2)

    assert whole.message == "test1 failed\nmake: *** [Makefile:9: run] Error 1"


def test_a_long_output_is_shown_with_telling_lines_first_and_no_progress() -> None:
    warnings = "".join(f"  {number}:1  warning  No magic number\n" for number in range(60))
    warnings += "✖ 60 problems (0 errors, 60 warnings)\n"
    bad = "  3:1  error  Bad\n" * 9
    output = f"{'.' * 200}\n{warnings}{bad}ok 1 fine\nboom\nnpm error no\nValueError: no\n\n\nthe end\n"

    rows = whole_failure(output, "smoke", "make smoke", 2).message.split("\n")

    assert rows[:4] == ["3:1  error  Bad", "npm error no", "ValueError: no", "…"]
    assert rows[rows.index("the end") - 1] == "ValueError: no"
    assert rows[-1] == "the end"
    assert not {"." * 200, "ok 1 fine"} & set(rows)
    assert whole_failure("....\n..........\nit broke", "s", "s", 1).message == "....\n\nit broke"


@given(st.text())
def test_no_output_makes_the_readers_raise(text: str) -> None:
    tree = SourceTree(Path("/"))

    assert len(failures_in(text, "check", tree)) <= text.count("\n") + len(text.splitlines())
    assert len(measure_of(text)) == 16


def test_each_of_several_tests_that_ava_reports_as_failed_is_its_own_failure(tmp_path: Path) -> None:
    (tmp_path / "test.js").write_text("t.is(half(1), 2);\n" * 9)
    failed = (
        f"  {name}\n\n  test.js:{line}\n\n   {line}:   t.is(half(1), 2);\n\n"
        f"  Difference (- actual, + expected):\n\n  - 1\n  + 2\n\n  › file://test.js:{line}:3\n"
        for name, line in (("halves", 3), ("halves twice", 7))
    )
    output = "\n  ✘ [fail]: halves\n  ✘ [fail]: halves twice\n  ─\n\n" + "\n\n\n".join(failed)

    found = failures_in(f"{output}\n  ─\n\n  2 tests failed\n", "ava", SourceTree(tmp_path))

    places = [(failure.name, failure.file, failure.line) for failure in found]
    assert places == [("halves", "test.js", 3), ("halves twice", "test.js", 7)]
