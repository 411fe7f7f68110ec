"""JUnit XML as eight tools write it: counts, names, places and kinds of error."""

from pathlib import Path

import pytest

from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.failures import FailureRef, Severity
from fixloop.reports import as_json, read_report
from tests.fixtures.reports.samples import JUNIT, junit, pytest_suite, read, seen, written

# Outcome, total, passed, failed, errors, skipped: counted by eye.
REAL = {
    "external_java_TEST-org.apache.pulsar.AddMissingPatchVersionTest.xml": ("failed", 2, 0, 1, 0, 1),
    "external_java_empty_failures.xml": ("failed", 3, 2, 1, 0, 0),
    "external_java_junit4-basic.xml": ("failed", 6, 5, 1, 0, 0),
    "external_java_junit4-complete.xml": ("failed", 8, 5, 1, 1, 1),
    "external_jest_jest-react-component-test-results.xml": ("passed", 1, 1, 0, 0, 0),
    "external_phpunit_junit-basic.xml": ("failed", 9, 8, 1, 0, 0),
    "external_phpunit_phpcheckstyle-phpunit.xml": ("failed", 30, 28, 2, 0, 0),
    "jest-junit-eslint.xml": ("passed", 1, 1, 0, 0, 0),
    "jest-junit.xml": ("failed", 6, 1, 4, 0, 1),
    "nette-tester_tester-v1.7-report.xml": ("failed", 65, 61, 1, 0, 3),
    "phpunit_phpunit.xml": ("failed", 12, 10, 2, 0, 0),
    "python-xunit-pytest.xml": ("failed", 10, 6, 2, 0, 2),
    "python-xunit-unittest.xml": ("failed", 8, 4, 1, 1, 2),
    "swift-xunit.xml": ("failed", 3, 2, 1, 0, 0),
    "test-errors_jest_jest-test-results.xml": ("failed", 2, 0, 0, 2, 0),
}

SEED = pytest_suite(
    '<testcase classname="test_validation_coordinator" name="test_sequential_invocation">'
    '<failure message="AssertionError: assert 1 == 2">def test_sequential_invocation():\n'
    "&gt;       assert 1 == 2\nE       assert 1 == 2\n\ntest_validation_coordinator.py:45: AssertionError"
    "</failure></testcase>"
    '<testcase classname="test_validation_coordinator" name="test_failure_tracking">'
    "<failure message=\"KeyError: 'x'\">E   KeyError: 'x'\n\ntest_validation_coordinator.py:67: KeyError"
    "</failure></testcase>"
    '<testcase classname="test_validation_coordinator" name="test_workflow_completion">'
    "<failure message=\"AttributeError: 'NoneType' object has no attribute 'zzz'\">"
    "test_validation_coordinator.py:89: in test_workflow_completion\n    None.zzz\n"
    "E   AttributeError: zzz\n</failure></testcase>"
    '<testcase classname="test_validation_coordinator.TestState" name="test_start[a-b]"/>'
)

SAID_LAST = (
    '<testcase classname="test_a" name="test_memo"><failure message="KeyError: &apos;memo&apos;">def test_memo():\n'
    "&gt;       entry['memo']\nE       KeyError: 'memo'\n\ntest_a.py:3: KeyError</failure></testcase>"
)


@pytest.mark.parametrize("name", REAL)
def test_a_real_report_gives_its_visible_counts(name: str) -> None:
    report = read_report(JUNIT / name, "junit")

    assert seen(report) == REAL[name]
    assert len(report.failures) == report.counts.failed + report.counts.errors
    assert all(failure.message and failure.error_type for failure in report.failures)


@pytest.mark.proves("B21")
def test_a_failure_begins_with_its_message_not_with_the_test_s_source(tmp_path: Path) -> None:
    report = read(tmp_path, "junit", pytest_suite(SAID_LAST))

    (failure,) = report.failures
    assert failure.message.splitlines()[:2] == ["KeyError: 'memo'", "def test_memo():"]
    assert failure.error_type == "KeyError"


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("004 &gt;&gt;&gt; total(1)\nExpected:", "+3 more lines"),
        ("004 &gt;&gt;&gt; total(1)\nExpected:\n    1\nGot:", "+1 more line"),
        ("004 &gt;&gt;&gt; tot...", "truncated"),
    ],
)
@pytest.mark.proves("B21")
def test_a_message_that_pytest_cut_is_told_as_the_text_that_continues_it(
    tmp_path: Path, message: str, note: str
) -> None:
    text = "004 &gt;&gt;&gt; total(1)\nExpected:\n    1\nGot:\n    2\n\na.py:4: DocTestFailure"
    fault = f'<failure message="{message}\n[{note}; full report in element text]">{text}</failure>'
    content = pytest_suite(f'<testcase classname="a" name="a">{fault}</testcase>'.replace("\n", "&#10;"))

    (failure,) = read(tmp_path, "junit", content).failures

    assert failure.message == text.replace("&gt;", ">")


@pytest.mark.proves("B65", "B21")
def test_the_three_failures_of_the_seed_have_their_names_places_and_kinds(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"test_validation_coordinator.py": ""})

    report = read(tmp_path, "junit", SEED, root=root)

    assert [(failure.name, failure.location, failure.error_type) for failure in report.failures] == [
        (
            "test_validation_coordinator.py::test_sequential_invocation",
            "test_validation_coordinator.py:45",
            "AssertionError",
        ),
        (
            "test_validation_coordinator.py::test_failure_tracking",
            "test_validation_coordinator.py:67",
            "KeyError",
        ),
        (
            "test_validation_coordinator.py::test_workflow_completion",
            "test_validation_coordinator.py:89",
            "AttributeError",
        ),
    ]
    assert {failure.severity for failure in report.failures} == {Severity.HIGH}
    assert "assert 1 == 2" in report.failures[0].message


@pytest.mark.proves("K7")
def test_passed_tests_are_listed_under_the_ids_pytest_gives_them(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"test_validation_coordinator.py": ""})

    report = read(tmp_path, "junit", SEED, root=root)

    assert report.passed_names == (
        "test_validation_coordinator.py::TestState::test_start[a-b]",
        "test_validation_coordinator.py",
    )


@pytest.mark.proves("K7")
def test_a_module_that_cannot_be_imported_is_resolved_by_being_imported(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"tests/test_a.py": ""})
    broken = pytest_suite(
        '<testcase classname="" name="tests.test_a"><error message="collection failure">'
        "tests/test_a.py:1: in &lt;module&gt;\n    import nope\n"
        "E   ModuleNotFoundError: No module named 'nope'</error></testcase>"
    )

    before = read(tmp_path, "junit", broken, root=root)
    after = read(
        tmp_path, "junit", pytest_suite('<testcase classname="tests.test_a" name="test_x"/>'), root=root
    )

    (failure,) = before.failures
    assert (failure.name, failure.location, failure.error_type) == (
        "tests/test_a.py",
        "tests/test_a.py:1",
        "ModuleNotFoundError",
    )
    assert before.counts.errors == 1
    assert failure.name in after.passed_names


def test_a_module_that_cannot_be_imported_is_listed_with_the_missing_one(tmp_path: Path) -> None:
    text = (
        "a.py:1: in &lt;module&gt;\n    import nope\nE   ModuleNotFoundError: No module named 'nope._version'"
    )
    broken = f'<testcase classname="" name="a"><error message="collection failure">{text}</error></testcase>'

    (failure,) = read(tmp_path, "junit", pytest_suite(broken)).failures

    assert FailureRef.of(failure).headline == "ModuleNotFoundError: No module named 'nope._version'"
    assert "    import nope\n" in failure.message


@pytest.mark.parametrize("text", ["", "E   Exit: no display", "raise ValueError"])
def test_a_module_that_raises_nothing_with_a_name_is_a_collection_failure(tmp_path: Path, text: str) -> None:
    broken = f'<testcase classname="" name="a"><error message="collection failure">{text}</error></testcase>'

    (failure,) = read(tmp_path, "junit", pytest_suite(broken)).failures

    assert FailureRef.of(failure).headline == "collection failure"


@pytest.mark.proves("K7")
def test_a_jest_file_that_cannot_run_is_resolved_by_running(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"libs/foo.spec.ts": "", "libs/bar.spec.ts": ""})
    sound = junit('<testcase classname="math" name="adds"/>', name="libs/foo.spec.ts")

    before = read_report(JUNIT / "test-errors_jest_jest-test-results.xml", "junit", root=root)
    after = read(tmp_path, "junit", sound, root=root)

    assert [failure.name for failure in before.failures] == ["libs/foo.spec.ts", "libs/bar.spec.ts"]
    assert after.passed_names == ("math::adds", "libs/foo.spec.ts")


def test_a_name_both_passed_and_failed_counts_as_not_passed(tmp_path: Path) -> None:
    twice = '<testcase classname="a" name="x"/><testcase classname="a" name="x"><failure/></testcase>'

    report = read(tmp_path, "junit", pytest_suite(twice))

    assert report.passed_names == ()
    assert seen(report) == ("failed", 2, 1, 1, 0, 0)


def test_unittest_names_its_files_itself() -> None:
    report = read_report(JUNIT / "python-xunit-unittest.xml", "junit")

    assert [(failure.name, failure.location, failure.error_type) for failure in report.failures] == [
        ("tests/test_lib.py::TestAcme::test_always_fail", "tests/test_lib.py:24", "AssertionError"),
        ("tests/test_lib.py::TestAcme::test_error", "tests/test_lib.py:31", "Exception"),
    ]


def test_a_java_test_is_named_by_its_class() -> None:
    report = read_report(
        JUNIT / "external_java_TEST-org.apache.pulsar.AddMissingPatchVersionTest.xml", "junit"
    )

    (failure,) = report.failures
    assert failure.name == "org.apache.pulsar.AddMissingPatchVersionTest::testVersionStrings"
    assert failure.error_type == "java.lang.AssertionError"
    assert "expected [1.2.1] but found [1.2.0]" in failure.message


def test_a_warning_that_pytest_raises_is_the_error(tmp_path: Path) -> None:
    text = "conftest.py:3: in setup\nE   pytest.PytestRemovedIn10Warning: Passing a non-Collection iterable"
    case = f'<testcase name="tests.test_a"><error message="collection failure">{text}</error></testcase>'
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuite>{case}</testsuite>")

    (failure,) = read_report(report, "junit").failures

    assert failure.error_type == "pytest.PytestRemovedIn10Warning"
    assert failure.message.startswith("pytest.PytestRemovedIn10Warning: Passing a non-Collection iterable")


def test_a_traceback_in_the_message_ends_in_the_error_type() -> None:
    (failure,) = read_report(JUNIT / "external_java_empty_failures.xml", "junit").failures

    assert failure.error_type == "AssertionError"
    assert failure.message.endswith("True is not false")


@pytest.mark.parametrize(
    ("declared", "place"),
    [
        ("src/Fake.php", "src/Fake.php:42"),
        ("/home/runner/repo/src/Fake.php", "Fake.php:42"),
        ("C:\\repo\\src\\Fake.php", "Fake.php:42"),
        ("../../etc/Fake.php", "Fake.php:42"),
    ],
)
def test_a_file_outside_the_workspace_is_a_bare_name(tmp_path: Path, declared: str, place: str) -> None:
    failing = f'<testcase name="t" classname="S" file="{declared}" line="42"><failure/></testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing), root=tmp_path).failures

    assert failure.location == place
    assert failure.name == "S::t"


def test_an_absolute_path_inside_the_workspace_becomes_relative(tmp_path: Path) -> None:
    failing = f'<testcase name="t" classname="T" file="{tmp_path}/tests/t.py"><failure/></testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing), root=tmp_path).failures

    assert failure.file == "tests/t.py"
    assert failure.name == "tests/t.py::T::t"


def test_a_file_name_with_dots_is_kept_whole_in_an_id(tmp_path: Path) -> None:
    failing = '<testcase name="testIt" classname="tests.t.Mypy.check-it.test"><failure/></testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing), root=written(tmp_path, {"tests/t.py": ""})).failures

    assert failure.name == "tests/t.py::Mypy::check-it.test::testIt"


def test_a_test_below_the_root_folder_that_pytest_chose_has_its_place_in_the_workspace(
    tmp_path: Path,
) -> None:
    root = written(tmp_path / "project", {"packages/a/tests/test_a.py": ""})
    failing = (
        '<testcase name="test_x" classname="tests.test_a"><failure message="assert 3 == 2">\n'
        "&gt;   assert 3 == 2\n\npackages/a/tests/test_a.py:7: AssertionError</failure></testcase>"
    )

    (failure,) = read(tmp_path, "junit", pytest_suite(failing), root=root).failures

    assert failure.location == "packages/a/tests/test_a.py:7"
    assert failure.name == "tests.test_a::test_x"


def test_a_file_in_a_folder_with_a_hyphen_is_found_by_its_module(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"packages/my-lib/tests/test_a.py": ""})
    failing = '<testcase name="test_x" classname="packages.my-lib.tests.test_a.TestX"><failure/></testcase>'

    (failure,) = read(tmp_path, "junit", pytest_suite(failing), root=root).failures

    assert failure.name == "packages/my-lib/tests/test_a.py::TestX::test_x"


def test_pytest_counts_subtests_and_lists_only_the_failing_ones(tmp_path: Path) -> None:
    listed = '<testcase classname="a" name="x"/>'

    assert read(tmp_path, "junit", junit(listed, name="pytest", declared='tests="5"')).outcome == "passed"
    assert read(tmp_path, "junit", junit(listed, name="other", declared='tests="5"')).outcome == "error"


def test_nested_suites_are_counted_once() -> None:
    report = read_report(JUNIT / "external_phpunit_junit-basic.xml", "junit")

    assert len(set(report.passed_names)) == 8
    assert report.failures[0].name == "Tests.Authentication::testCase9"


def test_a_flaky_test_passes_and_the_reason_says_so(tmp_path: Path) -> None:
    flaky = '<testcase classname="a" name="x"><flakyFailure message="once"/></testcase>'

    report = read(tmp_path, "junit", junit(flaky, declared='tests="1"'))

    assert report.outcome is RunOutcome.PASSED
    assert report.reason == "1 of 1 tests passed, 1 of them only when run again"


def test_a_test_that_failed_every_rerun_fails(tmp_path: Path) -> None:
    rerun = '<testcase name="x"><failure type="E" message="m"/><rerunFailure message="n"/></testcase>'

    report = read(tmp_path, "junit", junit(rerun, declared='tests="1" failures="1"'))

    assert seen(report) == ("failed", 1, 0, 1, 0, 0)


def test_an_error_outside_any_test_fails_the_run(tmp_path: Path) -> None:
    report = read(tmp_path, "junit", junit('<testcase name="x"/><error message="setup broke"/>', name="db"))

    assert seen(report) == ("failed", 2, 1, 0, 1, 0)
    assert (report.failures[0].name, report.failures[0].message) == ("db", "setup broke")


@pytest.mark.parametrize(
    ("attribute", "outcome"),
    [('status="run"', "passed"), ('status="notrun"', "error"), ('status="fail"', "failed")],
)
def test_a_state_in_an_attribute_counts(tmp_path: Path, attribute: str, outcome: str) -> None:
    assert read(tmp_path, "junit", junit(f'<testcase name="x" {attribute}/>')).outcome == outcome


def test_a_namespace_changes_nothing(tmp_path: Path) -> None:
    report = read(tmp_path, "junit", '<testsuite xmlns="urn:x"><testcase name="a"/></testsuite>')

    assert seen(report) == ("passed", 1, 1, 0, 0, 0)


def test_the_output_of_a_failing_test_is_its_context(tmp_path: Path) -> None:
    failing = (
        '<testcase name="x"><failure message="no"/><system-out>got \x85here</system-out></testcase>'
        "<system-out>not this</system-out>"
    )

    (failure,) = read(tmp_path, "junit", junit(failing)).failures

    assert failure.context == "got here"


def test_a_test_that_pytest_counts_twice_is_listed_once_in_any_suite(tmp_path: Path) -> None:
    declared = (
        'errors="0" failures="0" skipped="2" tests="3" time="1" timestamp="2026-11-28T07:52:49" hostname="vm"'
    )
    twice = '<testcase name="x"><skipped message="no"/><skipped message="no"/></testcase><testcase name="y"/>'

    report = read(tmp_path, "junit", f'<testsuite name="ours" {declared}>{twice}</testsuite>')

    assert (report.outcome, report.counts.passed, report.counts.skipped) == ("passed", 1, 1)


def test_a_test_that_printed_nothing_has_no_context(tmp_path: Path) -> None:
    out, err = (f"{'-' * 33} Captured {name} {'-' * 33}\n\n" for name in ("Out", "Err"))
    streams = f"<system-out>{out}</system-out><system-err>{err}</system-err>"
    failing = f'<testcase name="x"><failure message="no"/>{streams}</testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing)).failures

    assert failure.context == ""


@pytest.mark.parametrize(
    "message", ["TypeError: Unknown key derivation method", "AssertionError: assert 1 == 2"]
)
def test_no_suggestion_is_guessed_from_the_type_of_an_error(tmp_path: Path, message: str) -> None:
    failing = f'<testcase classname="a" name="test_x"><failure message="{message}"/></testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing)).failures

    assert failure.suggestion == ""


def test_a_test_that_is_expected_to_fail_and_passes_is_not_to_be_made_to_pass(tmp_path: Path) -> None:
    failing = '<testcase classname="a" name="test_x"><failure message="[XPASS(strict)] "/></testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing)).failures

    assert "expected to fail, and passes" in failure.suggestion


def test_the_json_document_has_the_promised_fields() -> None:
    document = as_json(read_report(JUNIT / "swift-xunit.xml", "junit"))

    assert document == {
        "outcome": "failed",
        "reason": "1 of 3 tests did not pass",
        "counts": {"total": 3, "passed": 2, "failed": 1, "errors": 0, "skipped": 0},
        "failures": [
            {
                "name": "AcmeLibTests.AcmeLibTests::test_always_fail",
                "file": "",
                "line": None,
                "error_type": "failure",
                "message": "failed",
            }
        ],
    }


@pytest.mark.parametrize("escape", ["\x1b", "&#x1B;", "&#27;"])
@pytest.mark.proves("K7")
def test_a_coloured_message_does_not_make_a_report_unreadable(tmp_path: Path, escape: str) -> None:
    said = f"{escape}[1m{escape}[31massumed 10&#xA;or more{escape}[0m &#x8;\x07"
    content = junit(f'<testcase name="a"/><testcase name="b"><failure>{said}</failure></testcase>')

    report = read(tmp_path, "junit", content)

    assert seen(report) == ("failed", 2, 1, 1, 0, 0)
    assert report.failures[0].message.startswith("assumed 10\nor more")


@pytest.mark.parametrize("between", ["\x01", "\x1b", "&#x1;"])
def test_a_forbidden_character_in_a_test_s_output_is_never_markup(tmp_path: Path, between: str) -> None:
    said = f"<![CDATA[]]{between}></failure></testcase><testcase name='forged'/><!--]]>"
    content = junit(f'<testcase name="a"><failure>{said}</failure></testcase>')

    assert seen(read(tmp_path, "junit", content)) == ("failed", 1, 0, 1, 0, 0)


@pytest.mark.parametrize(
    ("name", "listed", "outcome"),
    [("Mocha Tests", 1, "failed"), ("Mocha Tests", 0, "error"), ("other", 1, "error")],
)
@pytest.mark.proves("K38")
def test_mocha_may_count_a_failing_test_as_a_failure_and_as_an_error(
    tmp_path: Path, name: str, listed: int, outcome: str
) -> None:
    cases = '<testcase name="a"><failure>1 is not 2</failure></testcase>' * listed + '<testcase name="b"/>'
    content = f'<testsuite name="{name}" tests="{listed + 1}" failures="1" errors="1">{cases}</testsuite>'

    assert read(tmp_path, "junit", content).outcome.value == outcome
