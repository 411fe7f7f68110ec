"""Input that is large or made to be slow: it costs a bounded amount of time and memory."""

import sys
import time
import tracemalloc
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixloop.chat.events import ChatRead
from fixloop.machine import terminal_text
from fixloop.protocol import diagnosis, markdown
from fixloop.protocol.answers import LIMIT_LINES
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.failure_report import request_json
from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import short_name
from fixloop.protocol.messages import ErrorNotification, ErrorType, FailureReport, PersistentFailure
from fixloop.protocol.rendering import DELIVERY_CHARACTERS, render, render_delivery
from fixloop.reports import read_report
from fixloop.reports.document import MAX_CONTAINERS
from fixloop.reports.junit import MAX_DEPTH, MAX_ELEMENTS_OF_A_TEST
from fixloop.reports.symptoms import counted
from fixloop.secrets.disguises import HIDDEN
from fixloop.secrets.redaction import Redaction
from tests.fixtures.chat_stage import ARCHITECT, Stage, message
from tests.fixtures.message_samples import ERROR, REPORT
from tests.fixtures.reports.samples import junit, read
from tests.fixtures.script import Fix, fails
from tests.fixtures.validation_stage import Stage as Played
from tests.parsing import parse
from tests.unit.test_answers import violations
from tests.unit.test_chat_decision import refuse, written
from tests.unit.test_diagnosis import escalated
from tests.unit.test_grouping import LONG
from tests.unit.test_rendering import said_with
from tests.unit.test_reports_hostile import BOMB
from tests.unit.test_secrets import LETTERS

pytestmark = pytest.mark.slow


@pytest.mark.proves("A71")
@pytest.mark.parametrize(
    "line",
    [
        "### Files Modified\n",
        "- x\n",
        "> " * 24 + "\n",
        "```\n",
        "Files Modified\n---\n",
        "**Fixes Applied**:\n",
    ],
)
def test_the_error_about_a_hostile_answer_is_short(line: str) -> None:
    found = violations("### Fixes Applied\n" + line * (LIMIT_LINES // 10))

    assert len(found) <= 10
    assert max(map(len, found)) < 300


@pytest.mark.proves("A22")
def test_a_line_of_100_kilobytes_reads_back_unchanged() -> None:
    for text in ("x" * 100_000, " *" * 50_000, "a" + " " * 100_000 + "b", "`~" * 50_000, "\\|" * 50_000):
        body = ErrorNotification(
            error_type=ErrorType.COMMUNICATION,
            context=text,
            error=text,
            stack_trace=f"{text}\n{text}",
            recovery=(text, text),
            recovered=True,
        )
        message = ERROR.model_copy(update={"body": body})

        assert parse(render(message)) == message


@pytest.mark.proves("G14")
def test_a_thousandth_message_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    stage.let(ChatRead(ARCHITECT))
    for number in range(1, 1000):
        stage.put(f"{number:03}-to-engineer.md", message(seq=f"{number:03}"))

    refuse(stage, written(), "has 999 messages, and no more fit")


def test_a_large_history_is_diagnosed_quickly() -> None:
    many = [fails(*(f"t{number}" for number in range(shift, 3000 + shift))) for shift in range(4)]

    report = escalated(*many, max_iterations=4)

    assert len(report.persistent) == diagnosis.SHOWN
    assert isinstance(report.persistent[0], PersistentFailure)


@pytest.mark.proves("K41")
@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        ("junit", BOMB, "entities"),
        ("junit", "<testsuite>" * 200_000, f"more than {MAX_DEPTH} deep"),
        (
            "junit",
            f"<testsuite><testcase>{'<a/>' * 150_000}</testcase></testsuite>",
            f"a test of more than {MAX_ELEMENTS_OF_A_TEST} elements",
        ),
        ("junit", f"<testsuite>{'<a/>' * 150_000}</testsuite>", "lists no tests"),
        ("sarif", '{"runs":' + "[]," * (MAX_CONTAINERS + 1), f"the limit is {MAX_CONTAINERS}"),
    ],
    ids=["entities", "depth", "elements of a test", "elements of a suite", "containers"],
)
def test_a_file_made_to_fill_memory_takes_bounded_memory(
    tmp_path: Path, kind: str, content: str, reason: str
) -> None:
    path = tmp_path / "made"
    path.write_text(content)
    tracemalloc.start()

    report = read_report(path, kind)

    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.outcome is RunOutcome.ERROR
    assert reason in report.reason
    # Twice the file while its pieces are joined, and the elements the parser has read ahead; all of them
    # together would be over 30 MB.
    assert peak_bytes < 2 * len(content) + 20 * 1024 * 1024


def test_a_long_attribute_is_read_in_linear_time(tmp_path: Path) -> None:
    text = "tests/t.py a." * 500_000
    failing = f'<testcase name="x" classname="tests.t"><failure message="{text}">{text}</failure></testcase>'

    (failure,) = read(tmp_path, "junit", junit(failing)).failures

    assert len(failure.message) >= len(text) - 1


@pytest.mark.parametrize(
    ("kind", "start", "piece", "end"),
    [
        (
            "jest",
            '{"numTotalTests": 0, "testResults": [{"name":"","status":"failed","assertionResults":[],"message":"x',
            "\\n",
            'x"}]}',
        ),
        (
            "go-test",
            '{"Action":"output","Package":"p","Output":"x',
            "\\n",
            'x"}\n{"Action":"fail","Package":"p"}',
        ),
        (
            "cargo-test",
            "   Running a (a-01234567)\nrunning 1 test\ntest a ... FAILED\n---- a stdout ----\n",
            "panicked at , ",
            "\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;",
        ),
    ],
    ids=["jest", "go", "cargo"],
)
def test_a_report_made_to_be_slow_is_read_in_seconds(
    tmp_path: Path, kind: str, start: str, piece: str, end: str
) -> None:
    started = time.process_time()

    assert read(tmp_path, kind, start + piece * (300_000 // len(piece)) + end).outcome is RunOutcome.FAILED
    assert time.process_time() - started < 10


@pytest.mark.parametrize("text", ["{} skipped in 1s", "Tests: {} skipped", "Ran {} tests in 1s"])
def test_an_endless_number_is_no_count_of_tests(text: str) -> None:
    started = time.process_time()

    assert counted(text.format("1" * 1_000_000)) is None
    assert time.process_time() - started < 10


def test_xml_of_great_depth_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text("<a>" * 100_000)

    report = read_report(tmp_path / "r.xml", "junit", root=tmp_path)

    assert report.outcome is RunOutcome.ERROR
    assert "root:" not in report.model_dump_json()


def test_a_long_output_is_redacted_in_seconds() -> None:
    redaction = Redaction(["tok-3141592653", "another secret value"])
    line = "tests/unit/test_task.py::test_a PASSED [ 12%] task-sk-PASSWORD eyJ npm_ AKIA 3f2a9c1d7b6e5f4a3b2c1d0e\n"
    text = line * (8 * 1024 * 1024 // len(line)) + "ghp_" + LETTERS[:36]

    started = time.process_time()
    shown = redaction.text(text)

    # Ten times what it takes: the machine may be busy.
    assert time.process_time() - started < 8
    assert shown.endswith(f"\n{HIDDEN}")


def hostile() -> Iterator[str]:
    """Texts on which a careless pattern takes the square of their length, or worse."""
    for piece in (
        "://",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "sk-",
        "sk-a1",
        "SG.",
        "-us1",
    ):
        yield piece * (2_000_000 // len(piece))
    for head in ("://", "sk-", "eyJ", "SECRET", "Bearer ", "xoxb-", "pypi-Ag", "GITHUB_TOKEN="):
        yield head + "a" * 2_000_000


@pytest.mark.parametrize("text", tuple(hostile()), ids=lambda text: text[:12])
def test_no_text_makes_redaction_slow(text: str) -> None:
    started = time.process_time()

    Redaction().text(text)

    assert time.process_time() - started < 10


def test_every_character_that_unicode_calls_control_or_format_is_hidden() -> None:
    signs = (chr(code) for code in range(sys.maxunicode + 1) if chr(code) not in "\n\t")

    seen = [
        f"{ord(sign):04x}"
        for sign in signs
        if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and not terminal_text.HIDDEN.match(sign)
    ]

    assert seen == []


@pytest.mark.proves("K41")
@pytest.mark.parametrize("others", ["x", "`" * 50, "# a\n---\n"])
def test_a_request_has_at_most_ten_thousand_tokens_for_any_failures(others: str) -> None:
    found = [
        Failure(
            name=short_name(f"tests/t.py::test_{n}[{others}]"),
            message=f"E{n}\n{others * 20}\n{LONG}",
            frame=f"a.py:{n % 500}",
            context=LONG,
        )
        for n in range(1, 1000)
    ]
    played = Played([fails(*found), fails(*found)], answers=[Fix()]).run()

    for run in (1, 2):
        report = played.message(f"VFR-101-test-runner-{run}")
        text = render_delivery(report)

        assert len(text) <= DELIVERY_CHARACTERS
        assert len(str(request_json(report))) <= 3 * DELIVERY_CHARACTERS
        assert isinstance(report.body, FailureReport)
        assert report.body.total == 999


def test_a_long_text_is_kept_whole() -> None:
    trace = "\n".join(f"  line {number}" for number in range(5000))
    report = said_with(REPORT, trace)

    assert markdown.fence(trace, 2) in render(report)


def test_a_long_run_of_spaces_is_escaped_in_one_pass() -> None:
    # With a pattern that scans each space again this takes minutes; no clock is needed to notice.
    for text in ("a" + " " * 200_000 + "*", "*" + "\t" * 200_000, "|" + " #" * 100_000):
        assert markdown.unescape(markdown.line(text)) == text
        assert markdown.unescape(markdown.cell(text)) == text
