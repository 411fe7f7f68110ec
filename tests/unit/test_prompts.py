"""Requests to agents of a cycle and of handoffs: complete for a run, and no answer by themselves."""

from datetime import UTC, datetime

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.errors import UsageError
from fixloop.outside.offer import request_for
from fixloop.profiles.cycle.phase_result import InvalidResult, read_result
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.cycle.prompt import prompt as cycle_prompt
from fixloop.profiles.cycle.records import TaskStatus
from fixloop.profiles.cycle.workers import KEYS, WORKERS
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.prompt import prompt as handoff_prompt
from fixloop.profiles.handoff.returns import (
    InvalidReturn,
    Returned,
    check_return,
    read_questions,
    read_return,
)
from fixloop.profiles.handoff.routes import AGENTS
from fixloop.protocol.ticket import Ticket
from tests.fixtures.cycle_stage import CycleStage
from tests.fixtures.handoff_stage import HandoffStage
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import FLOW, SCRIPTS, carry_out


@pytest.mark.proves("C12", "C13", "C18", "C33")
@pytest.mark.parametrize("key", KEYS)
def test_an_agent_of_a_cycle_is_told_what_it_may_write_and_how_to_report(key: str) -> None:
    state = CycleStage(description="Let users log in").state

    text = cycle_prompt(state, key, [])

    assert "Let users log in" in text
    for name in (*WORKERS[key].documents, *WORKERS[key].logs):
        assert f"`.workflow/.cycle/{state.cycle_id}.progress/{key}/{name}`" in text
    assert f"> - phase: {key}" in text
    assert "success, failed, partial" in text


@pytest.mark.proves("C43", "K17", "C54")
def test_development_learns_which_tasks_are_done_parallel_or_waiting() -> None:
    stage = CycleStage()
    stage.work("ra")
    plan = (
        PlanTask(id="TASK-001", description="tables", status=TaskStatus.COMPLETED),
        PlanTask(id="TASK-002", description="the form", depends_on=("TASK-001",)),
        PlanTask(id="TASK-003", description="the mail"),
        PlanTask(id="TASK-004", depends_on=("TASK-002", "TASK-003")),
    )
    stage.work("ep", "success", "plan.json", tasks=plan)

    text = cycle_prompt(stage.state, "cd", [])

    assert (
        "- done: TASK-001\n- now: TASK-002 the form\n- now: TASK-003 the mail\n"
        "- later: TASK-004, after TASK-002, TASK-003\n" in text
    )
    assert "beside each other" in text
    assert "> - tasks_completed:" in text
    assert "## The tasks" not in cycle_prompt(stage.state, "vas", [])


@pytest.mark.proves("C35")
@pytest.mark.parametrize("key", KEYS)
def test_an_agent_that_prints_its_request_has_not_reported(key: str) -> None:
    with pytest.raises(InvalidResult, match="no PHASE_RESULT"):
        read_result(cycle_prompt(CycleStage().state, key, []))


@pytest.mark.proves("C21", "C32", "C53", "U13")
def test_feedback_is_in_the_request_with_its_actions_and_never_a_file_s_content() -> None:
    stage = CycleStage()
    for key, document in (("ra", "requirements.md"), ("ep", "plan.json"), ("cd", "implementation.md")):
        stage.work(key, "success", f"{document}=secret words")
    stage.work("vas", "failed", "validation.md", issues="[login fails]")

    text = cycle_prompt(stage.state, "cd", [m for m in stage.messages if m.recipient == "cd"])

    assert "## FEEDBACK FROM VAS" in text
    assert "1. login fails" in text
    assert "secret words" not in text


@pytest.mark.proves("D32", "D41", "D54")
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_gets_its_handoff_and_printing_the_instructions_returns_nothing(name: str) -> None:
    stage = HandoffStage()
    stage.start("planner")
    stage.result("planner", status="completed", spec="specs/a.md")

    text = handoff_prompt(stage.state, name)

    assert ("task_handoff" in text) == (name == "builder")
    assert not list(read_questions(text))
    with pytest.raises(InvalidReturn):
        check_return(name, Returned(**read_return(text)))


@pytest.mark.proves("D22")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Add user auth!", "specs/20260122-add-user-auth.md"),
        ("登录", "specs/20260122-issue-9.md"),
        ("x " * 50, f"specs/20260122-{'x-' * 29}x.md"),
    ],
)
def test_a_planner_is_given_the_place_of_its_specification(name: str, path: str) -> None:
    stage = HandoffStage(name=name)

    assert f"as the file `{path}`." in handoff_prompt(stage.state, "planner")


@pytest.mark.proves("D37", "D43")
def test_an_answer_and_the_last_failure_are_in_the_next_request() -> None:
    stage = HandoffStage()
    stage.start("planner")
    stage.fail("planner")

    assert "out of memory" in handoff_prompt(stage.state, "planner")
    stage.start("planner")
    stage.escalate("planner", "a", "b")
    stage.answer("b")
    assert "## The answer to your question\n\nb\n" in handoff_prompt(stage.state, "planner")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(lambda: datetime(2026, 1, 22, tzinfo=UTC))


def played(store: MemoryStore, *, until: str) -> bytes:
    """The snapshot of a cycle with a ticket to do."""
    script, hinted = SCRIPTS["cycle"], list[Ticket]()
    engine = ProfileEngine(store, script.profile, lambda ticket, state: hinted.append(ticket))
    engine.start(script.begin)
    for text in script.documents:
        store.put_artifact(FLOW, text.encode())
    results = script.results()
    while not hinted[0].id.endswith(until):
        hinted.extend(carry_out(engine, script, hinted.pop(0), results) or ())
    return _snapshot(store)


@pytest.mark.proves("C39", "C40", "C49")
def test_a_request_has_the_messages_to_the_agent_since_its_last_report(store: MemoryStore) -> None:
    snapshot = played(store, until="cd.2.1")

    text = request_for(store, snapshot, "cd")
    assert text.count("## CLARIFICATION FROM CD") == 1
    assert "## READY FROM EP" not in text


def test_a_request_of_handoffs_is_read_from_the_store_too(store: MemoryStore) -> None:
    ProfileEngine(store, HANDOFF).start(SCRIPTS["handoff"].begin)

    assert request_for(store, _snapshot(store), "planner").startswith("# planner: Add user auth\n")


def test_a_validation_loop_asks_no_agent_by_name(store: MemoryStore) -> None:
    with pytest.raises(UsageError, match="a validation workflow asks no ra"):
        request_for(store, b'{"workflow":"x"}', "ra")


def _snapshot(store: MemoryStore) -> bytes:
    found = store.read(FLOW)
    assert found is not None
    return found.snapshot
