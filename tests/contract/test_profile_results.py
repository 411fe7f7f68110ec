"""A worker's result that breaks its contract, or was made on a commit that others have built on."""

from typing import Any

import pytest

from fixloop.engine.engine import ProfileEngine, ProfileHolding
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.returns import Returned
from fixloop.profiles.handoff.state import Limits
from fixloop.protocol.agent_events import MessageStored
from fixloop.protocol.event import Event
from fixloop.store.contract import Store
from tests.fixtures.cycle_stage import COMMANDS, reported
from tests.fixtures.profile_runs import FLOW, SCRIPTS
from tests.fixtures.store_samples import ME

APART = {"ra": (), "docs": (), "ep": ("ra",), "cd": ("ep",), "vas": ("cd",)}


def begun(store: Store, profile: str, **facts: Any) -> ProfileEngine[Any]:
    engine = ProfileEngine(store, SCRIPTS[profile].profile)
    begin: Any = SCRIPTS[profile].begin
    assert engine.start(begin.model_copy(update=facts)).status == "ok"
    return engine


def held(engine: ProfileEngine[Any], ticket: str) -> ProfileHolding[Any]:
    claim = engine.store.claim(f"{FLOW}.{ticket}", ME, f"token {ticket}")
    assert claim.status == "ok"
    assert claim.ticket is not None
    return engine.held(engine.profile, claim.ticket, claim, ME)


def returned(name: str, **facts: Any) -> Event:
    return hnd.AgentReturned(sender=name, result=Returned(**facts))


@pytest.mark.proves("C35", "C61", "G2")
def test_a_report_that_does_not_hold_is_an_invalid_answer_and_is_asked_for_again(store: Store) -> None:
    engine = begun(store, "cycle")
    holding = held(engine, "ra.1.1")

    applied = engine.finish(holding, reported("ra", plan="mine"), holding.moment)

    assert applied.status == "ok"
    assert [ticket.id for ticket in applied.steps] == [f"{FLOW}.ra.2.1"]
    *_, last = store.history(FLOW)
    assert last.body["event"]["kind"] == "answer-invalid"
    assert "which only ep writes" in last.body["event"]["problem"]
    assert store.verify(FLOW) == []


@pytest.mark.proves("D56", "D37", "D40")
def test_a_result_that_breaks_its_contract_is_a_failed_attempt_then_escalates(store: Store) -> None:
    engine = begun(store, "handoff", limits=Limits(attempts=2, base_seconds=0.0))
    for attempt in (1, 2):
        holding = held(engine, f"planner.1.{attempt}")
        applied = engine.finish(holding, returned("planner", status="approved"), holding.moment)
        assert applied.status == "ok"

    state = engine.state(FLOW)
    assert [event.event for event in state.events].count("error_occurred") == 2
    (question,) = state.questions
    assert question.reason == "retries_exhausted"
    assert "it returns completed" in question.details


@pytest.mark.proves("K17", "C43")
def test_the_second_of_two_agents_on_one_commit_rebases_onto_the_first(store: Store) -> None:
    engine = begun(store, "cycle", graph=APART, commands=COMMANDS | {"docs": "d"}, tip="c0")
    first, second = held(engine, "ra.1.1"), held(engine, "docs.1.1")
    engine.finish(first, reported("ra").model_copy(update={"base": "c0", "tip": "c1"}), first.moment)
    event = reported("docs")

    moved = engine.finish(second, event.model_copy(update={"base": "c0", "tip": "c2"}), second.moment)
    done = engine.finish(second, event.model_copy(update={"base": "c1", "tip": "c3"}), second.moment)

    assert (moved.status, done.status) == ("moved", "ok")
    assert engine.state(FLOW).tip == "c3"
    assert "event-refused" not in [entry.body["event"]["kind"] for entry in store.history(FLOW)]


@pytest.mark.proves("C43")
def test_an_agent_that_changed_nothing_need_not_rebase(store: Store) -> None:
    engine = begun(store, "cycle", graph=APART, commands=COMMANDS | {"docs": "d"}, tip="c0")
    first, second = held(engine, "ra.1.1"), held(engine, "docs.1.1")
    engine.finish(first, reported("ra").model_copy(update={"base": "c0", "tip": "c1"}), first.moment)

    same = reported("docs").model_copy(update={"base": "c0", "tip": "c0"})

    assert engine.finish(second, same, second.moment).status == "ok"
    assert engine.state(FLOW).tip == "c1"


@pytest.mark.proves("D41", "D43", "C59")
def test_an_agent_that_asks_a_person_leaves_its_work_and_continues_from_it(store: Store) -> None:
    engine = begun(store, "handoff", tip="c0")
    holding = held(engine, "planner.1.1")
    engine.apply(FLOW, hnd.AgentActivated(agent="planner"), operation="started")
    asks = hnd.AgentEscalated(
        sender="planner", reason="spec_ambiguity", details="?", options=("a", "b"), base="c0", tip="c1"
    )

    assert engine.finish(holding, asks, holding.moment).status == "ok"
    engine.apply(FLOW, hnd.Answered(answer="a"), operation="answer")

    state = engine.state(FLOW)
    assert (state.tip, state.agent("planner").answer) == ("c1", "a")
    found = store.read(FLOW)
    assert found is not None
    assert [kept.ticket.id for kept in found.tickets] == [f"{FLOW}.planner.2.1"]


@pytest.mark.proves("C40", "C2")
def test_an_outside_agent_gets_one_letter_for_each_run_that_is_asked_of_it(store: Store) -> None:
    engine = ProfileEngine(store, SCRIPTS["cycle"].profile)
    begin: Any = SCRIPTS["cycle"].begin

    engine.start(begin.model_copy(update={"commands": {"cd": "c", "vas": "v"}}))
    first = engine.state(FLOW).letters
    engine.apply(FLOW, cyc.AgentStarted(agent="ra"), operation="1")
    engine.apply(FLOW, reported("ra"), operation="2")
    second = engine.state(FLOW).letters

    assert [(letter.agent, letter.kind) for letter in (*first, *second)] == [
        ("ra", "cycle.work"),
        ("ep", "cycle.input"),
    ]
    assert first[0].uid == f"{FLOW}.ra.1.1"
    assert waiting_tickets(store) == [f"{FLOW}.letter.ep.2.1"]
    holding = held(engine, "letter.ep.2.1")
    assert engine.finish(holding, MessageStored(number=2), holding.moment).status == "ok"
    assert (engine.state(FLOW).letters, waiting_tickets(store)) == ((), [])


@pytest.mark.proves("D32", "D6")
def test_an_outside_agent_gets_a_letter_with_its_handoff(store: Store) -> None:
    engine = ProfileEngine(store, SCRIPTS["handoff"].profile)
    begin: Any = SCRIPTS["handoff"].begin

    engine.start(begin.model_copy(update={"commands": {}}))
    first = engine.state(FLOW).letters
    engine.apply(FLOW, returned("planner", status="completed", spec="specs/a.md"), operation="2")
    second = engine.state(FLOW).letters

    assert [(letter.agent, letter.kind) for letter in (*first, *second)] == [
        ("planner", "handoff.work"),
        ("builder", "task_handoff"),
    ]
    assert second[0].uid == engine.state(FLOW).messages[-1].message_id
    assert waiting_tickets(store) == [f"{FLOW}.letter.builder.2.1"]


def waiting_tickets(store: Store) -> list[str]:
    found = store.read(FLOW)
    assert found is not None
    return [kept.ticket.id for kept in found.tickets]
