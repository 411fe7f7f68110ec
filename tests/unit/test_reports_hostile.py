"""Reports that never pass: each kind of file that proves nothing, and files made to hang, fill or fool a reader."""

import json
import os
import socket
import tempfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fixloop.errors import UsageError
from fixloop.protocol.checks import RunOutcome
from fixloop.reports import KINDS, Report, read_report
from tests.fixtures.reports.samples import JUNIT, OTHER_LANGUAGES, SARIF, junit, read, sarif

BOMB = (
    '<!DOCTYPE lolz [<!ENTITY lol0 "lol">'
    + "".join(f'<!ENTITY lol{n} "{f"&lol{n - 1};" * 10}">' for n in range(1, 10))
    + "]><testsuite><testcase name='&lol9;'/></testsuite>"
)
EXTERNAL = (
    '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="a"/>&x;</testsuite>'
)
RESULT: dict[str, Any] = {"message": {"text": "m"}}


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        (" \n\t", "is empty"),
        ("no report", "is not whole XML"),
        (junit('<testcase name="a"/>')[:-5], "is not whole XML"),
        (junit('<testcase name="a"/>') + "<more/>", "is not whole XML"),
        ("<html/>", "its root is <html>"),
        ("<testsuites/>", "lists no tests"),
        (junit('<testcase name="a"><skipped/></testcase>' * 2), "all 2 tests were skipped"),
        (junit('<testcase name="a"/>', declared='tests="1" failures="1"'), "declares 1 failures and errors"),
        (junit('<testcase name="a"/>', declared='tests="1" errors="2"'), "declares 2 failures and errors"),
        (junit('<testcase name="a"/>', declared='tests="2"'), "declares 2 tests and lists 1"),
        (
            '<testsuites tests="2"><testsuite><testcase name="a"/></testsuite></testsuites>',
            "declares 2 tests",
        ),
        (junit('<testcase name="a"/>', declared='failures="none"'), "which is not a count"),
        (junit('<testcase name="a"><testcase name="b"/></testcase>'), "inside a test"),
        ('<?xml version="1.0" encoding="no-such"?><testsuite/>', "is not"),
        (BOMB, "has a document type or entities"),
        (EXTERNAL, "has a document type or entities"),
        ("<!DOCTYPE testsuite><testsuite><testcase name='a'/></testsuite>", "has a document type"),
    ],
)
def test_a_junit_file_that_proves_nothing_never_passes(tmp_path: Path, content: str, reason: str) -> None:
    report = read(tmp_path, "junit", content)

    assert report.outcome is RunOutcome.ERROR
    assert reason in report.reason
    assert "\n" not in report.reason


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    "name",
    [
        "empty_java-junit.xml",
        "empty_jest-junit-empty-testsuite.xml",
        "empty_phpunit-empty.xml",
        "junit-with-message.xml",
    ],
)
def test_a_real_junit_file_that_proves_nothing_never_passes(name: str) -> None:
    assert read_report(JUNIT / name, "junit").outcome is RunOutcome.ERROR


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        ("{", "is not JSON"),
        (sarif(RESULT)[:-1], "is not JSON"),
        ("[]", "not an object"),
        ("{}", "is not SARIF 2.1.0"),
        ('{"version": "1.0.0", "runs": []}', "is not SARIF 2.1.0"),
        ('{"version": "2.1.0"}', "without a run"),
        ('{"version": "2.1.0", "runs": {}}', "without a run"),
        ('{"version": "2.1.0", "runs": [7]}', "does not name its tool"),
        ('{"version": "2.1.0", "runs": [{"results": []}]}', "does not name its tool"),
        (sarif(results=None), "has no list of results"),
        (sarif(results={}), "has no list of results"),
        (sarif(results=[3]), "is not an object"),
        (sarif({"message": "text"}), "result 1 of run 1: message"),
        (sarif({**RESULT, "level": "fatal"}), "result 1 of run 1: level"),
        (sarif({**RESULT, "suppressions": "all"}), "result 1 of run 1: suppressions"),
        (sarif(invocations=[{"executionSuccessful": False}]), "says that it did not succeed"),
        (sarif(invocations=[{"executionSuccessful": "no"}]), "says that it did not succeed"),
        (
            sarif(invocations=[{"executionSuccessful": True}, {"executionSuccessful": False}]),
            "did not succeed",
        ),
        (sarif(externalPropertyFileReferences={"results": [{}]}), "in another file"),
        (sarif({**RESULT, "ruleIndex": 0}, driver={"rules": [{"no": "id"}]}), "not shaped like one"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_sarif_file_that_proves_nothing_never_passes(tmp_path: Path, content: str, reason: str) -> None:
    report = read(tmp_path, "sarif", content)

    assert report.outcome is RunOutcome.ERROR
    assert reason in report.reason


@pytest.mark.proves("K38")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Catastrophic configuration error.sarif", "Ruleset 'no-such-ruleset.xml' does not exist."),
        ("Catastrophic execution error.sarif", "Out of memory."),
        ("Empty runs.sarif", "without a run"),
        ("No runs.sarif", "without a run"),
        ("Notifications.sarif", "says that it did not succeed"),
        ("One run no results.sarif", "has no list of results"),
    ],
)
def test_a_real_sarif_file_that_proves_nothing_never_passes(name: str, reason: str) -> None:
    report = read_report(SARIF / name, "sarif")

    assert report.outcome is RunOutcome.ERROR
    assert reason in report.reason


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text(junit('<testcase name="a"/>'))
    path.symlink_to(target)


def make_link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def read_within(seconds: float, path: Path, kind: str) -> Report:
    """The report, or a failed test when the reader hangs."""
    found: list[Report] = []
    reader = threading.Thread(target=lambda: found.append(read_report(path, kind)), daemon=True)
    reader.start()
    reader.join(seconds)
    assert found, f"the reader of {path} hangs"
    return found[0]


@pytest.mark.proves("K38")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "is missing; the command did not write it"),
        (make_pipe, "is a pipe, not a regular file"),
        (Path.mkdir, "is a directory, not a regular file"),
        (make_link, "is a symbolic link, not a regular file"),
        (make_link_to_a_pipe, "is a symbolic link, not a regular file"),
        (make_socket, "is a socket, not a regular file"),
        (make_link_to_a_device, "is a symbolic link, not a regular file"),
    ],
)
def test_only_a_regular_file_is_read(kind: str, make: Callable[[Path], None], reason: str) -> None:
    # A socket's path may have 107 bytes, which a test's own directory can exceed.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "report"
        make(path)

        report = read_within(10, path, kind)

    assert report.outcome is RunOutcome.ERROR
    assert report.reason == f"the {kind} report report {reason}"


def test_a_device_is_not_read() -> None:
    assert read_within(10, Path("/dev/zero"), "junit").reason.endswith("zero is a device, not a regular file")


def test_an_impossible_path_is_an_error() -> None:
    assert read_report(Path("a\0b"), "junit").outcome is RunOutcome.ERROR
    assert read_report(Path("x" * 5000), "junit").outcome is RunOutcome.ERROR


@pytest.mark.proves("K41")
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_of_100_megabytes_is_one_sentence_and_costs_no_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    tracemalloc.start()

    report = read_report(path, kind)

    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.outcome is RunOutcome.ERROR
    assert report.reason == f"the {kind} report large has 104857600 bytes, the limit is 67108864"
    assert peak_bytes < 1024 * 1024


def test_a_file_that_grows_while_it_is_read_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text(junit('<testcase name="a"/>'))
    size = path.stat().st_size

    assert read_report(path, "junit", limit_bytes=size).outcome is RunOutcome.PASSED
    assert (
        f"has {size} bytes, the limit is {size - 1}"
        in read_report(path, "junit", limit_bytes=size - 1).reason
    )


def test_an_unknown_kind_of_report_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown kind of report 'tap'; known are junit, sarif, coverage"):
        read_report(tmp_path / "x", "tap")


def read_content(kind: str, content: bytes) -> Report:
    with tempfile.TemporaryDirectory() as directory:
        return read(Path(directory), kind, content)


@pytest.mark.proves("K38")
@settings(deadline=None)
@given(content=st.binary(), kind=st.sampled_from(KINDS))
def test_arbitrary_bytes_never_raise_and_never_pass(content: bytes, kind: str) -> None:
    report = read_content(kind, content)

    assert report.outcome is RunOutcome.ERROR
    assert report.reason


@pytest.mark.proves("K38")
@settings(deadline=None)
@given(data=st.data())
def test_a_truncated_report_never_passes(data: st.DataObject) -> None:
    kind, content = data.draw(
        st.sampled_from(
            [
                (
                    "junit",
                    (JUNIT / "external_jest_jest-react-component-test-results.xml").read_bytes().rstrip(),
                ),
                ("sarif", (SARIF / "automation-details.sarif").read_bytes().rstrip()),
                ("jest", (OTHER_LANGUAGES / "jest-30-passing.json").read_bytes().rstrip()),
                ("eslint", (OTHER_LANGUAGES / "eslint-10-passing.json").read_bytes().rstrip()),
                ("coverage", b'{"totals": {"percent_covered": 91.5, "num_statements": 10}}'),
            ]
        )
    )
    length = data.draw(st.integers(0, len(content) - 1))

    assert read_content(kind, content).outcome is RunOutcome.PASSED
    assert read_content(kind, content[:length]).outcome is RunOutcome.ERROR


SARIF_WORDS = (
    *("version", "runs", "tool", "driver", "extensions", "rules", "results", "invocations", "ruleId"),
    *("ruleIndex", "rule", "index", "toolComponent", "level", "kind", "message", "text", "id", "arguments"),
    *("locations", "physicalLocation", "artifactLocation", "uri", "uriBaseId", "region", "startLine"),
    *("originalUriBaseIds", "artifacts", "location", "suppressions", "status", "fixes", "description"),
    *("properties", "security-severity", "totals", "percent_covered", "files", "missing_lines"),
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("error"),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(SARIF_WORDS), parts, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.heavy
@settings(deadline=None)
@given(part=st.dictionaries(st.sampled_from(SARIF_WORDS), ANY_JSON, max_size=5), place=st.integers(0, 3))
def test_a_wrong_shape_anywhere_in_a_log_never_raises(part: dict[str, Any], place: int) -> None:
    run: dict[str, Any] = {"tool": {"driver": {"name": "x"}}, "results": [{**RESULT, **part}]}
    tool: dict[str, Any] = {"driver": {"name": "x"} | part} | part
    shapes: list[object] = [
        part,
        {"version": "2.1.0", "runs": [run | part]},
        {"version": "2.1.0", "runs": [run]},
        {"version": "2.1.0", "runs": [{"tool": tool, "results": [RESULT]}]},
    ]

    report = read_content("sarif", json.dumps(shapes[place]).encode())

    assert report.reason
    assert (report.outcome is RunOutcome.FAILED) == bool(report.failures)


@pytest.mark.heavy
@settings(deadline=None)
@given(part=ANY_JSON, gate=st.none() | st.floats(0, 100))
def test_a_wrong_shape_anywhere_in_coverage_never_raises(part: object, gate: float | None) -> None:
    content = json.dumps({"totals": {"percent_covered": 50}, "files": part})

    with tempfile.TemporaryDirectory() as directory:
        report = read(Path(directory), "coverage", content, gate=gate)

    assert report.outcome is not RunOutcome.ERROR or report.reason


@pytest.mark.proves("K38")
@settings(deadline=None)
@given(
    ends=st.lists(st.sampled_from(["", "<failure/>", "<error/>", "<skipped/>"]), max_size=5),
    tests=st.integers(0, 6),
    failures=st.integers(0, 3),
    errors=st.integers(0, 3),
)
def test_only_a_complete_report_with_passes_and_no_failures_passes(
    ends: list[str], tests: int, failures: int, errors: int
) -> None:
    listed = "".join(f'<testcase name="t{n}">{end}</testcase>' for n, end in enumerate(ends))
    declared = f'tests="{tests}" failures="{failures}" errors="{errors}"'

    report = read_content("junit", junit(listed, declared=declared).encode())

    sound = "" in ends and set(ends) <= {"", "<skipped/>"}
    whole = tests <= len(ends) and failures == errors == 0
    assert (report.outcome is RunOutcome.PASSED) == (sound and whole)
