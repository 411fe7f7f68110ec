"""S18-S22: conflicts, refusals, races and escalations of a cycle."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fixloop.errors import UsageError
from fixloop.profiles.cycle.events import AnswerInvalid, InputRequested, StateWritten, Written
from fixloop.profiles.cycle.files import named_files, state_document
from fixloop.profiles.cycle.messages import Escalation, input_text
from fixloop.profiles.cycle.plan import PlanTask, ready_tasks
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.workers import DEFAULT_GRAPH
from fixloop.protocol.agent_events import AgentFailed, DeadlineReached
from fixloop.protocol.event import Event
from tests.fixtures.cycle_stage import CycleStage, reported
from tests.fixtures.feedback_reader import read_feedback

PLAN = tuple(
    PlanTask(id=f"TASK-{number:03}", depends_on=(f"TASK-{number - 1:03}",) if number > 1 else ())
    for number in range(1, 8)
)


def developing(**settings: Any) -> CycleStage:
    """A cycle whose development runs."""
    stage = CycleStage("10:00", **settings)
    stage.at("10:10").work("ra", "success", "requirements.md=r1")
    stage.at("10:15").work("ep", "success", "plan.json=p1", tasks=PLAN)
    stage.start("cd")
    return stage


def validating(**settings: Any) -> CycleStage:
    """A cycle whose validation runs."""
    stage = developing(**settings)
    stage.at("10:40").report("cd", "success", "implementation.md=i1")
    stage.start("vas")
    return stage


@pytest.mark.proves("S18", "C52", "C3", "C23")
def test_an_unclear_requirement_goes_to_its_author_and_is_clarified() -> None:
    stage = developing()

    stage.at("10:30").report("cd", "partial", "issues.md=x", issues='["FR-003: OAuth optional?"]')
    stage.work("ra", "success", "requirements.md=r2", decision="Optional", rationale="flexible")
    stage.work("cd", "success", "implementation.md=i1")

    lines = [(m.sender, m.recipient, m.body.kind) for m in stage.messages][-6:]
    assert lines[:4] == [
        ("cd", "orchestrator", "cycle.phase-result"),
        ("orchestrator", "ra", "cycle.input"),
        ("ra", "orchestrator", "cycle.phase-result"),
        ("orchestrator", "cd", "cycle.input"),
    ]
    assert not [m for m in stage.messages if {m.sender, m.recipient} == {"cd", "ra"}]
    clarification = stage.inputs("cd")[-1]
    assert (clarification.file, clarification.version) == ("ra/requirements.md", "1.1.0")
    assert [file.path for file in named_files(stage.state) if "history" in file.path] == [
        f".workflow/.cycle/{stage.state.cycle_id}.progress/ra/history/requirements-v1.0.0.md"
    ]
    (conflict,) = stage.state.conflicts
    assert (conflict.kind, conflict.reporter) == ("unclear-requirement", "cd")
    assert conflict.steps == (
        "cd reported the blocker",
        "the orchestrator extracted it",
        "the orchestrator sent it to ra",
        "ra updated the requirements",
        "ra issued ra/requirements.md v1.1.0",
        "the orchestrator sent the clarification to cd",
        "cd resumed",
    )


@pytest.mark.proves("C52", "C55", "C49")
@pytest.mark.parametrize("documents", [(), ("requirements.md=r1",)], ids=["nothing", "the same text"])
def test_an_answer_that_changes_no_document_resolves_nothing_and_a_person_decides(documents: Any) -> None:
    stage = developing()

    stage.report("cd", "partial", "issues.md=x", issues='["FR-003: OAuth optional?"]')
    stage.work("ra", "success", *documents, summary="nothing to change")

    (blocker,), (conflict,) = stage.state.blockers, stage.state.conflicts
    assert (blocker.status, blocker.resolution, conflict.resolution) == ("open", "", "")
    assert conflict.steps[-1] == "the orchestrator sent it to ra"
    assert stage.state.escalation is not None
    assert "ra answered BLK-001 and changed nothing" in stage.state.escalation.detail
    assert not stage.agent("cd").asked

    stage.decide("manual-fix", "make OAuth optional")
    stage.start("cd")

    assert stage.state.conflicts[0].resolution == "make OAuth optional"
    assert stage.state.conflicts[0].steps[-1] == "cd resumed"


@pytest.mark.proves("C54", "C52", "C55")
def test_a_record_names_the_documents_that_an_answer_changed_and_no_other() -> None:
    stage = CycleStage()
    stage.work("ra", "success", "requirements.md=r1", "edge-cases.md=e1")
    stage.work("ep", "success", "exploration.md=x1", "plan.json=p1", tasks=PLAN)
    stage.start("cd")

    stage.report("cd", "partial", issues='["FR-003: offline?", "plan: TASK-008 is missing"]')
    stage.work("ra", "success", "edge-cases.md=e2")
    stage.work("ep", "success", "plan.json=p2", tasks=(*PLAN, PlanTask(id="TASK-008")))

    unclear, mismatch = stage.state.conflicts
    assert "ra issued ra/edge-cases.md v1.1.0" in unclear.steps
    assert "ep updated ep/plan.json v1.1.0" in mismatch.steps
    sent = [body for body in stage.inputs("cd") if body.input is InputKind.CLARIFICATION]
    assert [body.file for body in sent] == ["ra/edge-cases.md", "ep/plan.json"]


@pytest.mark.proves("C53", "C55")
def test_a_validation_that_wrote_nothing_issued_nothing() -> None:
    stage = validating()

    stage.report("vas", "failed", "validation.md=v1", "test-results.json=t1", issues="[login fails]")
    stage.work("cd", "success", "implementation.md=i2")
    stage.work("vas", "failed", issues="[logout fails]")

    first, second = stage.state.conflicts
    assert first.steps[1] == "vas issued vas/validation.md v1.0.0, vas/test-results.json v1.0.0"
    assert second.steps[:2] == ("vas reported the failures", "the orchestrator extracted them")


@pytest.mark.proves("C55", "C57")
def test_a_blocker_that_only_a_person_can_clear_is_a_recorded_conflict() -> None:
    stage = developing()

    stage.report("cd", "partial", issues='["user: is OAuth to be optional?"]')
    stage.decide("manual-fix", "yes")
    stage.start("cd")

    (conflict,) = stage.state.conflicts
    assert (conflict.kind, conflict.reporter, conflict.resolution) == ("other", "cd", "yes")
    assert conflict.steps == (
        "cd reported it",
        "the orchestrator extracted it",
        "the orchestrator sent the user's guidance to cd",
        "cd resumed",
    )


@pytest.mark.proves("C55")
@pytest.mark.parametrize("decision", ["skip", "abort"])
def test_every_conflict_gets_a_resolution(decision: str) -> None:
    stage = validating(max_iterations=1)

    stage.report("vas", "failed", "validation.md=v1", issues="[login fails]")
    stage.decide(decision)

    (conflict,) = stage.state.conflicts
    assert conflict.resolution == f"open when the cycle ended: {stage.state.outcome}"


@pytest.mark.proves("C53", "C55")
def test_a_test_failure_is_closed_with_all_its_steps_when_the_validation_passes() -> None:
    stage = validating()

    stage.report("vas", "failed", "validation.md=v1", issues="[login fails]")
    stage.work("cd", "success", "implementation.md=i2")
    stage.work("vas", "success", "validation.md=v2")

    (conflict,) = stage.state.conflicts
    assert conflict.steps == (
        "vas reported the failures",
        "vas issued vas/validation.md v1.0.0",
        "the orchestrator extracted them",
        "the orchestrator categorised them",
        "the orchestrator sent them to cd",
        "cd reported them fixed",
        "the orchestrator asked for another validation",
        "vas validated again",
    )
    assert conflict.resolution == f"v{stage.state.version} passed the validation"


@pytest.mark.proves("C47", "C55", "C56")
def test_issues_reported_with_a_success_are_recorded_and_block_no_agent() -> None:
    stage = developing()

    stage.report("cd", "success", "implementation.md=i1", issues='["FR-009 is slow", "minor: a typo"]')

    assert [(each.description, each.status.value) for each in stage.state.blockers] == [
        ("FR-009 is slow", "workaround"),
        ("a typo", "workaround"),
    ]
    assert stage.state.feedback_log[-1].content == "major: FR-009 is slow\nminor: a typo"
    assert [each.resolution for each in stage.state.conflicts] == ["recorded; it blocks nothing"] * 2
    assert stage.state.remaining_issues == ("FR-009 is slow", "a typo")
    assert stage.agent("vas").asked


@pytest.mark.proves("C52")
def test_an_issue_reported_before_may_still_become_a_blocker() -> None:
    stage = validating()
    stage.report("vas", "failed", "validation.md=v1", issues="[login fails]")
    stage.work("cd", "success", "implementation.md=i2", issues='["FR-003: OAuth optional?"]')
    stage.work("vas", "failed", "validation.md=v2", issues="[login fails]")

    stage.work("cd", "partial", issues='["FR-003: OAuth optional?"]')

    assert stage.agent("ra").asked
    assert stage.state.escalation is None


@pytest.mark.proves("C53", "C56", "C55", "C21")
def test_a_test_failure_goes_to_development_and_is_validated_again() -> None:
    stage = validating()

    stage.report("vas", "failed", "validation.md=v1", issues='["login fails", "minor: a typo"]')

    feedback = stage.inputs("cd")[-1]
    assert feedback.actions == ("login fails",)
    assert (feedback.previous_iteration, feedback.current_iteration) == (1, 2)
    assert stage.state.feedback_log[0].content == "blocker: login fails\nminor: a typo"
    assert stage.statuses() == {"ra": "completed", "ep": "completed", "cd": "waiting", "vas": "waiting"}


@pytest.mark.proves("C56", "G23")
def test_an_issue_that_blocks_nothing_is_recorded_and_restarts_no_agent() -> None:
    stage = validating()

    stage.report("vas", "partial", "validation.md=v1", issues='["minor: a typo", "[major] slow start"]')

    assert stage.state.iteration == 1
    assert stage.statuses()["vas"] == "completed"
    assert [(entry.blocking, entry.source) for entry in stage.state.feedback_log] == [(False, "vas")]
    assert stage.inputs("cd")[-1].input is InputKind.READY


@pytest.mark.proves("C50", "U13")
def test_a_success_that_its_own_figures_contradict_is_a_failure() -> None:
    stage = validating()

    stage.report(
        "vas", "success", "validation.md=v1", coverage="71.5%", test_pass_rate="100", critical_issues="0"
    )

    assert stage.state.iteration == 2
    assert stage.inputs("cd")[-1].actions == ("coverage is 71.5 %, below 80 %",)


@pytest.mark.proves("C53", "C61")
def test_a_failure_of_the_requirements_goes_to_their_author_then_development() -> None:
    stage = validating()

    stage.report("vas", "failed", "validation.md=v1", issues='["requirement: FR-002 contradicts FR-005"]')
    asked = [agent.key for agent in stage.state.agents if agent.asked]
    stage.work("ra", "success", "requirements.md=r2")

    assert asked == ["ra"]
    assert [agent.key for agent in stage.state.agents if agent.asked] == ["cd"]


@pytest.mark.proves("S19", "C54", "C43")
def test_a_revised_plan_keeps_what_is_done_and_development_gets_the_rest() -> None:
    stage = developing()
    done = '["TASK-001", "TASK-002"]'

    stage.report("cd", "partial", issues='["plan: TASK-008 is missing"]', tasks_completed=done)
    stage.start("ep")
    revised = (*PLAN, PlanTask(id="TASK-008", depends_on=("TASK-003",)))
    stage.report("ep", "success", "plan.json=p2", tasks=revised, decision="TASK-008 added")

    tasks = {task.id: task.status.value for task in stage.state.plan}
    assert [name for name, status in tasks.items() if status == "completed"] == ["TASK-001", "TASK-002"]
    assert stage.state.document("ep", "plan.json").version == "1.1.0"  # type: ignore[union-attr]
    assert [task.id for task in ready_tasks(stage.state.plan)] == ["TASK-003"]
    assert stage.inputs("cd")[-1].file == "ep/plan.json"
    assert stage.state.conflicts[0].steps[3:] == (
        "ep updated ep/plan.json v1.1.0",
        "ep added tasks or dependencies",
        "the orchestrator sent the updated plan to cd",
    )


@pytest.mark.proves("C67", "C17")
def test_a_search_for_a_task_finds_when_it_was_completed() -> None:
    stage = developing()

    stage.report(
        "cd", "partial", issues='["plan: TASK-008 is missing"]', tasks_completed="[TASK-001, TASK-002]"
    )

    log = "".join(part.text for part in stage.state.logs if (part.agent, part.name) == ("cd", "changes.log"))
    (line,) = [json.loads(line) for line in log.splitlines() if "TASK-001" in line]
    assert (line["action"], line["task"], line["timestamp"][:10]) == ("complete", "TASK-001", "2026-01-22")


@pytest.mark.proves("C26", "C35")
def test_a_refused_answer_leaves_nothing_in_the_timeline() -> None:
    stage = CycleStage(commands={})
    refused = AnswerInvalid(agent="ra", problem="no PHASE_RESULT")

    stage.apply(refused)
    stage.work("ra", "success", "requirements.md=r1")
    stage.work("ep", "success", "plan.json=p1", tasks=PLAN)
    stage.work("cd", "partial", issues='["FR-003: OAuth optional?"]')
    stage.start("ra")
    stage.apply(refused)
    stage.start("ra")

    said = [entry.text for entry in stage.state.timeline if entry.actor == "RA"]
    assert said == ["Requirements started", "done, v1.0.0", "Requirements continues"]


def _refused(stage: CycleStage, event: Event) -> str:
    before = stage.state
    with pytest.raises(UsageError) as refused:
        stage.apply(event)
    assert stage.state == before
    return str(refused.value)


def _feedback(**facts: Any) -> InputRequested:
    given: dict[str, Any] = {
        "recipient": "cd",
        "input": InputKind.FEEDBACK,
        "summary": "two tests fail",
        "actions": ("fix them",),
    }
    return InputRequested(**given | facts)


@pytest.mark.proves("S20", "C22", "K15")
def test_a_second_feedback_to_one_agent_in_one_iteration_is_refused() -> None:
    stage = developing()
    stage.apply(_feedback())

    assert "cd has had its feedback for iteration 1" in _refused(stage, _feedback(summary="and a third"))


@pytest.mark.proves("C20", "C21")
def test_only_the_orchestrator_sends_and_always_with_an_action() -> None:
    stage = developing()

    assert "send_input is the orchestrator's" in _refused(stage, _feedback(sender="vas"))
    assert "at least one action" in _refused(stage, _feedback(actions=()))


@pytest.mark.proves("C61", "C36", "C35", "C18")
@pytest.mark.parametrize(
    ("event", "words"),
    [
        (lambda: reported("cd", plan="mine"), "cd reports plan 'mine', which only ep writes"),
        (lambda: reported("vas", sender="cd"), "cd reports for phase 'vas'"),
        (lambda: reported("cd", "done"), "status 'done' is none of a PHASE_RESULT's"),
        (lambda: reported("cd", "success", "requirements.md"), "none of its documents"),
        (lambda: reported("cd", tasks_completed="[TASK-099]"), "TASK-099, which plan.json does not have"),
    ],
)
def test_a_report_beyond_its_authority_is_refused_by_name(event: Any, words: str) -> None:
    stage = developing()

    with pytest.raises(UsageError, match=words):
        stage.apply(event())


@pytest.mark.proves("C15", "C13")
def test_a_log_whose_earlier_bytes_changed_is_refused() -> None:
    stage = developing()
    log = Written(name="changes.log", digest="d" * 64, intact=False)

    assert "changed earlier lines of changes.log" in _refused(stage, reported("cd", logs=(log,)))


@pytest.mark.proves("C5", "C7")
def test_an_agent_that_writes_the_state_is_refused() -> None:
    stage = developing()

    words = _refused(stage, StateWritten(sender="cd", field="agents.cd.status"))

    assert (
        words
        == "only the orchestrator writes the state of a cycle; cd may read it (it changed agents.cd.status)"
    )


@pytest.mark.proves("C44")
@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (
            {**DEFAULT_GRAPH, "ra": ("vas",)},
            "ra → vas → cd → ep → ra|vas → cd → ep → ra → vas|wait for each other",
        ),
        ({**DEFAULT_GRAPH, "ra": ("ra",)}, "ra → ra"),
        ({**DEFAULT_GRAPH, "ep": ("qa",)}, "ep depends on qa, which is no agent of this cycle"),
        ({"ra": (), "ep": ()}, "has no cd, vas"),
    ],
)
def test_a_graph_that_no_cycle_can_follow_is_refused_at_the_start(graph: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CycleStage(graph=graph)


@pytest.mark.proves("C51")
def test_a_cycle_is_not_completed_before_all_its_agents() -> None:
    stage = validating()

    with pytest.raises(UsageError, match="vas is not completed"):
        stage.finish()


@pytest.mark.proves("S21", "C41", "C42", "C40")
def test_the_snapshot_says_who_is_ready_and_who_can_start() -> None:
    stage = developing()
    agents = state_document(stage.state)["agents"]

    seen = {
        key: (agents[key]["depends_on"], agents[key]["ready"], agents[key]["can_start"]) for key in agents
    }
    assert seen["ep"] == (["ra"], True, True)
    assert seen["cd"] == (["ep"], True, True)
    assert seen["vas"] == (["cd"], False, False)
    assert [(body.input, body.source) for body in stage.inputs("cd")] == [(InputKind.READY, "EP")]


@pytest.mark.proves("C43", "C62", "K17")
def test_two_results_at_one_instant_are_both_applied() -> None:
    graph = {**DEFAULT_GRAPH, "frontend": (), "ep": (), "cd": ("ra", "ep")}
    stage = CycleStage(graph=graph, commands={})
    assert [agent.key for agent in stage.state.agents if agent.asked] == ["ra", "ep", "frontend"]

    stage.report("ra", "success", "requirements.md")
    stage.report("ep", "success", "plan.json")

    assert {key: stage.statuses()[key] for key in ("ra", "ep")} == {"ra": "completed", "ep": "completed"}
    assert stage.agent("cd").asked


@pytest.mark.proves("C57", "G11", "S22")
def test_five_failing_rounds_give_four_feedbacks_and_one_escalation() -> None:
    stage = validating()

    for number in range(1, 6):
        stage.report("vas", "failed", f"validation.md=v{number}", issues=f"[round {number} fails]")
        if number < 5:
            stage.work("cd", "success", f"implementation.md=i{number + 1}")
            stage.start("vas")

    feedbacks = [body for body in stage.inputs("cd") if body.input is InputKind.FEEDBACK]
    escalations = [m.body for m in stage.messages if isinstance(m.body, Escalation)]
    assert len(stage.state.feedback_log) == 5
    assert [body.current_iteration for body in feedbacks] == [2, 3, 4, 5]
    assert [(body.reason, body.remaining_issues) for body in escalations] == [
        ("max_iterations", ("round 5 fails",))
    ]


@pytest.mark.proves("C57", "C58", "C59", "S22")
def test_only_the_blocked_agent_waits_for_a_person() -> None:
    graph = {**DEFAULT_GRAPH, "frontend": ()}
    stage = developing(graph=graph, commands={})
    stage.start("frontend")

    stage.report("cd", "partial", issues='["user: is OAuth to be optional?"]')
    assert stage.statuses()["frontend"] == "running"
    stage.decide("manual-fix", "use OAuth optional")

    assert stage.inputs("cd")[-1].actions == ("use OAuth optional",)
    assert stage.agent("cd").asked
    assert stage.agent("ra").runs == 1
    assert [blocker.resolution for blocker in stage.state.blockers] == ["use OAuth optional"]
    with pytest.raises(UsageError, match="nothing of cycle"):
        stage.decide("skip")


@pytest.mark.proves("C57", "K8")
def test_two_escalations_wait_for_a_person_one_after_the_other() -> None:
    graph = {**DEFAULT_GRAPH, "ep": (), "cd": ("ra", "ep")}
    stage = CycleStage(graph=graph, commands={})

    stage.report("ra", "partial", issues='["user: which users?"]')
    stage.report("ep", "partial", issues='["user: which server?"]')
    stage.decide("manual-fix", "all of them")
    assert [stage.agent(key).asked for key in ("ra", "ep")] == [True, False]
    stage.decide("manual-fix", "the new one")

    escalated = [m.body.detail for m in stage.messages if isinstance(m.body, Escalation)]
    assert escalated == ["ra: user: which users?", "ep: user: which server?"]
    assert stage.agent("ep").asked


@pytest.mark.proves("G15", "K5", "C23")
def test_a_silent_agent_is_asked_once_to_converge_and_then_a_person_decides() -> None:
    stage = developing()

    stage.at("10:45:01").apply(DeadlineReached(name="run/cd", due=stage.moment.clock - 0.5))
    converge = stage.inputs("cd")[-1]
    stage.at("11:00:02").apply(DeadlineReached(name="converge/cd", due=stage.moment.clock - 0.5))

    assert converge.input is InputKind.CONVERGENCE
    assert stage.state.escalation is not None
    assert stage.state.escalation.reason == "timeout"
    assert stage.last.dropped == ("be9c4a11-7-1.cd.1.1",)


@pytest.mark.proves("K5", "G19")
def test_an_agent_that_fails_is_tried_three_times_with_growing_pauses() -> None:
    stage = developing()
    delays = []

    for _ in range(2):
        stage.apply(AgentFailed(agent="cd", reason="exit code 1"))
        delays += [ticket.delay_seconds for ticket in stage.last.steps]
        stage.start("cd")
    stage.apply(AgentFailed(agent="cd", reason="exit code 1"))

    assert delays == [2.0, 4.0]
    assert stage.state.escalation is not None
    assert stage.state.escalation.reason == "retries_exhausted"


@pytest.mark.proves("C35", "G2")
def test_an_answer_without_a_phase_result_is_asked_for_once_more() -> None:
    stage = developing()
    empty = AnswerInvalid(agent="cd", problem="the answer has no PHASE_RESULT")

    stage.apply(empty)
    assert stage.agent("cd").asked
    stage.start("cd")
    stage.apply(empty)

    assert stage.state.escalation is not None
    assert stage.state.escalation.reason == "invalid_response"


@pytest.mark.proves("C32", "C64", "K16")
def test_a_feedback_has_its_six_sections_and_reads_back() -> None:
    stage = validating()
    stage.report("vas", "failed", "validation.md=v1", issues='["login fails"]')
    feedback = stage.inputs("cd")[-1]

    text = input_text(feedback)

    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "## FEEDBACK FROM VAS",
        "## REFERENCED OUTPUT",
        "## REQUIRED ACTION",
        "## SUCCESS CRITERIA",
        "## NEXT STEP",
        "## CONTEXT",
    ]
    assert "Version: 1.1.0" in text
    assert "1 blocking issue found in v1.1.0" in text
    assert read_feedback(text) == feedback


@pytest.mark.proves("K16")
def test_the_seed_s_short_form_is_read_too() -> None:
    short = (
        "## FEEDBACK FROM VALIDATION\n\nTest failures detected: login\n\n## REQUIRED ACTION\n\nFix the following:\n"
        "login\n\n## NEXT STEP\nUpdate implementation.md with fixes, then re-run tests.\n"
        "Output PHASE_RESULT when complete.\n"
    )

    read = read_feedback(short)

    assert (read.source, read.input) == ("VAS", InputKind.FEEDBACK)
    assert read.actions == ("Fix the following:\nlogin",)


@pytest.mark.proves("C57")
def test_two_agents_that_would_wait_for_each_other_escalate_instead() -> None:
    stage = CycleStage(commands={})
    stage.report("ra", "partial", issues='["TASK-001 is missing"]')

    stage.report("ep", "partial", issues='["FR-001: unclear"]')

    opened = stage.state.escalation
    assert opened is not None
    assert (opened.reason, opened.agents) == ("blocker", ("ep",))
    stage.decide("manual-fix", "OAuth is optional")
    assert [agent.key for agent in stage.state.agents if agent.asked] == ["ep"]


@pytest.mark.heavy
@pytest.mark.proves("C62", "C9", "K11")
@given(st.lists(st.tuples(st.sampled_from(("ra", "ep", "cd", "vas")), st.integers(0, 5)), max_size=40))
def test_any_reports_lose_nothing_and_keep_versions_together(moves: list[tuple[str, int]]) -> None:
    stage = CycleStage(commands={})
    archived = 0

    for turn, (key, what) in enumerate(moves):
        issues = (
            '["login fails"]',
            f'["FR-{turn:03}: unclear"]',
            f'["TASK-{turn:03} is missing"]',
            '["user: which?"]',
        )
        status = "success" if what > 3 else "partial"
        facts = {} if what > 3 else {"issues": issues[what]}
        document = {
            "ra": "requirements.md",
            "ep": "plan.json",
            "cd": "implementation.md",
            "vas": "validation.md",
        }[key]
        try:
            stage.report(key, status, f"{document}={turn}", **facts)
        except UsageError:
            continue
        finally:
            if stage.state.escalation is not None and not stage.state.ended:
                stage.decide("manual-fix", f"guidance {turn}")
        state = stage.state
        assert len(state.archive) >= archived
        archived = len(state.archive)
        minors = {version[:2] for version in state.versions}
        assert len(minors) <= 2
        assert (
            state.ended
            or any(agent.asked for agent in state.agents)
            or all(map(state.completed, stage.statuses()))
        )
