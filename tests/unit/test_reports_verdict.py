"""One check's outcome from exit code, output and reports together (K38)."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.model import Check
from fixloop.configuration.values import FailOn
from fixloop.protocol.checks import CheckResult, Counts, Evidence, RunOutcome
from fixloop.reports import judge
from fixloop.reports.examples import with_examples, without_reports
from tests.fixtures.reports.samples import junit, sarif, written

PASSING = junit('<testcase classname="a" name="x"/><testcase classname="a" name="y"/>')
FAILING = junit('<testcase classname="a" name="x"><failure message="KeyError: 1"/></testcase>')
WARNING = sarif({"message": {"text": "m"}, "ruleId": "W1", "level": "warning"})
CLEAN = sarif()
TESTS = ("python", "-m", "pytest", "--junitxml={junit}")
COVERED = (*TESTS, "--cov-report=json:{coverage}")
LINT = ("ruff", "check", "--output-file", "{sarif}")


def covered(percent: float) -> str:
    return f'{{"totals": {{"percent_covered": {percent}}}}}'


def judged(
    directory: Path,
    command: tuple[str, ...],
    exit_code: int,
    output: str = "",
    reports: dict[str, str] | None = None,
    *,
    name: str = "check",
    **check: Any,
) -> CheckResult:
    """A check's result with `reports` as the files it wrote."""
    entry = Check(name=name, command=command, **check)
    outside = directory / "reports"
    written(outside, reports or {})
    result = judge(
        entry,
        exit_code=exit_code,
        output=output,
        reports={kind: outside / kind for kind in entry.report_kinds()},
        workspace=directory,
        evidence=Evidence(check="check", command=" ".join(command), tree="abc"),
    )
    return with_examples(result, without_reports(command), directory, str)


@pytest.mark.proves("K38")
def test_a_check_passes_when_its_command_and_its_report_say_so(tmp_path: Path) -> None:
    result = judged(tmp_path, TESTS, 0, "2 passed", {"junit": PASSING})

    assert result.outcome is RunOutcome.PASSED
    assert result.passed_names == ("a::x", "a::y")
    assert result.output_tail == "2 passed"


@pytest.mark.proves("K38")
def test_a_pass_carries_the_evidence_for_it(tmp_path: Path) -> None:
    reports = {"junit": PASSING, "coverage": covered(87.3)}

    evidence = judged(tmp_path, COVERED, 0, "", reports, coverage_percent=80).evidence

    assert evidence.counts == Counts(total=2, passed=2)
    assert (evidence.exit_code, evidence.tree) == (0, "abc")
    assert (evidence.coverage_percent, evidence.coverage_gate) == (87.3, 80)
    assert len(evidence.report_digest) == 64


def test_the_digest_is_that_of_the_one_report_or_else_of_the_output(tmp_path: Path) -> None:
    reported = judged(tmp_path, TESTS, 0, "out", {"junit": PASSING}).evidence.report_digest
    printed = judged(tmp_path, ("make",), 0, "out").evidence.report_digest

    assert reported == hashlib.sha256(PASSING.encode()).hexdigest()
    assert printed == hashlib.sha256(b"out").hexdigest()


@pytest.mark.proves("K38")
@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_failing_report_fails_with_any_exit_code(tmp_path: Path, exit_code: int) -> None:
    result = judged(tmp_path, TESTS, exit_code, "", {"junit": FAILING})

    assert result.outcome is RunOutcome.FAILED
    assert [(failure.name, failure.check) for failure in result.failures] == [("a::x", "check")]
    assert result.reason == "1 of 1 tests did not pass"


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("command", "reports"),
    [
        (TESTS, {"junit": PASSING}),
        (LINT, {"sarif": CLEAN}),
        (COVERED, {"junit": PASSING, "coverage": covered(99)}),
        (LINT, {"sarif": sarif({"message": {"text": "m"}, "suppressions": [{"kind": "inSource"}]})}),
    ],
)
def test_a_non_zero_exit_code_that_nothing_explains_is_an_error(
    tmp_path: Path, command: tuple[str, ...], reports: dict[str, str]
) -> None:
    result = judged(tmp_path, command, 1, "all well\nthen it broke\n", reports, coverage_percent=None)

    assert result.outcome is RunOutcome.ERROR
    assert "exit code 1, which no result in its report explains" in result.reason
    assert "then it broke" in result.reason


@pytest.mark.proves("K38")
def test_a_result_of_any_level_explains_a_non_zero_exit_code(tmp_path: Path) -> None:
    below = judged(tmp_path, LINT, 1, "", {"sarif": WARNING})
    above = judged(tmp_path, LINT, 1, "", {"sarif": WARNING}, fail_on=FailOn.WARNING)

    assert (below.outcome, below.failures) == (RunOutcome.PASSED, ())
    assert above.outcome is RunOutcome.FAILED


@pytest.mark.proves("K38", "B68", "G24", "S15")
@pytest.mark.parametrize("exit_code", [0, 2])
def test_coverage_below_its_gate_fails_and_explains_the_exit_code(tmp_path: Path, exit_code: int) -> None:
    reports = {"junit": PASSING, "coverage": covered(79.9)}

    result = judged(tmp_path, COVERED, exit_code, "", reports, coverage_percent=80)

    assert result.outcome is RunOutcome.FAILED
    assert [(failure.name, failure.measure) for failure in result.failures] == [("coverage", "79.9")]
    assert result.evidence.counts == Counts(total=2, passed=2)


@pytest.mark.proves("G24")
def test_the_gate_adds_no_failure_to_those_of_tests(tmp_path: Path) -> None:
    result = judged(
        tmp_path, COVERED, 1, "", {"junit": FAILING, "coverage": covered(73.2)}, coverage_percent=80
    )

    assert [failure.name for failure in result.failures] == ["a::x"]
    assert result.evidence.coverage_percent == 73.2
    assert "coverage 73.20% is below the gate of 80%" in result.reason


@pytest.mark.proves("K38")
@pytest.mark.parametrize("missing", ["junit", "coverage"])
def test_a_report_that_was_not_written_is_an_error(tmp_path: Path, missing: str) -> None:
    reports = {"junit": PASSING, "coverage": covered(90)}
    del reports[missing]

    result = judged(tmp_path, COVERED, 0, "", reports, coverage_percent=80)

    assert result.outcome is RunOutcome.ERROR
    assert f"the {missing} report {missing} is missing" in result.reason


def test_a_missing_report_is_explained_with_the_output_s_end_and_no_stack_frame(tmp_path: Path) -> None:
    output = "Error: no such module\n    at load (node:internal/modules:1:1)\n    at node:internal/main:2:2\n"

    result = judged(tmp_path, ("mocha", "{junit}"), 1, output)

    assert result.reason.endswith("the command's last error is: Error: no such module")


def test_an_error_that_only_jest_s_heading_announces_is_told_with_what_follows_it(tmp_path: Path) -> None:
    output = (
        "Error: ● Validation Error:\n\n  Test environment edge cannot be found.\n\n  https://jest.example\n"
    )

    result = judged(tmp_path, ("jest", "{jest}"), 1, output)

    assert result.reason.endswith("is: Error: ● Validation Error: Test environment edge cannot be found.")


def test_what_eslint_misses_explains_a_missing_report_better_than_where_to_ask(tmp_path: Path) -> None:
    missed = "ESLint couldn't find an eslint.config.(js|mjs|cjs) file."
    output = f"Oops! Something went wrong! :(\n\n{missed}\n\nPlease stop by\nhttps://chat.example to chat."

    result = judged(tmp_path, ("eslint", "{junit}"), 2, output)

    assert result.reason.endswith(f"the command's last error is: {missed}")


def test_an_unexplained_exit_code_is_explained_with_the_last_line_that_says_error(tmp_path: Path) -> None:
    output = "Error: could not write a.tsbuildinfo: read-only file system\nErrors  1 error\nreport written\n"

    result = judged(tmp_path, ("mocha", "{junit}"), 1, output)

    assert result.reason.endswith(
        "last error is: Error: could not write a.tsbuildinfo: read-only file system"
    )


def test_failing_tests_are_reported_although_nothing_could_be_measured(tmp_path: Path) -> None:
    result = judged(tmp_path, COVERED, 2, "", {"junit": FAILING}, coverage_percent=80)

    assert result.outcome is RunOutcome.FAILED
    assert [failure.name for failure in result.failures] == ["a::x"]


def test_a_gate_without_a_coverage_report_is_an_error(tmp_path: Path) -> None:
    result = judged(tmp_path, TESTS, 0, "", {"junit": PASSING}, coverage_percent=80)

    assert result.outcome is RunOutcome.ERROR


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("exit_code", "output", "reason"),
    [
        (127, "sh: ruf: not found", "was not found (exit code 127)"),
        (126, "", "cannot be executed (exit code 126)"),
        (1, "/venv/bin/python3: No module named ruff", "the module ruff is missing from /venv/bin/python3;"),
        (
            1,
            "/my ünï/.venv/bin/python: No module named mypy",
            "(`'/my ünï/.venv/bin/python' -m pip install mypy`), or leave the check out (`optional = true`)",
        ),
        (2, "error: Failed to spawn: `ruff`", "Failed to spawn"),
    ],
)
def test_a_command_that_cannot_run_is_an_error_or_skipped_if_optional(
    tmp_path: Path, exit_code: int, output: str, reason: str
) -> None:
    needed = judged(tmp_path, ("tool",), exit_code, output)
    optional = judged(tmp_path, ("tool",), exit_code, output, optional=True)

    assert needed.outcome is RunOutcome.ERROR
    assert optional.outcome is RunOutcome.SKIPPED
    assert reason in needed.reason == optional.reason


@pytest.mark.parametrize(("said", "reports"), [("", {"junit": FAILING}), ("not ok 1 builds\n# fail 1\n", {})])
def test_what_a_command_within_a_failing_test_misses_is_no_reason(
    tmp_path: Path, said: str, reports: dict[str, str]
) -> None:
    missing = "/v/bin/python: No module named build"
    output = f"{said}E       assert 'x' in '{missing}'\n{missing}\n"

    result = judged(tmp_path, TESTS if reports else ("npm", "test"), 1, output, reports)

    assert result.outcome is RunOutcome.FAILED


def test_a_conftest_that_cannot_be_loaded_is_no_wrong_call(tmp_path: Path) -> None:
    output = (
        "ImportError while loading conftest '/p/conftest.py'.\n"
        "conftest.py:7: in <module>\n    import x\nE   ModuleNotFoundError: No module named 'x'\n"
    )

    result = judged(tmp_path, ("python", "-m", "pytest"), 4, output)

    assert result.reason.startswith("pytest could not load a conftest.py (exit code 4): E ")
    assert result.reason.endswith("No module named 'x'")


def test_the_program_behind_variables_is_the_one_that_is_missing(tmp_path: Path) -> None:
    result = judged(tmp_path, ("env", "A=1", "ruff", "format"), 127, "env: 'ruff': No such file or directory")

    assert result.reason.startswith("`ruff` was not found")


@pytest.mark.parametrize(
    "said", ["sh: 1: gts: not found", "sh: gts: not found", "bash: line 1: gts: command not found"]
)
def test_the_program_that_a_package_manager_s_shell_misses_is_named(tmp_path: Path, said: str) -> None:
    output = f"> shop@1.0.0 check\n> gts lint\n\n{said}\n"

    result = judged(tmp_path, ("npm", "run", "check"), 127, output)

    assert result.reason.startswith("`gts` was not found")


@pytest.mark.parametrize(
    ("command", "exit_code", "output", "is_final"),
    [
        (("python", "-m", "pytest"), 4, "ERROR: usage: pytest\nerror: unrecognized arguments: --cov", True),
        (("tool", "{sarif}"), 2, "usage: tool [-h]\ntool: error: unrecognized arguments: -x", True),
        (("python", "-m", "mypy"), 1, "/v/bin/python: No module named mypy", True),
        (("tool",), 127, "", True),
        (("python", "-m", "pytest"), 3, "INTERNALERROR> out of memory", False),
        (("tool", "{sarif}"), 1, "connection reset", False),
        (("go", "vet", "./..."), 1, "go: m@v1: Get: dial tcp: lookup h: no such host", False),
        (("go", "vet", "./..."), 1, "a.go:9:2: m@v1: Get: dial tcp: lookup h: no such host", False),
    ],
)
def test_an_error_that_would_repeat_is_final(
    tmp_path: Path, command: tuple[str, ...], exit_code: int, output: str, is_final: bool
) -> None:
    result = judged(tmp_path, command, exit_code, output)

    assert (result.outcome, result.is_final) == (RunOutcome.ERROR, is_final)


@pytest.mark.proves("K40")
def test_a_tool_that_crashed_is_an_error_even_with_a_report(tmp_path: Path) -> None:
    result = judged(tmp_path, TESTS, -11, "", {"junit": FAILING})

    assert result.outcome is RunOutcome.ERROR
    assert result.reason == "`python` was ended by SIGSEGV"


@pytest.mark.proves("K38")
def test_wrong_usage_of_pytest_is_reported_in_pytest_s_own_words(tmp_path: Path) -> None:
    said = (
        "ERROR: usage: pytest\npytest: error: unrecognized arguments: --cov\n  inifile: None\n  rootdir: /x\n"
    )

    result = judged(tmp_path, TESTS, 4, said)

    assert result.outcome is RunOutcome.ERROR
    assert "pytest: error: unrecognized arguments: --cov" in result.reason


@pytest.mark.proves("K38")
def test_an_internal_error_of_pytest_is_told_by_the_line_that_names_it(tmp_path: Path) -> None:
    said = (
        "INTERNALERROR>     warnings.warn(PytestDeprecationWarning(_UNSET))\n"
        'INTERNALERROR> pytest.PytestDeprecationWarning: The configuration option "loop_scope" is unset.\n'
        "INTERNALERROR> The scope will default to the fixture's. error: is only a word of this sentence.\n"
    )

    result = judged(tmp_path, TESTS, 3, said)

    named = 'pytest.PytestDeprecationWarning: The configuration option "loop_scope" is unset.'
    assert result.reason == f"pytest had an internal error (exit code 3): {named}"


@pytest.mark.proves("K38")
def test_that_pytest_collected_nothing_is_told_without_its_last_line(tmp_path: Path) -> None:
    result = judged(tmp_path, TESTS, 5, "=== warnings ===\n========= 1 warning in 0.78s =========\n")

    assert result.reason == "pytest collected no tests (exit code 5)"


@pytest.mark.proves("K38")
@pytest.mark.parametrize(("exit_code", "words"), [(3, "internal error"), (4, "wrongly"), (5, "no tests")])
@pytest.mark.parametrize("command", [("pytest", "-q"), TESTS, ("sh", "-c", "cd x && pytest")])
def test_pytest_that_ran_no_tests_is_an_error(
    tmp_path: Path, command: tuple[str, ...], exit_code: int, words: str
) -> None:
    result = judged(tmp_path, command, exit_code, "no tests ran in 0.01s\n")

    assert result.outcome is RunOutcome.ERROR
    assert words in result.reason


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        (
            ("ruff", "check", "."),
            0,
            "warning: No Python files found under the given path(s)\nAll checks passed!",
        ),
        (("ruff", "format", "--check"), 0, "warning: No Python files found under the given path(s)\n"),
        (("python", "-m", "mypy", "src"), 2, "There are no .py[i] files in directory 'src'"),
        (("bandit", "-r", "src"), 0, "Code scanned:\n\tTotal lines of code: 0\n"),
        (("python", "-m", "unittest"), 0, "\n------\nRan 0 tests in 0.000s\n\nOK\n"),
        (("npx", "eslint", "src"), 2, "No files matching the pattern 'src' were found."),
    ],
)
def test_a_tool_that_was_given_no_files_never_passes(
    tmp_path: Path, command: tuple[str, ...], exit_code: int, output: str
) -> None:
    result = judged(tmp_path, command, exit_code, output)

    assert result.outcome is RunOutcome.ERROR
    assert "was given nothing to check" in result.reason


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("output", "ran"),
    [
        ("Found 0 test(s).\n\n------\nRan 0 tests in 0.000s\n\nOK\n", False),
        ("Ran 0 tests in 0.1s\nRan 7 tests in 0.1s", True),
        ("Ran 2 tests in 0.1s\n\nOK (skipped=2)\n", False),
        ("\n  Total:     0\n  Passed:    0\n  Skipped:   0\n  Duration:  0.04ms\n\n", False),
        ("1..0\n# tests 0\n# pass  0\n\n# ok\n", False),
        ("  Ran 0 tests with 0 failures, 0 errors, 0 skipped in 0.000 seconds.\n", False),
        ("0 features passed, 0 failed\n0 scenarios passed, 0 failed, 0 skipped\n", False),
    ],
)
def test_a_runner_that_reports_no_tests_never_passes(tmp_path: Path, output: str, *, ran: bool) -> None:
    result = judged(tmp_path, ("make", "test"), 0, output)

    assert result.outcome is (RunOutcome.PASSED if ran else RunOutcome.ERROR)
    assert ran or result.reason == "it says itself that no test ran"


def test_the_output_of_another_tool_is_not_interpreted(tmp_path: Path) -> None:
    assert judged(tmp_path, ("make",), 0, "Total lines of code: 0").outcome == "passed"
    assert judged(tmp_path, ("scan",), 0, "Findings\n  High:  0\n  Total:  0\n").outcome == "passed"
    assert judged(tmp_path, ("unittest",), 0, "Ran 0 tests in 0.1s\nRan 7 tests in 0.1s").outcome == "passed"


@pytest.mark.proves("K38")
def test_a_detected_check_whose_code_has_moved_away_never_passes(tmp_path: Path) -> None:
    command = ("python", "-m", "compileall", "-q", "src")
    written(tmp_path, {"lib/a.py": "x = 1\n"})

    detected = judged(tmp_path, command, 0, name="parse", paths=("src",))
    own = judged(tmp_path, command, 0, name="parse")

    assert detected.outcome is RunOutcome.ERROR
    assert detected.reason == "check `parse` is pointed at src, where no code is"
    assert own.outcome is RunOutcome.PASSED


@pytest.mark.proves("K7")
def test_without_a_placeholder_the_exit_code_decides_and_the_message_is_the_output(tmp_path: Path) -> None:
    written(tmp_path, {"src/a.py": ""})

    passed = judged(tmp_path, ("mypy",), 0, "src/a.py:1: error: said in passing")
    found = judged(tmp_path, ("mypy",), 1, "src/a.py:1: error: no  [misc]\nFound 1 error in 1 file")
    whole = judged(tmp_path, ("make",), 2, "make: *** [smoke] Error 1")

    assert passed.outcome is RunOutcome.PASSED
    assert [failure.location for failure in found.failures] == ["src/a.py:1"]
    assert found.evidence.counts == Counts(total=1, failed=1)
    assert [failure.name for failure in whole.failures] == ["check"]
    assert whole.failures[0].measure
    assert whole.failures[0].message == "make: *** [smoke] Error 1"


@pytest.mark.heavy
@pytest.mark.proves("K41")
def test_failures_are_bounded_and_their_number_is_exact(tmp_path: Path) -> None:
    text = "x" * 20_000
    many = junit(
        "".join(
            f'<testcase classname="a" name="t{n}"><failure message="m{n}">{text}</failure></testcase>'
            for n in range(70)
        )
    )

    result = judged(tmp_path, TESTS, 1, "noise " * 5000, {"junit": many})

    assert len(result.failures) == result.evidence.counts.failed == 70
    assert max(len(failure.message.encode()) for failure in result.failures) <= 8192
    assert [failure.message for failure in result.failures[50:]] == [f"m{n}" for n in range(50, 70)]
    assert len(result.output_tail.encode()) < 4200
    assert result.output_tail.endswith("noise")


def test_a_failing_test_is_reported_with_the_names_of_its_subtests(tmp_path: Path) -> None:
    output = "SUBFAILED[quoted-unicode] a.py::x - KeyError: 1\nSUBFAILED[b] (i=2) a.py::x - KeyError: 1\n"
    (tmp_path / "a.py").write_text("")

    (failure,) = judged(tmp_path, TESTS, 1, output, {"junit": FAILING}).failures

    assert failure.message.endswith("failing subtests: [quoted-unicode], [b] (i=2)")


def test_a_command_of_no_words_is_judged_too(tmp_path: Path) -> None:
    assert judged(tmp_path, (), 127).outcome is RunOutcome.ERROR


STACK = "    at wrapSafe (node:internal/modules/cjs/loader:1464:18)\n    at Object.<anonymous> (/p/test/mean.js:1:60)\n"


@pytest.mark.proves("B68")
@pytest.mark.parametrize(
    ("said", "location"),
    [
        (
            "\n Exception during run: {root}/mean.js:2\n  return f(0;\n            ^\n\nSyntaxError: missing )\n",
            "mean.js:2",
        ),
        (
            "file://{root}/mean.js:7\nexport const r = y;\n                 ^\n\nReferenceError: y is not defined\n",
            "mean.js:7",
        ),
        (
            "file://{root}/mean.js:1\nimport {{ add }} from './add.js';\n         ^^^\n"
            "SyntaxError: The requested module './add.js' does not provide an export named 'add'\n",
            "mean.js:1",
        ),
        (
            "file://{root}/mean.js:1\nimport {{ add }} from 'chai';\n         ^^^\n"
            "SyntaxError: The requested module 'chai' does not provide an export named 'add'\n",
            "",
        ),
        ("\n Exception during run: mean.ts(2,58): error TS1005: ')' expected.\n\n", "mean.ts:2"),
        (
            "\n Exception during run: Error: Transform failed with 1 error:\n{root}/mean.ts:2:57: ERROR: Expected\n",
            "mean.ts:2",
        ),
        ("\n Exception during run: mean.ts(1,20): error TS2307: Cannot find module 'chai'\n\n", ""),
        ("Error: Cannot find module 'chai'\nRequire stack:\n- {root}/mean.js\n", ""),
        ("{root}/node_modules/x/mean.js:2\n  a ?.b\n     ^\n\nSyntaxError: Unexpected token '.'\n", ""),
        ("{root}/gone.js:2\n  f(0;\n     ^\n\nSyntaxError: missing )\n", ""),
    ],
)
def test_a_runner_that_an_error_in_the_project_s_own_code_ended_is_a_failure_there(
    tmp_path: Path, said: str, location: str
) -> None:
    root, command = (
        written(tmp_path, {"mean.js": "", "mean.ts": "", "node_modules/x/mean.js": ""}),
        ("mocha", "{junit}"),
    )

    result = judged(root, command, 1, said.format(root=root) + STACK)

    assert [failure.location for failure in result.failures] == ([location] if location else [])
    assert result.outcome is (RunOutcome.FAILED if location else RunOutcome.ERROR)
    assert all("node:internal" not in failure.message for failure in result.failures)


def test_a_file_that_node_could_not_load_says_why(tmp_path: Path) -> None:
    crash = (
        "file://{root}/total.js:2\n  f(0;\n     ^\n\nSyntaxError: missing )\n    at node:internal/x:1:2\n\n"
    )
    output = "printed\n✔ adds two numbers (1.2ms)\n▶ sums\n  ✔ of none (3ms)\n▶ sums (4ms)\n"
    output += f"{crash}Node.js v20.20.2\n"
    output += "✖ {root}/total.test.js (26.3ms)\n  'test failed'\n"
    told = '<failure type="testCodeFailure" message="test failed">\n[Error: test failed] {{ exitCode: 1 }}\n</failure>'
    report = junit(f'<testcase name="{{root}}/total.test.js" classname="test">{told}</testcase>')
    root = written(tmp_path, {"total.js": "", "total.test.js": "", "a.test.js": ""})

    (failure,) = judged(
        root, ("node", "{junit}"), 1, output.format(root=root), {"junit": report.format(root=root)}
    ).failures

    assert (failure.name, failure.error_type, failure.frame) == ("total.test.js", "SyntaxError", "total.js:2")
    assert failure.message.startswith("total.js:2\n  f(0;")
    assert "printed" not in failure.message
    assert "sums" not in failure.message
    # A later report does not have the file's name.
    assert failure.measure


@pytest.mark.proves("K7")
@pytest.mark.parametrize(
    ("file", "text", "is_owed"),
    [
        ("shop.py", "import calc\n\nPRICE = calc.RATES\n", False),
        ("shop.py", 'import calc\n\n\ndef total():\n    """\n    >>> total()\n    3\n    """\n', True),
        ("shop.py", "import calc\n\nassert calc.RATES\n", True),
        ("test_shop.py", "", True),
    ],
)
def test_a_module_without_tests_that_was_not_collected_is_measured_and_so_not_owed(
    tmp_path: Path, file: str, text: str, is_owed: bool
) -> None:
    error = '<error message="collection failure">E   AttributeError: RATES</error>'
    report = junit(f'<testcase classname="" name="{file.removesuffix(".py")}">{error}</testcase>')

    (failure,) = judged(written(tmp_path, {file: text}), TESTS, 2, "", {"junit": report}).failures

    assert failure.name == file
    assert (failure.measure == "") == is_owed


def test_a_linter_s_finding_named_after_its_file_is_no_module_that_was_not_collected(tmp_path: Path) -> None:
    root = written(tmp_path, {"shop.py": "PRICE = 3\n"})

    (failure,) = judged(root, ("black", "--check", "."), 1, "would reformat shop.py\n").failures

    assert (failure.file, failure.measure) == ("shop.py", "")
