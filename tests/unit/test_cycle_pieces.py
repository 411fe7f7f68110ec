"""The pieces of a cycle on their own: results, versions, plans, categories, routes."""

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from fixloop.errors import ProtocolError, UsageError
from fixloop.profiles.cycle.blockers import categorised, kind_of
from fixloop.profiles.cycle.messages import check_route
from fixloop.profiles.cycle.phase_result import InvalidResult, read_result
from fixloop.profiles.cycle.plan import PlanTask, check_plan, ready_tasks, revised
from fixloop.profiles.cycle.records import (
    ConflictKind,
    ResultStatus,
    Severity,
    Version,
    archive_name,
    check_together,
    iteration_version,
    next_revision,
    version_of,
)
from fixloop.profiles.cycle.workers import KEYS
from fixloop.protocol.event import ORCHESTRATOR, USER
from tests.fixtures.feedback_reader import key_of

WHOLE = """some chatter

PHASE_RESULT:
- phase: cd
- status: success
- files_written: [implementation.md, issues.md]
- summary: TASK-001 and TASK-002 are done
- tasks_completed:
  - TASK-001
  - TASK-002
- debug_cycles: 2
- issues: []

PHASE_DETAILS:
12 files changed
"""


@pytest.mark.proves("C33", "C34", "G28")
def test_a_complete_phase_result_is_read_with_its_fields_and_details() -> None:
    result = read_result(WHOLE)

    assert (result.phase, result.status) == ("cd", ResultStatus.SUCCESS)
    assert result.files_written == ("implementation.md", "issues.md")
    assert result.listed("tasks_completed") == ("TASK-001", "TASK-002")
    assert (result.field("debug_cycles"), result.issues, result.details) == ("2", (), "12 files changed")


@pytest.mark.proves("C35", "C36")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I am done.", "no PHASE_RESULT"),
        (WHOLE + WHOLE, "2 PHASE_RESULT blocks"),
        (WHOLE.replace("- status: success\n", ""), "has no status"),
        (WHOLE.replace("- status: success", "- status: done"), "status 'done'"),
        (WHOLE.replace("- phase: cd", "- phase: cd\n- phase: vas"), "has phase twice"),
        ("PHASE_RESULT:\n- phase: cd\n" + f"- summary: {'x' * 70_000}\n", "70"),
    ],
)
def test_an_invalid_phase_result_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(InvalidResult, match=words):
        read_result(text)


@given(st.text(max_size=300))
def test_no_answer_causes_another_error_in_the_reader(text: str) -> None:
    for answer in (text, f"PHASE_RESULT:\n{text}", f"PHASE_RESULT:\n- phase: cd\n- status: success\n{text}"):
        with suppress(InvalidResult):
            assert read_result(answer).status in ResultStatus


@pytest.mark.proves("C33")
@pytest.mark.parametrize(
    ("written", "expected"),
    [("[a, b]", ("a", "b")), ('["a, b", "c"]', ("a, b", "c")), ("none", ()), ("[]", ()), ("a", ("a",))],
)
def test_a_list_is_read_in_each_of_its_forms(written: str, expected: tuple[str, ...]) -> None:
    assert read_result(WHOLE.replace("- issues: []", f"- issues: {written}")).issues == expected


@pytest.mark.proves("C16", "C63", "K11")
def test_versions_grow_by_minors_between_iterations_and_by_patches_after_the_first() -> None:
    base = iteration_version(1)
    first = next_revision(base, base)
    second = next_revision(base, first)

    assert list(map(str, (base, first, second))) == ["1.0.0", "1.1.0", "1.1.1"]
    assert str(iteration_version(2, [first, base])) == "1.1.0"
    assert str(iteration_version(2, [second])) == "1.1.1"
    assert archive_name("plan.json", base) == "plan-v1.0.0.json"


@pytest.mark.proves("K11")
@given(st.integers(1, 9), st.integers(0, 6))
def test_a_document_stays_less_than_two_minors_ahead_after_any_revisions(iteration: int, times: int) -> None:
    base = iteration_version(iteration)
    present = base

    for _ in range(times):
        following = next_revision(base, present)
        assert following > present
        present = following

    check_together(base, base)
    check_together(base, present)
    assert version_of(f"v{present}") == present


@pytest.mark.proves("K11")
def test_a_document_too_far_ahead_or_no_version_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1\.2\.0 in an iteration that began at 1\.0\.0"):
        check_together(Version(1, 0, 0), Version(1, 2, 0))
    with pytest.raises(UsageError, match=r"'1\.0' is no version"):
        version_of("1.0")


@pytest.mark.proves("C43", "C54")
def test_tasks_without_a_dependency_between_them_are_ready_together() -> None:
    plan = (
        PlanTask(id="TASK-001"),
        PlanTask(id="TASK-002"),
        PlanTask(id="TASK-003", depends_on=("TASK-001",)),
    )

    assert [task.id for task in ready_tasks(plan)] == ["TASK-001", "TASK-002"]


@pytest.mark.proves("C9", "C44")
@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ((PlanTask(id="TASK-001", depends_on=("TASK-001",)),), "TASK-001 → TASK-001"),
        ((PlanTask(id="TASK-001", depends_on=("TASK-009",)),), "TASK-009, which the plan does not have"),
        ((PlanTask(id="TASK-001"), PlanTask(id="TASK-001")), "TASK-001 twice"),
    ],
)
def test_an_impossible_plan_is_refused(plan: tuple[PlanTask, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_plan(plan)


@pytest.mark.proves("C9")
def test_a_revised_plan_removes_no_task() -> None:
    with pytest.raises(UsageError, match="no TASK-002"):
        revised((PlanTask(id="TASK-001"), PlanTask(id="TASK-002")), (PlanTask(id="TASK-001"),))


@pytest.mark.proves("C56", "G23")
@pytest.mark.parametrize(
    ("issue", "severity", "text", "kind"),
    [
        ("login fails", Severity.BLOCKER, "login fails", ConflictKind.OTHER),
        ("minor: a typo", Severity.MINOR, "a typo", ConflictKind.OTHER),
        ("[major] FR-003: unclear", Severity.MAJOR, "FR-003: unclear", ConflictKind.UNCLEAR_REQUIREMENT),
        (
            "plan: TASK-008 is missing",
            Severity.BLOCKER,
            "plan: TASK-008 is missing",
            ConflictKind.PLAN_MISMATCH,
        ),
        (
            "user: what does FR-001 cost?",
            Severity.BLOCKER,
            "user: what does FR-001 cost?",
            ConflictKind.OTHER,
        ),
        # Not the word: a dotless i is only like one where case is ignored.
        ("m\u0131nor: x", Severity.BLOCKER, "m\u0131nor: x", ConflictKind.OTHER),
    ],
)
def test_an_issue_is_categorised_by_its_words(
    issue: str, severity: str, text: str, kind: ConflictKind
) -> None:
    assert categorised(issue) == (severity, text)
    assert kind_of(text) is kind


@pytest.mark.proves("C3", "C20", "C58", "K26")
def test_every_route_has_the_orchestrator_at_one_end() -> None:
    everybody = (*KEYS, ORCHESTRATOR, USER)
    kinds = ("cycle.input", "cycle.violation", "cycle.phase-result", "cycle.escalation", "cycle.guidance")

    for kind in kinds:
        for sender in everybody:
            for recipient in everybody:
                try:
                    check_route(kind, sender, recipient)
                except ProtocolError:
                    continue
                assert (sender == ORCHESTRATOR) != (recipient == ORCHESTRATOR)
    with pytest.raises(ProtocolError, match="talk to the orchestrator only"):
        check_route("cycle.escalation", "cd", USER)


@pytest.mark.proves("C1", "K16")
def test_agents_are_recognised_by_key_name_and_alias() -> None:
    assert [key_of(name) for name in ("RA", "vas", "VALIDATION", "DEVELOPMENT")] == ["ra", "vas", "vas", "cd"]
    with pytest.raises(UsageError, match="no agent is called 'qa'"):
        key_of("qa")
