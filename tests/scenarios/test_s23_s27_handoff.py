"""S23-S27: the seed's example of handoffs, errors, locks, questions and routes."""

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any, get_args
from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from fixloop.errors import UsageError
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import (
    HandoffAccepted,
    HandoffRejected,
    HandoffSent,
    Heartbeat,
    LockExtended,
    LockReleased,
    StateWritten,
)
from fixloop.profiles.handoff.files import named_files, state_document
from fixloop.profiles.handoff.records import (
    Escalations,
    EventName,
    EventRecord,
    Message,
    measured,
    started_at,
)
from fixloop.profiles.handoff.returns import InvalidReturn, read_return
from fixloop.profiles.handoff.routes import check_route
from fixloop.profiles.handoff.shared_state import wait_seconds
from fixloop.protocol.agent_events import DeadlineReached
from fixloop.protocol.event import Event
from tests.fixtures.handoff_stage import SPEC, HandoffStage

AUTH = "src/auth.ts"


def the_seeds_example() -> HandoffStage:
    """ "Add user auth": planner, builder, reviewer finds two issues, fixer, reviewer approves."""
    stage = HandoffStage().at(1)
    stage.start("planner")
    stage.at(5).result("planner", status="completed", spec=SPEC)
    stage.start("builder")
    stage.at(20).result("builder", status="completed", commit="abc123", files_changed=[AUTH])
    stage.start("reviewer")
    stage.at(25).result("reviewer", status="needs_fixes", issues=2)
    stage.start("fixer")
    stage.at(30).result("fixer", status="fixes_applied", commits=["def456"])
    stage.start("reviewer")
    stage.at(33).result("reviewer", status="approved")
    return stage


def _refused(stage: HandoffStage, event: Event) -> str:
    before = stage.state
    with pytest.raises(UsageError) as refused:
        stage.apply(event)
    assert stage.state == before
    return str(refused.value)


@pytest.mark.proves("S23", "D53", "D6", "D7")
def test_the_seed_s_example_passes_its_four_handoffs_in_order() -> None:
    stage = the_seeds_example()

    handoffs = stage.routes("task_handoff", "review_request", "fix_request", "rereview_request")
    assert handoffs == [
        ("task_handoff", "planner", "builder"),
        ("review_request", "builder", "reviewer"),
        ("fix_request", "reviewer", "fixer"),
        ("rereview_request", "fixer", "reviewer"),
    ]
    assert (stage.state.status, stage.state.outcome, stage.state.commit) == ("completed", "success", "abc123")
    results = [m.payload["status"] for m in stage.messages if m.type.value == "completion"]
    assert results == ["completed", "completed", "needs_fixes", "fixes_applied", "approved"]


@pytest.mark.proves("D48", "D47", "D50", "D51")
def test_the_example_leaves_its_events_and_metrics_follow_from_them() -> None:
    stage = the_seeds_example()

    assert stage.events() == {
        "agent_started": 5,
        "agent_completed": 5,
        "handoff_created": 4,
        "handoff_accepted": 4,
    }
    metrics = measured(stage.state.events)
    assert (metrics.handoffs, metrics.fix_iterations, metrics.escalated) == (4, 1, False)
    assert metrics.seconds_by_agent == {"planner": 240, "builder": 900, "reviewer": 480, "fixer": 300}
    assert (
        *("agent_started", "agent_completed", "handoff_created", "handoff_accepted"),
        *("error_occurred", "escalation_triggered"),
    ) == get_args(EventName)


@pytest.mark.proves("D51", "D50")
def test_the_stored_metrics_follow_from_the_file_of_events_alone() -> None:
    stage = the_seeds_example()
    calm, file = HANDOFF.fields(stage.state), _events_file(stage)
    asking = HandoffStage().plan()
    asking.start("builder")
    asking.escalate("builder")

    assert measured(file) == measured(stage.state.events)
    assert (calm["escalated"], HANDOFF.fields(asking.state)["escalated"]) == ("no", "yes")
    assert [measured(_events_file(each)).escalated for each in (stage, asking)] == [False, True]
    assert started_at(file, "reviewer") == stage.began + timedelta(minutes=30)


def _events_file(stage: HandoffStage) -> list[EventRecord]:
    """`.claude/events.ndjson`, read by its documented fields."""
    text = next(file.text for file in named_files(stage.state) if file.path.endswith(".ndjson"))
    told = [json.loads(line) for line in text.splitlines()]
    return [EventRecord(**each, **each["context"]) for each in told]


@pytest.mark.proves("D52")
@pytest.mark.parametrize(
    ("workflows", "escalated", "rate"), [(3, 1, 1 / 3), (4, 4, 1.0), (2, 0, 0.0), (0, 0, 0.0)]
)
def test_the_escalation_rate_is_escalated_workflows_of_all_that_were_started(
    workflows: int, escalated: int, rate: float
) -> None:
    assert Escalations(workflows, escalated).rate == rate


@pytest.mark.proves("D3", "D8", "D9")
def test_the_iteration_is_1_until_the_re_review() -> None:
    stage = the_seeds_example()

    iterations = [(m.type.value, m.context.iteration) for m in stage.messages if m.type.is_handoff]
    assert iterations == [
        ("task_handoff", 1),
        ("review_request", 1),
        ("fix_request", 1),
        ("rereview_request", 2),
    ]
    assert state_document(stage.state)["iteration"] == 2


@pytest.mark.proves("D14", "D22")
def test_ids_in_the_shared_state_and_in_file_names_are_prefixed_uuids() -> None:
    stage = the_seeds_example()

    document = state_document(stage.state)
    last = document["last_handoff"]
    names = [file.path.rpartition("/")[2] for file in named_files(stage.state) if "/handoffs/" in file.path]
    told = [document["current_workflow"]["id"], last, *(name.removesuffix(".json") for name in names)]

    assert last == f"handoff-{stage.state.messages[-1].message_id}"
    assert document["current_workflow"]["spec"] == SPEC
    assert [each.partition("-")[0] for each in told] == ["workflow", *["handoff"] * 5]
    assert {UUID(each.partition("-")[2]).version for each in told} == {4}
    assert all(str(UUID(each.partition("-")[2])) == each.partition("-")[2] for each in told)
    assert len(set(told)) == 5


@pytest.mark.proves("D14", "D15", "D20", "D21")
def test_every_handoff_ends_as_one_file_among_the_completed() -> None:
    stage = the_seeds_example()

    files = {file.path: file.text for file in named_files(stage.state)}
    handoffs = [path for path in files if "/handoffs/" in path]
    assert len(handoffs) == 4
    assert all(path.startswith(".claude/handoffs/completed/handoff-") for path in handoffs)
    assert all(json.loads(files[path])["status"] == "completed" for path in handoffs)
    state = json.loads(files[".claude/state.json"])
    assert {name: agent["status"] for name, agent in state["agents"].items()} == {
        "planner": "completed",
        "builder": "completed",
        "reviewer": "completed",
        "fixer": "completed",
    }


@pytest.mark.proves("D21", "D23", "D32", "D33")
def test_at_most_one_agent_is_active_and_those_that_never_ran_have_no_last_active() -> None:
    stage = HandoffStage()
    stage.start("planner")

    document = state_document(stage.state)

    assert document["current_agent"] == "planner"
    assert [name for name, agent in document["agents"].items() if agent["status"] == "active"] == ["planner"]
    assert "last_active" not in document["agents"]["fixer"]


@pytest.mark.proves("D35", "D10", "D55")
def test_an_agent_passes_on_then_completes_then_reports() -> None:
    stage = HandoffStage()
    stage.start("planner")

    stage.result("planner", status="completed", spec=SPEC)

    assert [(said.message.type.value) for said in stage.last.messages] == ["task_handoff", "completion"]
    assert stage.asked() == ["builder"]
    assert [event.event for event in stage.state.events] == [
        "agent_started",
        "handoff_created",
        "agent_completed",
    ]


@pytest.mark.proves("D1", "D2", "D4", "D5")
def test_a_message_has_the_seed_s_envelope_and_another_is_refused() -> None:
    stage = HandoffStage().plan()
    document = json.loads(next(file.text for file in named_files(stage.state) if "pending" in file.path))

    assert list(document) == [
        "schema_version",
        "message_id",
        "timestamp",
        "from",
        "to",
        "type",
        "priority",
        "payload",
        "context",
        "status",
    ]
    assert UUID(document["message_id"]).version == 4
    assert document["timestamp"] == "2026-01-22T00:00:00Z"
    for name, wrong in {
        "message_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "type": "chat",
        "schema_version": "2.0.0",
        "priority": "urgent",
    }.items():
        with pytest.raises(ValidationError):
            Message.model_validate(document | {name: wrong})


@pytest.mark.proves("S24", "D37", "D38", "D39")
def test_a_builder_that_fails_twice_succeeds_at_the_third_attempt() -> None:
    stage = HandoffStage().plan()
    stage.start("builder")
    delays = []

    for _ in range(2):
        stage.fail("builder")
        delays += [ticket.delay_seconds for ticket in stage.last.steps]
        stage.start("builder")
    stage.result("builder", status="completed", commit="abc123")

    assert delays == [2.0, 4.0]
    assert (stage.events()["error_occurred"], stage.events()["escalation_triggered"]) == (2, 0)
    assert [event.agent for event in stage.state.events if event.event == "agent_started"] == [
        "planner",
        "builder",
    ]


@pytest.mark.proves("D40", "D36", "D38", "K5")
@pytest.mark.parametrize(
    ("fatal", "executions", "reason"), [(False, 3, "retries_exhausted"), (True, 1, "fatal_error")]
)
def test_exhausted_retries_and_fatal_errors_escalate(fatal: bool, executions: int, reason: str) -> None:
    stage = HandoffStage().plan()

    for _ in range(executions):
        stage.start("builder")
        stage.fail("builder", fatal=fatal)

    assert [question.reason for question in stage.state.questions] == [reason]
    assert stage.events()["escalation_triggered"] == 1
    assert stage.asked() == []
    assert [m.status.value for m in stage.state.messages] == ["accepted"]


@pytest.mark.proves("K20", "D36")
def test_after_a_decision_the_agent_continues_with_the_handoff_it_had() -> None:
    stage = HandoffStage().plan()
    stage.start("builder")
    stage.fail("builder", fatal=True)

    stage.decide("extend", text="more memory now")
    stage.work("builder", status="completed", commit="abc123")

    assert stage.events()["handoff_accepted"] == 1
    assert stage.asked() == ["reviewer"]


@pytest.mark.proves("D24", "D25", "D26", "D30")
def test_a_lock_is_granted_once_and_others_wait_until_it_expires() -> None:
    stage = HandoffStage()

    assert stage.lock("builder", AUTH) == "granted"
    assert stage.lock("builder", AUTH) == "granted"
    held = stage.state.locks[AUTH]
    assert stage.at(10).lock("fixer", AUTH) == "pending"
    assert stage.state.locks[AUTH] == held
    assert [wait_seconds(attempt) for attempt in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert state_document(stage.state)["locks"][AUTH] == {
        "agent": "builder",
        "acquired": "2026-01-22T00:00:00Z",
        "expires": "2026-01-22T00:30:00Z",
    }


@pytest.mark.proves("D31", "K10")
@pytest.mark.parametrize("order", list(permutations(("planner", "builder", "reviewer", "fixer"))))
def test_the_first_of_simultaneous_requests_gets_a_free_resource(order: tuple[str, ...]) -> None:
    stage = HandoffStage()

    answers = [stage.lock(name, AUTH) for name in order]

    assert answers == ["granted", "pending", "pending", "pending"]
    assert stage.state.locks[AUTH].agent == order[0]


@pytest.mark.proves("S25", "D27", "D28", "D29")
def test_an_expired_lock_is_taken_over_visibly_and_its_late_release_is_lost() -> None:
    stage = HandoffStage()
    stage.lock("builder", AUTH)
    first = stage.state.locks[AUTH].token

    assert stage.at(30, 1).lock("fixer", AUTH) == "forced"
    assert [(t.before, t.after) for t in stage.state.takeovers] == [("builder", "fixer")]
    assert stage.at(31).unlock("builder", AUTH, first) == "lost"
    assert stage.state.locks[AUTH].agent == "fixer"
    assert stage.unlock("fixer", AUTH) == "released"
    assert stage.state.locks == {}


@pytest.mark.proves("D27", "D34")
def test_a_non_owner_releases_no_lock_and_a_heartbeat_extends_none() -> None:
    stage = HandoffStage()
    stage.start("planner")
    stage.lock("planner", AUTH)
    expires = stage.state.locks[AUTH].expires
    stage.at(5)

    assert "it is planner's" in _refused(stage, _release("fixer"))
    stage.apply(Heartbeat(sender="planner"))
    assert stage.state.locks[AUTH].expires == expires
    assert stage.state.agent("planner").last_active == stage.now
    assert stage.apply(LockExtended(sender="planner", resource=AUTH)).answer == "extended"
    assert stage.state.locks[AUTH].expires > expires


def _release(name: str) -> Event:
    return LockReleased(sender=name, resource=AUTH)


@pytest.mark.proves("S26", "D42", "D43")
def test_a_blocking_question_pauses_the_workflow_until_one_of_its_options_is_chosen() -> None:
    stage = HandoffStage().plan()
    stage.start("builder")

    stage.escalate("builder", "JWT", "Session", "OAuth")
    escalation = stage.messages[-1]
    assert (stage.state.status, stage.asked(), escalation.recipient) == ("paused", [], "orchestrator")
    assert escalation.payload["options"] == ["JWT", "Session", "OAuth"]
    with pytest.raises(UsageError, match="'Basic' is none of the options"):
        stage.answer("Basic")
    stage.answer("OAuth")

    assert (stage.state.status, stage.state.agent("builder").answer) == ("running", "OAuth")
    assert stage.asked() == ["builder"]


@pytest.mark.proves("D41", "D42", "D11")
def test_a_question_that_does_not_block_lets_the_workflow_continue() -> None:
    stage = HandoffStage().plan()
    stage.start("builder")

    stage.escalate("builder", blocking=False)
    stage.result("builder", status="completed", commit="abc123")

    assert (stage.state.status, stage.asked()) == ("running", ["reviewer"])
    assert stage.answer("take JWT").state.questions == ()


@pytest.mark.proves("D12", "D13")
@pytest.mark.parametrize(
    ("kind", "sender", "recipient"),
    [
        ("fix_request", "builder", "fixer"),
        ("completion", "builder", "planner"),
        ("escalation", "orchestrator", "builder"),
        ("hello", "planner", "builder"),
    ],
)
def test_a_handoff_on_no_route_is_refused(kind: str, sender: str, recipient: str) -> None:
    with pytest.raises(UsageError, match=r"is on no route|is no type of message"):
        check_route(kind, sender, recipient)


@pytest.mark.proves("D12", "D55")
def test_a_working_agent_passes_on_only_along_a_route() -> None:
    stage = HandoffStage().plan()
    stage.start("builder")

    wrong = HandoffSent(sender="builder", to="fixer", type="fix_request")
    assert "it goes from reviewer to fixer" in _refused(stage, wrong)
    stage.apply(
        HandoffSent(sender="builder", to="reviewer", type="review_request", payload={"commit": "abc"})
    )
    stage.result("builder", status="completed", commit="abc")

    assert len(stage.routes("review_request")) == 1


@pytest.mark.proves("D56", "D54")
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"status": "ok"}, "reviewer returned status 'ok'; it returns needs_fixes or approved"),
        ({"status": "needs_fixes"}, "without an issue"),
        ({"status": "approved", "issues": 1}, "approved with 1 issues"),
    ],
)
def test_a_result_that_an_agent_cannot_have_is_refused(facts: dict[str, Any], words: str) -> None:
    stage = HandoffStage().plan().build()
    stage.start("reviewer")
    before = stage.state

    with pytest.raises(InvalidReturn, match=words):
        stage.result("reviewer", **facts)
    assert stage.state == before


@pytest.mark.proves("S27", "D17", "D18", "D16")
def test_a_handoff_is_accepted_once_by_its_addressee_only() -> None:
    stage = HandoffStage(commands={}).plan()
    (message,) = stage.state.messages

    assert "is for builder; planner cannot" in _refused(stage, _accept("planner", message))
    stage.apply(_accept("builder", message))
    assert "is accepted already" in _refused(stage, _accept("builder", message))
    assert stage.events()["handoff_accepted"] == 1


def _accept(name: str, message: Message) -> Event:
    return HandoffAccepted(sender=name, message_id=message.message_id)


@pytest.mark.proves("G9", "D16")
def test_a_rejected_handoff_is_filed_as_completed_with_its_reason() -> None:
    stage = HandoffStage(commands={}).plan()
    (message,) = stage.state.messages

    stage.apply(HandoffRejected(sender="builder", message_id=message.message_id, reason="no such framework"))

    (file,) = [file for file in named_files(stage.state) if "/handoffs/" in file.path]
    assert "/completed/" in file.path
    assert json.loads(file.text)["status"] == "rejected"
    assert json.loads(file.text)["reason"] == "no such framework"
    assert stage.state.status == "paused"


@pytest.mark.proves("D50", "G11")
def test_five_reviews_with_issues_escalate_to_a_person_at_the_fifth() -> None:
    stage = HandoffStage().plan().build()

    for round_ in range(1, 6):
        stage.work("reviewer", status="needs_fixes", issues=[f"ISS-{round_:03}"])
        if round_ < 5:
            stage.work("fixer", status="fixes_applied")

    assert len(stage.routes("fix_request")) == 4
    assert [question.reason for question in stage.state.questions] == ["max_iterations"]
    assert stage.state.remaining_issues == ("ISS-005",)
    stage.decide("extend", iterations=1)
    assert stage.asked() == ["fixer"]


@pytest.mark.proves("D26", "D30", "K10")
def test_a_request_for_a_held_lock_commits_nothing() -> None:
    stage = HandoffStage()
    stage.lock("builder", AUTH)
    before = stage.state

    assert [stage.lock(name, AUTH) for name in ("builder", "fixer")] == ["granted", "pending"]
    assert not stage.last.commits
    assert stage.state.with_(last_at=before.last_at) == before


@pytest.mark.proves("D19", "D45", "K10")
def test_the_last_write_to_an_uncritical_field_of_a_locked_state_wins() -> None:
    stage = HandoffStage()
    note: dict[str, Any] = {"field": "notes.auth", "value": "JWT"}

    assert "without the lock of state.json" in _refused(stage, StateWritten(sender="builder", **note))
    stage.lock("builder", "state.json")
    stage.apply(StateWritten(sender="builder", **note))
    stage.apply(StateWritten(sender="builder", field="notes.auth", value="OAuth"))

    assert state_document(stage.state)["notes.auth"] == "OAuth"
    assert "the last write wins" in stage.last.notes[0]


@pytest.mark.proves("D44", "D46", "G10")
def test_a_write_to_a_critical_field_is_held_for_a_person() -> None:
    stage = HandoffStage()
    stage.lock("builder", "state.json")

    held = stage.apply(StateWritten(sender="builder", field="iteration", value=4))
    assert (held.answer, stage.state.iteration) == ("held", 1)
    stage.answer("drop")

    assert stage.state.iteration == 1
    assert stage.state.held_writes == ()


@pytest.mark.proves("G15")
def test_an_agent_that_exceeds_its_lease_escalates_to_a_person() -> None:
    stage = HandoffStage()
    stage.start("planner")

    due = stage.moment.clock + 1800
    stage.at(30, 1).apply(DeadlineReached(name="run/planner", due=due))

    assert stage.last.dropped == ("be9c4a11-9-1.planner.1.1",)
    assert [question.reason for question in stage.state.questions] == ["timeout"]


@pytest.mark.proves("D54")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Done.\n{"status": "approved"}\n', {"status": "approved"}),
        (
            '{"a": 1}\nReturns: {"status": "completed", "spec": "s.md"} thanks',
            {"status": "completed", "spec": "s.md"},
        ),
        ('{\n  "status": "needs_fixes",\n  "issues": [{"status": "open"}]\n}', None),
    ],
)
def test_the_last_result_an_agent_printed_is_read(text: str, expected: dict[str, Any] | None) -> None:
    assert read_return(text) == (expected or {"status": "needs_fixes", "issues": [{"status": "open"}]})


def test_an_answer_without_a_result_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidReturn, match="the answer has no result"):
        read_return("{" * 5000 + '{"a":' * 5000)


_MOVES: dict[str, Callable[[HandoffStage], object]] = {
    "plan": lambda s: s.plan(),
    "build": lambda s: s.build(),
    "review": lambda s: s.work("reviewer", status="needs_fixes", issues=1),
    "approve": lambda s: s.work("reviewer", status="approved"),
    "fix": lambda s: s.work("fixer", status="fixes_applied"),
    "fail": lambda s: [s.fail(name) for name in s.asked()],
    "die": lambda s: [s.fail(name, fatal=True) for name in s.asked()],
    "ask": lambda s: s.escalate(s.state.current_agent, "yes", "no"),
    "answer": lambda s: s.answer("yes"),
    "extend": lambda s: s.decide("extend", iterations=1),
}


@pytest.mark.proves("D15", "D23", "D36", "D49")
@given(st.lists(st.sampled_from(sorted(_MOVES)), max_size=40))
def test_any_events_lose_no_handoff_and_keep_at_most_one_agent_active(moves: list[str]) -> None:
    stage = HandoffStage()
    known: dict[str, int] = {}
    order = {"pending": 0, "accepted": 1, "completed": 2, "rejected": 2}

    for move in moves:
        try:
            _MOVES[move](stage)
        except UsageError:
            continue
        state = stage.state
        for message in state.messages:
            assert order[message.status.value] >= known.get(message.message_id, 0)
            known[message.message_id] = order[message.status.value]
        assert len(known) == len(state.messages) == stage.events()["handoff_created"]
        assert len([agent for agent in state.agents if agent.status == "active"]) <= 1
        assert state.ended or stage.asked() or state.questions
