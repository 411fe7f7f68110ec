"""Recorded output of the test runners and linters of JavaScript, Go and Rust, and how fixloop reads it."""

import json
from pathlib import Path
from typing import Final

import pytest

from fixloop.configuration.model import Check
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.failures import Severity
from fixloop.reports import Report, judge
from tests.fixtures.reports.samples import OTHER_LANGUAGES, read, seen, written

PASSING_JUNIT: Final = '<testsuites><testsuite name="a"><testcase name="one"/></testsuite></testsuites>'
FOLDERS: Final = {"go": "go", "cargo": "rs", "clippy": "rs"}
FILES: Final = (
    *("jt/sum.test.js", "jt/hook.test.js", "jt/broken.test.js", "jt/sum.cjs", "jp/sum.test.js", "mt/sum.cjs"),
    *(
        "test/sum.test.mjs",
        "test/other.test.mjs",
        "test/broken.test.mjs",
        "vt/sum.test.js",
        "vt/broken.test.js",
    ),
    *("src/bad.js", "src/sum.js", "src/broken.js", "src/a.ts", "src/lib.rs", "tests/integration.rs"),
    *(
        "sum_test.go",
        "panics/p_test.go",
        "broken/b_test.go",
        "sub/sum_test.go",
        "race/r_test.go",
        "slow/s_test.go",
    ),
)


def text_of(name: str, root: Path) -> str:
    """A recorded output as if its project lay at `root`."""
    folder = FOLDERS.get(name.partition("-")[0], "js")
    text = (OTHER_LANGUAGES / name).read_text(encoding="utf-8")
    return text.replace(f"/home/dev/sample/{folder}", str(root))


def of(name: str, kind: str, tmp_path: Path) -> Report:
    root = written(tmp_path / "project", dict.fromkeys(FILES, ""))
    return read(tmp_path, kind, text_of(name, root), root=root)


def places(report: Report) -> list[tuple[str, str, str]]:
    return [(failure.name, failure.location, failure.error_type) for failure in report.failures]


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("jest-30-passing.json", "jest", ("passed", 2, 2, 0, 0, 0)),
        ("jest-30-failing.json", "jest", ("failed", 7, 1, 4, 0, 2)),
        ("jest-30-empty.json", "jest", ("error", 0, 0, 0, 0, 0)),
        ("node-20-failing.xml", "junit", ("failed", 8, 3, 3, 0, 2)),
        ("vitest-4-failing.xml", "junit", ("failed", 4, 1, 2, 0, 1)),
        ("bun-1.4-failing.xml", "junit", ("failed", 4, 1, 2, 0, 1)),
        ("mocha-12-failing.xml", "junit", ("failed", 5, 1, 2, 0, 2)),
        ("go-1.19-passing.txt", "go-test", ("passed", 1, 1, 0, 0, 0)),
        ("go-1.19-failing.txt", "go-test", ("failed", 11, 4, 6, 0, 1)),
        ("go-1.19-empty.txt", "go-test", ("error", 0, 0, 0, 0, 0)),
        ("cargo-1.95-passing.txt", "cargo-test", ("passed", 2, 2, 0, 0, 0)),
        ("cargo-1.95-failing.txt", "cargo-test", ("failed", 8, 2, 5, 0, 1)),
        ("cargo-1.95-empty.txt", "cargo-test", ("error", 0, 0, 0, 0, 0)),
    ],
)
def test_tests_are_counted_exactly(
    tmp_path: Path, name: str, kind: str, expected: tuple[str, int, int, int, int, int]
) -> None:
    assert seen(of(name, kind, tmp_path)) == expected


@pytest.mark.proves("K7")
@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        (
            "jest-30-failing.json",
            "jest",
            [
                ("jt/sum.test.js::sum > adds", "jt/sum.test.js:2", "failure"),
                ("jt/hook.test.js::one", "jt/hook.test.js:2", "TypeError"),
                ("jt/hook.test.js::two", "jt/hook.test.js:2", "TypeError"),
                ("jt/broken.test.js", "jt/broken.test.js:1", "test suite failed to run"),
            ],
        ),
        (
            "node-20-failing.xml",
            "junit",
            [
                ("test/broken.test.mjs", "test/broken.test.mjs", "testCodeFailure"),
                ("test::dies", "test/other.test.mjs:3", "testCodeFailure"),
                ("test::adds", "test/sum.test.mjs:4", "testCodeFailure"),
            ],
        ),
        (
            "bun-1.4-failing.xml",
            "junit",
            [
                ("sum::adds", "test/sum.test.mjs:6", "AssertionError"),
                ("throws", "test/sum.test.mjs:12", "TypeError"),
            ],
        ),
        (
            "go-1.19-failing.txt",
            "go-test",
            [
                ("example.com/sample/broken", "broken/b_test.go:5", "build failed"),
                ("example.com/sample.TestSum", "sum_test.go:7", "failure"),
                ("example.com/sample.TestTable/zero", "sum_test.go:15", "failure"),
                ("example.com/sample.ExampleSum", "", "failure"),
                ("example.com/sample/panics.TestPanics", "panics/p_test.go:5", "panic"),
                ("example.com/sample/dies", "", "failure"),
            ],
        ),
        (
            "go-1.19-race.txt",
            "go-test",
            [("example.com/sample/race.TestRaces", "race/r_test.go:7", "data race")],
        ),
        (
            "go-1.19-timeout.txt",
            "go-test",
            [("example.com/sample/slow.TestForever", "slow/s_test.go:9", "timeout")],
        ),
        (
            "cargo-1.95-failing.txt",
            "cargo-test",
            [
                ("sample::tests::does_not_panic", "src/lib.rs:36", "failure"),
                ("sample::tests::prints", "", "failure"),
                ("sample::tests::adds", "src/lib.rs:21", "panic"),
                ("integration::deep", "src/lib.rs:10", "panic"),
                ("sample::src/lib.rs - sum", "src/lib.rs:5", "panic"),
            ],
        ),
        ("cargo-1.95-build.txt", "cargo-test", [("build", "src/lib.rs:19", "E0308")]),
        ("cargo-1.95-abort.txt", "cargo-test", [("sample", "", "test binary died")]),
        ("clippy-1.95-error.txt", "clippy", [("E0308", "src/lib.rs:19", "E0308")]),
        (
            "eslint-10-failing.json",
            "eslint",
            [("no-debugger", "src/bad.js:2", "no-debugger"), ("eqeqeq", "src/bad.js:3", "eqeqeq")],
        ),
        ("eslint-10-fatal.json", "eslint", [("fatal", "src/broken.js:1", "fatal")]),
    ],
)
def test_a_failure_has_a_name_a_place_and_a_kind(
    tmp_path: Path, name: str, kind: str, expected: list[tuple[str, str, str]]
) -> None:
    assert sorted(places(of(name, kind, tmp_path))) == sorted(expected)


def test_the_last_failure_of_a_rust_binary_ends_before_the_list_of_all(tmp_path: Path) -> None:
    messages = [each.message for each in of("cargo-1.95-failing.txt", "cargo-test", tmp_path).failures]

    assert messages
    assert not any("failures:" in message for message in messages)


def test_a_file_that_bun_s_report_leaves_out_is_a_failure_and_its_messages_are_told_once(
    tmp_path: Path,
) -> None:
    root = written(tmp_path, {"test/a.test.ts": "", "report.xml": PASSING_JUNIT})
    output = "test/a.test.ts:\n\n# Unhandled error between tests\n{0}\nerror: no './b'\n{0}\n".format(
        "-" * 31
    )
    check = Check(name="bun test", command=("bun", "test", "--reporter-outfile={junit}"))
    evidence = Evidence(check="bun test", command="", tree="")
    reports = {"junit": root / "report.xml"}

    found = judge(check, exit_code=1, output=output, reports=reports, workspace=root, evidence=evidence)
    unexplained = judge(check, exit_code=1, output="no", reports=reports, workspace=root, evidence=evidence)

    assert [(failure.name, failure.message) for failure in found.failures] == [
        ("test/a.test.ts", "error: no './b'")
    ]
    assert (found.outcome, unexplained.outcome) == (RunOutcome.FAILED, RunOutcome.ERROR)
    messages = [
        failure.message for failure in of("bun-1.4-failing.xml", "junit", tmp_path / "failing").failures
    ]
    assert messages[1] == "TypeError: no\n      at test/sum.test.mjs:12:27"


@pytest.mark.proves("K7")
@pytest.mark.parametrize(
    ("broken", "repaired", "kind", "name"),
    [
        ("cargo-1.95-build.txt", "cargo-1.95-passing.txt", "cargo-test", "build"),
        ("cargo-1.95-abort.txt", "cargo-1.95-passing.txt", "cargo-test", "sample"),
        ("cargo-1.95-failing.txt", "cargo-1.95-passing.txt", "cargo-test", "sample::tests::adds"),
        ("jest-30-failing.json", "jest-30-passing.json", "jest", "jt/broken.test.js"),
    ],
)
def test_a_failed_file_or_build_is_among_the_passed_names_later(
    tmp_path: Path, broken: str, repaired: str, kind: str, name: str
) -> None:
    assert name in {failure.name for failure in of(broken, kind, tmp_path).failures}

    assert name.replace("jt/broken", "jp/sum") in of(repaired, kind, tmp_path).passed_names


def test_a_package_that_builds_again_has_passed(tmp_path: Path) -> None:
    assert "example.com/sample/sub" in of("go-1.19-passing.txt", "go-test", tmp_path).passed_names


def test_a_parent_of_subtests_passes_by_its_name_and_is_not_counted(tmp_path: Path) -> None:
    events = [("p.T/a", "pass"), ("p.T", "pass"), ("p", "pass")]
    lines = [f'{{"Action":"{end}","Package":"p","Test":"{name[2:]}"}}' for name, end in events]

    report = read(tmp_path, "go-test", "\n".join(lines).replace(',"Test":""', ""))

    assert (report.counts.total, report.passed_names) == (1, ("p.T/a", "p.T", "p"))


def _go_events(*events: str) -> str:
    rows = [each.split(maxsplit=1) for each in events]
    named = [{"Action": row[0], "Package": "p"} | ({"Test": row[1]} if row[1:] else {}) for row in rows]
    return "\n".join(map(json.dumps, named))


def test_a_go_test_that_a_passing_test_starts_to_see_it_fail_is_no_failure(tmp_path: Path) -> None:
    inside = (
        "run TestSuite",
        "run TestSuite/bad",
        "fail TestSuite/bad",
        "run bad suite",
        "run bad suite/one",
    )
    events = (*inside, "fail bad suite/one", "fail bad suite", "pass TestSuite", "pass")

    report = read(tmp_path, "go-test", _go_events(*events))

    assert (report.outcome, report.failures) == (RunOutcome.PASSED, ())


def test_a_go_test_named_by_an_address_has_the_same_name_in_each_run(tmp_path: Path) -> None:
    first, second = (
        read(tmp_path, "go-test", _go_events(f"run T/{one}", f"pass T/{one}", "pass T", "pass"))
        for one in ("(*A)(0xc000648e00)/0xdeadbeef00", "(*A)(0xc0004c1e20)/0xdeadbeef00")
    )

    assert first.passed_names == second.passed_names
    assert "p.T/(*A)(0x...)/0xdeadbeef00" in first.passed_names


def test_a_go_test_that_fails_beside_passing_ones_stays_a_failure(tmp_path: Path) -> None:
    parallel = ("run TestA", "pause TestA", "run TestB", "fail TestB", "cont TestA", "pass TestA", "fail")
    started = ("run TestA", "run bad", "fail bad", "fail TestA", "run TestC", "pass TestC", "fail")

    assert [each.name for each in read(tmp_path, "go-test", _go_events(*parallel)).failures] == ["p.TestB"]
    assert "p.bad" in {each.name for each in read(tmp_path, "go-test", _go_events(*started)).failures}


def test_a_build_failure_of_go_1_24_is_reported_in_events(tmp_path: Path) -> None:
    events = (
        '{"ImportPath":"m/p [m/p.test]","Action":"build-output","Output":"p/p_test.go:5:2: undefined: x\\n"}',
        '{"ImportPath":"m/p [m/p.test]","Action":"build-fail"}',
        '{"Action":"output","Package":"m/p","Output":"FAIL\\tm/p [build failed]\\n"}',
        '{"Action":"fail","Package":"m/p","Elapsed":0,"FailedBuild":"m/p [m/p.test]"}',
    )
    root = written(tmp_path / "project", {"p/p_test.go": ""})

    report = read(tmp_path, "go-test", "\n".join(events), root=root)

    assert places(report) == [("m/p", "p/p_test.go:5", "build failed")]
    assert report.failures[0].message == "p/p_test.go:5:2: undefined: x"


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("name", "kind", "keep"),
    [
        ("go-1.19-passing.txt", "go-test", "PASS\\n"),
        ("cargo-1.95-passing.txt", "cargo-test", "test result"),
        ("clippy-1.95-passing.txt", "clippy", '"reason":"compiler-artifact"'),
        ("jest-30-passing.json", "jest", '"assertionResults"'),
    ],
)
def test_a_truncated_run_proves_nothing(tmp_path: Path, name: str, kind: str, keep: str) -> None:
    text = text_of(name, tmp_path)

    report = read(tmp_path, kind, text[: text.index(keep)])

    assert report.outcome is RunOutcome.ERROR


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('"numTotalTests":2', '"numTotalTests":3'), "declares 3 tests and lists 2"),
        (('"wasInterrupted":false', '"wasInterrupted":true'), "was interrupted"),
        (('"testResults"', '"results"'), "not Jest's"),
        (('"status":"passed","title"', '"status":"running","title"'), "is no end of a test"),
    ],
)
def test_a_report_of_jest_that_is_not_whole_is_an_error(
    tmp_path: Path, change: tuple[str, str], reason: str
) -> None:
    text = text_of("jest-30-passing.json", tmp_path)
    assert change[0] in text

    report = read(tmp_path, "jest", text.replace(*change))

    assert report.outcome is RunOutcome.ERROR
    assert reason in report.reason


def judged(
    tmp_path: Path, check: Check, exit_code: int, output: str = "", report: str = "", said: str = ""
) -> CheckResult:
    """A check's result; `output` and `report` name files, `said` is printed as it is."""
    root = written(tmp_path / "project", dict.fromkeys(FILES, ""))
    path = tmp_path / "report"
    path.write_text(text_of(report, root) if report else "[]", encoding="utf-8")
    return judge(
        check,
        exit_code=exit_code,
        output=text_of(output, root) if output else said,
        reports=dict.fromkeys(check.report_kinds(), path),
        workspace=root,
        evidence=Evidence(check=check.name, command=" ".join(check.command), tree="abc"),
    )


@pytest.mark.parametrize(
    ("command", "output", "report"),
    [
        (("eslint", "-o", "{eslint}"), "", "eslint-10-warnings.json"),
        (("cargo", "clippy", "--message-format=json"), "clippy", "clippy-1.95-warnings.txt"),
    ],
)
def test_warnings_fail_if_the_exit_code_says_so(
    tmp_path: Path, command: tuple[str, ...], output: str, report: str
) -> None:
    check = Check(name="lint", command=command, output=output)

    passed, failed = judged(tmp_path, check, 0, "", report), judged(tmp_path, check, 1, "", report)

    assert (passed.outcome, passed.failures) == (RunOutcome.PASSED, ())
    assert failed.outcome is RunOutcome.FAILED
    assert {failure.severity for failure in failed.failures} == {Severity.LOW}


@pytest.mark.parametrize(
    ("line", "name", "measure"),
    [
        (
            "ERROR: Coverage for lines (66.66%) does not meet global threshold (100%)",
            "coverage of lines",
            "66.66",
        ),
        ('Jest: "global" coverage threshold for branches (80%) not met: 50%', "coverage of branches", "50"),
    ],
)
def test_coverage_that_the_runner_refuses_is_a_failure_even_if_all_tests_pass(
    tmp_path: Path, line: str, name: str, measure: str
) -> None:
    check = Check(name="jest", command=("jest", "{jest}"))

    result = judged(tmp_path, check, 1, report="jest-30-passing.json", said=line)

    assert result.outcome is RunOutcome.FAILED
    assert [(failure.name, failure.measure) for failure in result.failures] == [(name, measure)]


def test_a_test_s_output_is_not_taken_for_the_runner_s(tmp_path: Path) -> None:
    words = ("go", "test", "-json", "./...")
    line = '{"Action":"output","Package":"m","Test":"TestA","Output":"no packages to test\\n"}'
    ends = ('{"Action":"pass","Package":"m","Test":"TestA"}', '{"Action":"pass","Package":"m"}')
    text = "\n".join((line, *ends))
    path = tmp_path / "report"
    path.write_text(text, encoding="utf-8")

    result = judge(
        Check(name="go test", command=words, output="go-test"),
        exit_code=0,
        output=text,
        reports={"go-test": path},
        workspace=tmp_path,
        evidence=Evidence(check="go test", command=" ".join(words)),
    )

    assert (result.outcome, result.evidence.counts.passed) == (RunOutcome.PASSED, 1)


def test_a_list_without_files_proves_nothing(tmp_path: Path) -> None:
    result = judged(tmp_path, Check(name="eslint", command=("eslint", "-o", "{eslint}")), 0)

    assert result.outcome is RunOutcome.ERROR
    assert "names no file that was looked at" in result.reason


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("oxlint-1.94.txt", [("oxlint", "src/broken.js:1", "Unexpected token")]),
        (
            "biome-2.6.txt",
            [
                ("assist/source/organizeImports", "src/a.ts:2", "Some imports or exports are not organized."),
                ("format", "src/a.ts:1", "File content differs from formatting output"),
                (
                    "lint/suspicious/noDebugger",
                    "src/bad.js:2",
                    "This is an unexpected use of the debugger statement.",
                ),
            ],
        ),
        (
            "prettier-3.10.txt",
            [
                ("format", "src/a.ts", "is not formatted as Prettier would"),
                ("syntax", "src/broken.js:1", "SyntaxError: Unexpected token (1:7)"),
            ],
        ),
        (
            "tsc-7.0.txt",
            [
                ("TS2322", "src/a.ts:1", "Type 'string' is not assignable to type 'number'."),
                ("TS2339", "src/a.ts:3", "Property 'nope' does not exist on type 'string'."),
            ],
        ),
        ("go-vet-1.19.txt", [("vet", "broken/b_test.go:5", "undeclared name: undefined1")]),
    ],
)
def test_findings_are_read_from_what_a_linter_prints(
    tmp_path: Path, output: str, expected: list[tuple[str, str, str]]
) -> None:
    name = "vet" if "vet" in output else "lint"

    result = judged(tmp_path, Check(name=name, command=(name,)), 1, output)

    found = [(failure.name, failure.location, failure.message) for failure in result.failures]
    assert [finding for finding in expected if finding not in found] == []
    assert all(failure.severity is not Severity.LOW for failure in result.failures)


def test_an_error_that_node_wraps_is_told_once_with_its_line_breaks(tmp_path: Path) -> None:
    _, dies, adds = of("node-20-failing.xml", "junit", tmp_path).failures

    assert dies.message.startswith("TypeError [Error]: boom\n    at TestContext")
    assert adds.message.startswith(
        "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n4 !== 3\n"
    )
    assert adds.message.count("4 !== 3") == 1
