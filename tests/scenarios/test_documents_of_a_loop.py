"""What the messages of a played loop look like to their readers: sections, fields, footers."""

import re
from collections.abc import Callable

import pytest

from fixloop.protocol.failures import Severity
from fixloop.protocol.messages import Message
from fixloop.protocol.rendering import render, render_whole
from fixloop.protocol.state import Limits
from tests.fixtures.script import SILENT, BadAnswer, Fix, errs, fails, failure, passes
from tests.fixtures.validation_stage import Stage
from tests.scenarios.documents import field, footer, header, headings, in_order, section

BAD = failure(
    "test_total",
    file="tests/test_total.py",
    line=12,
    error_type="AssertionError",
    message="assert 3 == 4\n  where 3 = total()",
    context="captured: rounding down",
    suggestion="round half up",
    severity=Severity.CRITICAL,
)
MINOR = failure("test_name", severity=Severity.LOW, suggestion="say the name")
ORCHESTRATOR = "Validation Orchestrator (recursive-communicator skill)"


@pytest.fixture(scope="module")
def loop() -> Stage:
    """Two failures, one failure, none; a phase behind it."""
    runs = {"test-runner": [fails(BAD, MINOR), fails(BAD), passes()], "security": []}
    fixes = [Fix(fixes=("named it",), files=("src/name.py",)), Fix(fixes=("rounded",), takes_seconds=60.0)]
    return Stage(runs, answers=fixes, name="Totals").run()


@pytest.fixture(scope="module")
def given_up() -> Stage:
    """Two runs, the limit, and an escalation."""
    return Stage([fails(BAD, MINOR), fails(BAD)], max_iterations=2, name="Totals").run()


def text(stage: Stage, message_id: str) -> str:
    return render(stage.message(message_id))


def of_kind(stage: Stage, kind: str) -> str:
    return render(stage.said(kind)[-1])


AGENT, ENGINE, SPECIALIST = (
    "@feature-implementer-main",
    "@validation-orchestrator",
    "@test-runner-specialist",
)


def told_by(stage: Stage, message_id: str) -> tuple[str, str, str, str]:
    """Heading, sender, recipient and priority of one message."""
    written = text(stage, message_id)
    fields = header(written)
    assert fields["Message ID"] == message_id
    return written.splitlines()[0], fields["From"], fields["To"], fields["Priority"]


@pytest.mark.proves("A23", "A27", "A31", "A35")
def test_the_main_agent_s_messages_have_sender_recipient_and_priority(loop: Stage, given_up: Stage) -> None:
    report = told_by(Stage([fails("a"), passes()]).run(), "VFR-101-test-runner-1")

    assert report == ("## Validation Failure Report", ENGINE, AGENT, "High")
    assert told_by(loop, "FIXREQ-101-2") == ("## Fix Request", ENGINE, AGENT, "High")
    assert told_by(loop, "FIXDONE-101-2") == ("## Fix Completion", AGENT, ENGINE, "High")
    assert told_by(loop, "REVAL-101-test-runner-3") == (
        "## Re-validation Trigger",
        ENGINE,
        SPECIALIST,
        "High",
    )


@pytest.mark.proves("A38", "A42", "A44", "G3")
def test_results_and_endings_have_sender_recipient_and_priority(loop: Stage, given_up: Stage) -> None:
    detected = told_by(loop, "DETECT-101-test-runner-1")
    escalation = told_by(given_up, "ESC-101-test-runner-20260302T090000Z")

    assert detected == ("## Validation Failure Detected", SPECIALIST, ENGINE, "High")
    result = told_by(loop, "REVALRES-101-test-runner-3")
    assert result == ("## Re-validation Result", SPECIALIST, ENGINE, "High")
    assert told_by(loop, "SUCCESS-101-test-runner-3") == ("## Validation Success", ENGINE, AGENT, "Medium")
    assert escalation == ("## Escalation: Unresolvable Issue", ENGINE, "User", "Critical")


@pytest.mark.proves("B5", "G3")
def test_a_detection_says_what_the_communicator_is_to_do() -> None:
    stage = Stage([fails(BAD, MINOR, coverage="73.2% (target: ≥80%)"), passes()]).run()

    detected = text(stage, "DETECT-101-test-runner-1")
    assert field(detected, "Specialist") == "test-runner-specialist"
    assert field(detected, "Phase") == "Test Execution"
    assert field(detected, "Issue") == "2 failures"
    assert "- test_total - AssertionError\n- test_name - AssertionError\n" in detected
    assert field(detected, "Coverage") == "73.2% (target: ≥80%)"
    assert field(detected, "Action Required") == "Activate recursive-communicator skill"


@pytest.mark.proves("A74", "A75", "A91")
def test_an_error_says_what_happened_what_was_tried_and_what_is_next() -> None:
    stage = Stage([errs("no pytest", stack_trace="line 1\nline 2"), errs("no pytest")]).run()

    error = of_kind(stage, "error-notification")
    told = header(error)
    assert error.startswith("## Error Notification\n")
    assert re.fullmatch(r"ERR-101-specialist-failure-\d{8}T\d{6}Z", told["Error ID"])
    assert told["Error Type"] == "Specialist Failure"
    assert told["From"] == ENGINE
    assert headings(error) == ["Error Details", "Recovery Actions Attempted", "Current Status"]
    details = section(error, "Error Details")
    assert "no pytest" in details
    assert "run 1" in field(details, "Context")
    assert field(details, "Iteration") == "1 / 5"
    tried = re.findall(r"^(\d)\. ", section(error, "Recovery Actions Attempted"), re.MULTILINE)
    assert tried == ["1"]
    status = section(error, "Current Status")
    assert (field(status, "Recovered"), field(status, "Next Action")) == (
        "No",
        "Escalate to main orchestrator",
    )
    assert footer(error)["Sent by"] == ORCHESTRATOR


@pytest.mark.proves("A24", "A26", "B25")
def test_a_failure_report_has_its_sections_and_is_signed_by_the_orchestrator(loop: Stage) -> None:
    report = text(loop, "VFR-101-test-runner-1")

    sections = ["Failure Summary", "Detailed Failures", "Suggested Fixes", "Required Actions"]
    assert in_order([*sections, "Re-validation Plan"], headings(report))
    assert field(report, "Actions Required")
    assert footer(report) == {"Sent by": ORCHESTRATOR, "Awaiting": "Main Agent Fix Completion"}


@pytest.mark.proves("B19", "B20")
def test_a_failure_report_begins_with_what_it_is_about(loop: Stage) -> None:
    report = text(loop, "VFR-101-test-runner-2")

    told = header(report)
    assert told["Report ID"] == "VFR-101-test-runner-2"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", told["Generated"])
    assert told["Issue"] == "#101 - Totals"
    assert told["Specialist"] == "@test-runner-specialist"
    assert (told["Phase"], told["Iteration"]) == ("Test Execution", "2 / 5")
    summary = section(report, "Failure Summary")
    assert "FAILED" in field(summary, "Status")
    assert field(summary, "Failure Type") == "Test Failures"
    assert field(summary, "Severity") == "Critical"
    assert "Security Assessment" in field(summary, "Impact")


@pytest.mark.proves("B6", "A25", "B9")
def test_a_failure_report_has_place_error_and_context_of_each_failure_unchanged(loop: Stage) -> None:
    details = section(text(loop, "VFR-101-test-runner-1"), "Detailed Failures")
    first, second = re.split(r"^#### Failure \d+: ", details, flags=re.MULTILINE)[1:]

    assert first.startswith("test_total\n")
    assert (field(first, "File"), field(first, "Line")) == ("tests/test_total.py", "12")
    assert field(first, "Error Type") == "AssertionError"
    assert "assert 3 == 4\n    where 3 = total()" in first
    assert "captured: rounding down" in first
    assert (field(second, "File"), field(second, "Line")) == ("tests/test_test_name.py", "1")
    assert "test_name broke" in second


@pytest.mark.proves("B7", "B22", "B8")
def test_a_failure_report_has_a_suggested_fix_and_a_priority_for_each_failure(loop: Stage) -> None:
    report = text(loop, "VFR-101-test-runner-1")
    fixes = re.split(r"^#### Fix for Failure \d+$", section(report, "Suggested Fixes"), flags=re.MULTILINE)[
        1:
    ]

    assert [field(fix, "Recommendation") for fix in fixes] == ["round half up", "say the name"]
    assert [field(fix, "Priority") for fix in fixes] == ["Critical", "Low"]
    assert all(field(fix, "Approach") for fix in fixes)
    assert field(report, "Critical Failures") == "1"


@pytest.mark.proves("B23")
def test_a_failure_report_asks_for_five_steps_and_says_until_when(loop: Stage) -> None:
    actions = section(text(loop, "VFR-101-test-runner-1"), "Required Actions")

    steps = re.findall(r"^(\d)\. (\w+)", actions, re.MULTILINE)
    words = ["Review", "Implement", "Verify", "Signal", "Await"]
    assert steps == [(str(number), word) for number, word in enumerate(words, 1)]
    assert "@feature-implementer-main" in actions
    assert "30 minutes" in field(actions, "Expected Timeline")
    assert "user" in field(actions, "Escalation")


@pytest.mark.proves("B24")
def test_a_failure_report_says_what_follows_the_fix(loop: Stage) -> None:
    plan = section(text(loop, "VFR-101-test-runner-2"), "Re-validation Plan")

    steps = re.findall(r"^\d\. (.+)$", plan, re.MULTILINE)
    assert len(steps) == 5
    assert "re-invoke @test-runner-specialist" in steps[0]
    assert "re-run" in steps[1]
    assert "Security Assessment" in steps[2]
    assert "Iteration 3 / 5" in steps[3]
    assert "user" in steps[4]


@pytest.mark.proves("A28", "A30")
def test_a_fix_request_has_its_sections_and_awaits_the_completion(loop: Stage) -> None:
    request = text(loop, "FIXREQ-101-1")

    sections = ["Request Summary", "Failures to Fix", "Suggested Approach", "Expected Outcome"]
    assert headings(request) == sections
    assert "feature #101" in section(request, "Request Summary")
    numbered = re.findall(r"^(\d+)\. (\S+)", section(request, "Failures to Fix"), re.MULTILINE)
    assert numbered == [("1", "test_total"), ("2", "test_name")]
    assert footer(request)["Awaiting"] == "Fix completion signal"


@pytest.mark.proves("B10")
def test_a_fix_request_counts_down_what_is_left(given_up: Stage) -> None:
    stage = Stage([fails("a", "b", "c"), fails("a", "b"), fails("a"), passes()], max_iterations=4).run()

    left = [field(render(message), "Remaining Iterations") for message in stage.said("fix-request")]
    assert left == ["3", "2", "1"]
    items = section(render(stage.said("fix-request")[1]), "Failures to Fix")
    assert re.findall(r"^\d+\. (\S+)", items, re.MULTILINE) == ["a", "b"]


@pytest.mark.proves("A29", "B59")
def test_a_request_has_places_errors_suggestions_and_an_expected_outcome(loop: Stage) -> None:
    asked = render_whole(loop.message("VFR-101-test-runner-1"))
    trigger = text(loop, "REVAL-101-test-runner-2")

    report, _, request = asked.partition("## Fix Request")
    for told in ("AssertionError", "round half up"):
        assert told in report
        assert told not in request
    assert "tests/test_total.py" in request
    assert "All tests pass" in section(asked, "Expected Outcome")
    assert "test_total (tests/test_total.py:12) - AssertionError" in section(trigger, "Previous Failures")
    assert "PASS" in section(trigger, "Expected Outcome")


@pytest.mark.proves("A32", "A33", "A34")
def test_a_fix_completion_has_its_sections_and_is_signed_by_the_main_agent(loop: Stage) -> None:
    completion = text(loop, "FIXDONE-101-1")

    sections = ["Completion Summary", "Fixes Applied", "Files Modified", "Ready for Re-validation"]
    assert headings(completion) == sections
    assert "#101" in section(completion, "Completion Summary")
    assert field(completion, "Iteration") == "1 / 5"
    assert section(completion, "Fixes Applied").strip() == "1. named it"
    assert section(completion, "Files Modified").strip() == "- src/name.py"
    assert section(completion, "Ready for Re-validation").strip() == "Yes - please re-run test-runner."
    assert footer(completion) == {"Sent by": "Feature Implementer Main Agent"}


@pytest.mark.proves("A37", "B36", "B37")
def test_a_trigger_asks_the_specialist_to_check_again_and_says_why(loop: Stage) -> None:
    trigger = text(loop, "REVAL-101-test-runner-3")

    sections = [
        "Re-validation Request",
        "Iteration",
        "Previous Failures",
        "Fixes Applied",
        "Expected Outcome",
    ]
    assert headings(trigger) == sections
    assert section(trigger, "Iteration").strip() == "Current: 3 / Max: 5"
    request = section(trigger, "Re-validation Request")
    assert field(request, "Previous Status") == "Failed"
    assert field(request, "Current Status") == "Re-checking"
    assert field(request, "Status") == "Re-validation in Progress"
    asks = "@test-runner-specialist re-check Test Execution for feature #101"
    assert field(request, "Re-invocation") == asks
    assert "test_total" in section(trigger, "Previous Failures")
    assert section(trigger, "Fixes Applied").strip() == "- rounded"


@pytest.mark.proves("A38", "A39", "A40", "A41")
def test_a_result_says_what_is_left_and_what_is_next(loop: Stage) -> None:
    failed, passed = text(loop, "REVALRES-101-test-runner-2"), text(loop, "REVALRES-101-test-runner-3")

    assert failed.startswith("## Re-validation Result\n")
    ends = (header(failed)["From"], header(failed)["To"], header(failed)["Priority"])
    assert ends == ("@test-runner-specialist", "@validation-orchestrator", "High")
    assert headings(failed) == ["Result Summary", "Details", "Failure Details", "Next Action"]
    assert "1 failure remains" in section(failed, "Details")
    assert len(re.findall(r"^\d+\. ", section(failed, "Failure Details"), re.MULTILINE)) == 1
    assert "iteration 3/5" in section(failed, "Next Action")
    assert headings(passed) == ["Result Summary", "Details", "Next Action"]
    assert "All previous failures resolved" in section(passed, "Details")
    assert "Proceed to next phase: Security Assessment" in section(passed, "Next Action")


@pytest.mark.proves("A43", "B38")
def test_a_success_reports_the_iterations_and_the_next_phase_begins(loop: Stage) -> None:
    success = text(loop, "SUCCESS-101-test-runner-3")

    assert headings(success) == ["Success Summary", "Final Status", "Next Phase"]
    assert "Test Execution completed successfully after 3 iterations" in section(success, "Success Summary")
    final = section(success, "Final Status")
    assert "All failures resolved" in final
    assert "Quality gates passed" in final
    assert "Total time: 00:01:00" in final
    assert "Security Assessment" in section(success, "Next Phase")
    after = loop.messages[loop.ids.index("SUCCESS-101-test-runner-3") + 1]
    assert after.specialist == "security"


@pytest.mark.proves("A45", "A48", "B52")
def test_an_escalation_has_its_sections_and_awaits_a_person(given_up: Stage) -> None:
    report = of_kind(given_up, "escalation")

    sections = ["Escalation Summary", "Persistent Failures", "Iteration History", "Recommended Actions"]
    assert headings(report) == sections
    assert footer(report) == {"Sent by": ORCHESTRATOR, "Awaiting": "User Decision"}
    assert field(report, "Escalated To") == "User"
    assert field(report, "Awaiting Decision") == "Option 1 / Option 2 / Option 3 / Option 4"
    assert field(report, "Validation Workflow") == "PAUSED"


@pytest.mark.proves("B52", "K27")
def test_an_error_s_escalation_goes_to_the_main_orchestrator() -> None:
    report = of_kind(Stage([errs(), errs()]).run(), "escalation")

    assert header(report)["To"] == "@feature-implementer-main"
    assert field(report, "Escalated To") == "Main Orchestrator"


@pytest.mark.proves("B47", "B48", "A46")
def test_an_escalation_begins_with_reason_iterations_and_time() -> None:
    slow = [Fix(takes_seconds=125.0)]
    report = of_kind(Stage([fails("a", "b"), fails("a")], answers=slow, max_iterations=2).run(), "escalation")

    told = header(report)
    assert told["Escalation ID"] == told["Message ID"]
    assert re.fullmatch(r"ESC-101-test-runner-\d{8}T\d{6}Z", told["Escalation ID"])
    assert told["Escalation Reason"] == "Max Iterations Exceeded"
    assert told["Phase"] == "Test Execution"
    summary = section(report, "Escalation Summary")
    assert "UNRESOLVABLE (Requires User Intervention)" in field(summary, "Status")
    assert field(summary, "Iterations") == "2 (all failed)"
    assert field(summary, "Total Time") == "00:02:05"
    assert field(summary, "Persistent Failures") == "1"


@pytest.mark.proves("B49", "B50")
def test_an_escalation_lists_each_run_and_each_persistent_failure(given_up: Stage) -> None:
    report = of_kind(given_up, "escalation")

    rows = re.findall(r"^\| (\d+) \| (\d+) \| (.+?) \| (\w+) \|$", report, re.MULTILINE)
    assert rows == [("1", "2", "mended it", "FAIL"), ("2", "1", "none (limit reached)", "FAIL")]
    assert field(report, "Pattern Analysis")
    persistent = section(report, "Persistent Failures")
    assert "#### Failure 1: test_total" in persistent
    assert (field(persistent, "File"), field(persistent, "Line")) == ("tests/test_total.py", "12")
    assert "assert 3 == 4" in field(persistent, "Error")
    assert field(persistent, "Iterations Failed") == "1, 2"
    assert "Iteration 1: mended it" in persistent
    assert field(persistent, "Why Unresolved")


@pytest.mark.proves("B51", "A47", "B63")
def test_an_escalation_offers_four_options_each_with_steps_and_a_risk(given_up: Stage) -> None:
    actions = section(of_kind(given_up, "escalation"), "Recommended Actions")

    options = re.split(r"^\*\*Option (?=\d)", actions, flags=re.MULTILINE)[1:]
    assert [option[0] for option in options] == ["1", "2", "3", "4"]
    for option, word in zip(options, ("manual-fix", "skip", "abort", "extend"), strict=True):
        lines = [line for line in option.splitlines() if line.startswith("- ")]
        assert len([line for line in lines if line.startswith("- Risk: ")]) == 1
        assert len(lines) >= 3
        assert f"fixloop decide 101 {word}" in option
    assert "failed but proceeding" in options[1]


@pytest.mark.proves("B64", "A94")
def test_an_escalation_has_context_history_and_analysis(given_up: Stage) -> None:
    body = given_up.escalation

    assert (body.feature, body.phase, body.iterations) == ("Totals", "Test Execution", 2)
    assert [row.iteration for row in body.history] == [1, 2]
    assert "2 → 1" in body.pattern
    assert body.persistent


def late() -> Stage:
    return Stage([fails("a")], answers=[SILENT]).run().advance(2101.0)


@pytest.mark.proves("A60", "A59")
def test_a_reminder_says_what_is_late_and_what_will_happen() -> None:
    reminder = of_kind(late(), "timeout-reminder")

    told = header(reminder)
    assert (told["To"], told["Elapsed"], told["Timeout"]) == ("@feature-implementer-main", "30:01", "30:00")
    said = section(reminder, "Reminder")
    assert "main-agent-fix" in said
    assert "30:01" in said
    assert field(said, "Current Status") == "AWAITING_FIX"
    assert field(said, "Action Required") == "Complete operation or signal issue"
    assert "within 5 minutes" in field(said, "Escalation")
    assert footer(reminder)["Sent by"] == ORCHESTRATOR


@pytest.mark.proves("B32")
def test_a_timeout_offers_to_abort_to_fix_by_hand_and_to_give_more_time() -> None:
    actions = section(of_kind(late(), "escalation"), "Recommended Actions")

    for word in ("abort", "manual-fix", "extend --minutes 30"):
        assert f"`fixloop decide 101 {word}`" in actions


EVERYTHING: tuple[Callable[[], Stage], ...] = (
    late,
    lambda: Stage([errs(), fails("a"), passes()]).run(),
    lambda: Stage([errs(), errs()]).run(),
    lambda: Stage([fails("a"), passes()], answers=[BadAnswer(), Fix()]).run(),
    lambda: Stage([fails(BAD, MINOR), fails(BAD)], max_iterations=2).run(),
    lambda: Stage([passes()]).run(),
)


def all_said() -> list[Message]:
    staged = [message for make in EVERYTHING for message in make().messages]
    return [*staged, *(message.attached for message in staged if message.attached is not None)]


@pytest.mark.proves("A17")
def test_every_message_has_one_of_four_priorities() -> None:
    found = {header(render(message))["Priority"] for message in all_said()}

    assert found <= {"Critical", "High", "Medium", "Low"}
    assert {"Critical", "High", "Medium"} <= found


@pytest.mark.proves("A18", "K3")
def test_every_id_is_its_type_the_issue_and_an_iteration_or_a_time() -> None:
    pattern = r"[A-Z]+-101(-[a-z]+(-[a-z]+)*)?-(\d+|\d{8}T\d{6}Z(-\d+)?)"
    ids = {message.message_id for message in all_said()}

    assert {i for i in ids if not re.fullmatch(pattern, i)} == set()
    kinds = (
        "DETECT",
        "VFR",
        "FIXREQ",
        "FIXDONE",
        "REVAL",
        "REVALRES",
        "SUCCESS",
        "ESC",
        "TIMEOUT",
        "ERR",
        "PVN",
    )
    assert {i.split("-")[0] for i in ids} == set(kinds)


ROLES = {
    "failure-report": ("Failure Summary", "Detailed Failures", "Required Actions", "Re-validation Plan"),
    "fix-request": ("Request Summary", "Failures to Fix", "Suggested Approach", "Expected Outcome"),
    "fix-completion": ("Completion Summary", "Fixes Applied", "Files Modified", "Ready for Re-validation"),
    "revalidation-trigger": (
        "Re-validation Request",
        "Previous Failures",
        "Fixes Applied",
        "Expected Outcome",
    ),
    "revalidation-result": ("Result Summary", "Details", "Next Action"),
    "success": ("Success Summary", "Final Status", "Next Phase"),
    "escalation": ("Escalation Summary", "Persistent Failures", "Iteration History", "Recommended Actions"),
}
"""Summary, details, actions and expected response, as each type names them; a result's and a success's next
step is both action and response."""


@pytest.mark.proves("A19", "A15")
def test_every_body_has_its_roles_as_sections_between_rules() -> None:
    said = {str(message.body.kind): render(message) for message in all_said()}

    assert set(ROLES) <= set(said)
    for kind, roles in ROLES.items():
        top, *middle, bottom = said[kind].split("\n---\n")
        assert top.startswith("## ")
        assert list(header(top))[:5] == ["Message ID", "From", "To", "Timestamp", "Priority"]
        assert in_order(list(roles), headings("\n".join(middle)))
        assert not headings(top + bottom)


@pytest.mark.proves("K29", "A60")
def test_a_reminder_names_the_limit_that_was_set() -> None:
    stage = Stage([fails("a")], answers=[SILENT], limits=Limits(fix_seconds=60.0)).run().advance(61.0)

    assert header(of_kind(stage, "timeout-reminder"))["Timeout"] == "01:00"
