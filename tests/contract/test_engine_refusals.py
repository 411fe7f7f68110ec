"""How an engine handles events that are late, repeated, simultaneous or from the wrong sender."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from fixloop.engine.engine import Engine, ProfileApplied
from fixloop.engine.replay import audit
from fixloop.errors import RefusedError
from fixloop.protocol import events as ev
from fixloop.protocol.event import NotDue, Unexpected
from fixloop.protocol.messages import MAIN_AGENT, Decision
from fixloop.protocol.specialists import Status, specialist as slot
from fixloop.protocol.state import Completion, Limits, State, WorkflowOutcome
from fixloop.store.contract import Store
from tests.fixtures.holdings import Applied, Holding, hold
from tests.fixtures.script import failure
from tests.fixtures.store_samples import ME, sweep
from tests.fixtures.store_world import World

FLOW = "0a1b2c3d-7-1"
TESTER = slot("test-runner").handle
SHORT = Limits(fix_seconds=1.5, reminder_window_seconds=1.5, iteration_seconds=None)


@pytest.fixture
def engine(store: Store) -> Engine:
    return Engine(store)


def begun(engine: Engine, **more: Any) -> State:
    told = {
        "workflow": FLOW,
        "issue": 7,
        "name": "a feature",
        "specialists": ("test-runner",),
        "tip": "c",
        "tree": "tree-0",
        **more,
    }
    assert engine.start(ev.WorkflowStarted(**told)).status == "ok"
    return engine.state(FLOW)


def held(engine: Engine) -> Holding:
    """The only ticket, claimed."""
    found = engine.store.read(FLOW)
    assert found is not None
    (kept,) = found.tickets
    claim = engine.store.claim(kept.ticket.id, ME, f"token {found.version}")
    assert claim.status == "ok"
    assert claim.ticket is not None
    return hold(claim.ticket, claim, ME)


def finish(engine: Engine, event: ev.Event | None = None) -> Applied:
    """Do the next step: a run fails with one failure unless told otherwise, a report is delivered."""
    holding = held(engine)
    ticket = holding.ticket
    if event is None and ticket.step == "report":
        event = ev.ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
    return engine.finish(holding, event or failed(holding), holding.moment)


def failed(holding: Holding) -> ev.RunFinished:
    ticket = holding.ticket
    return ev.RunFinished.model_validate(
        {
            **ticket.model_dump(include={"step", "specialist", "iteration", "attempt"}),
            "outcome": "failed",
            "tree": holding.state.tree,
            "failures": (failure("a"),),
        }
    )


def waiting(engine: Engine, **more: Any) -> State:
    """The report is sent; the main agent is awaited."""
    begun(engine, **more)
    finish(engine)
    finish(engine)
    return engine.state(FLOW)


def done(iteration: int = 1) -> ev.FixCompleted:
    return ev.FixCompleted(
        specialist="test-runner",
        completion=Completion(iteration=iteration, by="ann", fixes=("x",), files=("a",), tip="c1", tree="t1"),
    )


def refusals(engine: Engine) -> list[str]:
    """The notes of refusals in the history, in order."""
    return [
        note
        for entry in engine.store.history(FLOW)
        if entry.body["event"]["kind"] == "event-refused"
        for note in entry.body["notes"]
    ]


def said(engine: Engine, prefix: str) -> list[str]:
    return [
        message["message_id"]
        for entry in engine.store.history(FLOW)
        for message in entry.body.get("messages", ())
        if message["message_id"].startswith(prefix)
    ]


@pytest.fixture(autouse=True)
def whole_history(engine: Engine) -> Iterator[None]:
    """After every test the history can be replayed."""
    yield
    found = audit(engine.store, FLOW)
    assert found.problems == ()
    assert found.replayed == found.entries


@pytest.mark.proves("A51", "A55")
def test_a_receipt_by_a_specialist_is_refused_and_reported(engine: Engine) -> None:
    before = waiting(engine)
    event = ev.FixAcknowledged(specialist="test-runner", iteration=1, by="x", sender=TESTER)

    with pytest.raises(Unexpected, match="not for"):
        engine.apply(FLOW, event, operation="ack")

    after = engine.state(FLOW)
    assert after == before.model_copy(update={"last_at": after.last_at})
    (told,) = refusals(engine)
    assert told.startswith(f"refused: fix-acknowledged from {TESTER}: fix-acknowledged is not for {TESTER}")


@pytest.mark.proves("A51", "R8")
def test_a_specialist_s_result_for_the_ticket_of_a_fix_is_refused_and_reported(engine: Engine) -> None:
    before = waiting(engine, fixer="command")
    fixing = held(engine)
    passed = ev.RunFinished(
        step="recheck", specialist="test-runner", iteration=1, outcome="passed", tree=fixing.state.tree
    )

    applied = engine.finish(fixing, passed, fixing.moment)

    assert applied.status == "refused"
    assert engine.state(FLOW).active == before.active
    (told,) = refusals(engine)
    assert told.startswith(f"refused: run-finished from {MAIN_AGENT}")
    assert engine.store.renew(fixing.ticket.id, ME, fixing.fence) == "ok"


@pytest.mark.proves("K20", "A69")
def test_a_second_decision_is_refused_in_a_sentence_and_reported_once(engine: Engine) -> None:
    waiting(engine)
    engine.apply(FLOW, ev.BlockerSignalled(by="ann", text="no access"), operation="blocked")
    engine.apply(FLOW, ev.DecisionMade(decision=Decision.EXTEND), operation="first")

    for number in range(3):
        with pytest.raises(RefusedError, match="waits for no decision"):
            engine.apply(FLOW, ev.DecisionMade(decision=Decision.SKIP), operation=f"late {number}")

    assert refusals(engine) == [f"refused: decision-made: workflow {FLOW} waits for no decision"]


@pytest.mark.proves("K20", "A8", "A84")
def test_a_fix_after_an_abort_changes_nothing_and_is_reported(engine: Engine) -> None:
    waiting(engine)
    engine.apply(FLOW, ev.BlockerSignalled(by="ann", text="no access"), operation="blocked")
    engine.apply(FLOW, ev.DecisionMade(decision=Decision.ABORT), operation="abort")
    before = engine.state(FLOW)

    with pytest.raises(Unexpected, match="ended"):
        engine.apply(FLOW, done(), operation="late")

    after = engine.state(FLOW)
    assert after == before.model_copy(update={"last_at": after.last_at})
    assert after.until == before.last_at
    (told,) = refusals(engine)
    assert told.endswith("ended (aborted)")


@pytest.mark.proves("K8", "R5", "R8")
def test_a_result_that_lost_against_a_fix_by_hand_is_reported(engine: Engine) -> None:
    waiting(engine, fixer="command")
    fixing = held(engine)
    engine.apply(FLOW, done(), operation="by hand")

    applied = engine.finish(fixing, done(), fixing.moment)

    assert applied.status == "stale"
    assert len(said(engine, "FIXDONE")) == 1
    (told,) = refusals(engine)
    assert told.startswith(f"refused: fix-completed from {MAIN_AGENT}")


@pytest.mark.proves("K8", "R5", "A53")
def test_a_result_that_lost_against_an_escalation_is_reported(engine: Engine, world: World) -> None:
    begun(engine, limits=Limits(validation_seconds=1.5, reminder_window_seconds=1.5))
    checking = held(engine)
    pass_deadlines(engine, world, 2)
    assert engine.state(FLOW).paused

    applied = engine.finish(checking, failed(checking), checking.moment)

    assert applied.status == "stale"
    assert engine.state(FLOW).active.runs == ()
    (told,) = refusals(engine)
    assert told.startswith(f"refused: run-finished from {TESTER}")


@pytest.mark.proves("K8", "R6", "A64")
def test_a_timer_that_lost_against_a_result_is_reported_once_and_does_nothing(
    engine: Engine, world: World
) -> None:
    waiting(engine, limits=SHORT)
    due = deadline(engine, "main-agent-fix")
    engine.apply(FLOW, done(), operation="done")
    before = engine.state(FLOW)
    let_pass(engine, world)

    for _ in range(2):
        assert engine.reach(FLOW, "main-agent-fix", due).status == "gone"

    assert refusals(engine) == [
        "refused: deadline-reached from @validation-orchestrator: main-agent-fix no longer matters"
    ]
    assert engine.state(FLOW).active == before.active
    assert not said(engine, "TIMEOUT")


@pytest.mark.proves("R6", "A61")
def test_a_deadline_that_fires_early_twice_or_for_an_older_iteration_does_nothing(
    engine: Engine, world: World
) -> None:
    waiting(engine, limits=SHORT)
    due = deadline(engine, "main-agent-fix")

    with pytest.raises(NotDue):
        engine.reach(FLOW, "main-agent-fix", due)
    assert engine.reach(FLOW, "main-agent-fix", due - 1.0).status == "gone"
    assert engine.reach(FLOW, "made-up", 0.0).status == "gone"
    let_pass(engine, world)
    assert engine.reach(FLOW, "main-agent-fix", due).status == "ok"
    assert engine.reach(FLOW, "main-agent-fix", due).status == "gone"

    assert len(said(engine, "TIMEOUT")) == 1
    assert refusals(engine) == []


@pytest.mark.proves("R6", "K6")
def test_an_escalation_timer_of_an_answered_reminder_does_nothing_in_the_next_iteration(
    engine: Engine, world: World
) -> None:
    waiting(engine, limits=SHORT)
    pass_deadlines(engine, world, 1)
    due = deadline(engine, "main-agent-fix.escalation")
    engine.apply(FLOW, done(), operation="done")
    finish(engine)
    finish(engine)
    assert engine.state(FLOW).active.iteration == 2
    let_pass(engine, world)

    assert engine.reach(FLOW, "main-agent-fix.escalation", due).status == "gone"

    assert not engine.state(FLOW).paused


Act = Callable[[], object]


def at_once(*acts: Act) -> list[object]:
    """The results of calls started together; a refusal is a result, too."""
    start = Barrier(len(acts))

    def run(act: Act) -> object:
        start.wait(60)
        try:
            return act()
        except RefusedError as refused:
            return refused

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@pytest.mark.proves("A69", "K8", "R5")
def test_only_one_of_two_simultaneous_conditions_escalates(engine: Engine, world: World) -> None:
    waiting(engine, limits=SHORT)
    pass_deadlines(engine, world, 1)
    due = deadline(engine, "main-agent-fix.escalation")
    let_pass(engine, world)

    at_once(
        lambda: engine.reach(FLOW, "main-agent-fix.escalation", due),
        lambda: engine.reach(FLOW, "main-agent-fix.escalation", due),
        lambda: engine.apply(FLOW, ev.BlockerSignalled(by="ann", text="no access"), operation="blocked"),
    )

    assert len(said(engine, "ESC")) == 1
    assert engine.state(FLOW).paused


@pytest.mark.proves("A69", "K8", "A63")
def test_a_simultaneous_timer_and_answer_have_one_winner(engine: Engine, world: World) -> None:
    waiting(engine, limits=SHORT)
    pass_deadlines(engine, world, 1)
    due = deadline(engine, "main-agent-fix.escalation")
    let_pass(engine, world)

    at_once(
        lambda: engine.reach(FLOW, "main-agent-fix.escalation", due),
        lambda: engine.apply(FLOW, done(), operation="done"),
    )

    state = engine.state(FLOW)
    escalated, triggered = said(engine, "ESC"), said(engine, "REVAL-")
    assert (len(escalated), len(triggered)) in ((1, 0), (0, 1))
    # The loser's fix is kept for the decision, the loser's timer is recorded.
    assert (state.kept is not None) is bool(escalated)


@pytest.mark.proves("K20", "A69", "R5")
def test_only_one_of_many_simultaneous_decisions_counts(engine: Engine) -> None:
    waiting(engine)
    engine.apply(FLOW, ev.BlockerSignalled(by="ann", text="no access"), operation="blocked")

    found = at_once(
        *(
            lambda n=n, decision=decision: engine.apply(
                FLOW, ev.DecisionMade(decision=decision, by=f"person {n}"), operation=f"decision {n}"
            )
            for n, decision in enumerate([Decision.EXTEND, Decision.SKIP, Decision.ABORT, Decision.EXTEND])
        )
    )

    assert sum(isinstance(each, ProfileApplied) and each.status == "ok" for each in found) == 1
    assert sum(isinstance(each, RefusedError) for each in found) == 3
    decided = [e for e in engine.store.history(FLOW) if e.body["event"]["kind"] == "decision-made"]
    assert len(decided) == 1


@pytest.mark.proves("A14", "K21", "R8")
def test_a_pause_holds_unclaimed_tickets_and_keeps_delivered_ones(engine: Engine) -> None:
    begun(engine)
    checking = held(engine)
    engine.apply(FLOW, ev.Paused(by="ann"), operation="pause")

    assert engine.finish(checking, failed(checking), checking.moment).steps == ()
    assert said(engine, "") == []
    continued = engine.apply(FLOW, ev.Continued(by="ann"), operation="continue")

    assert [ticket.step for ticket in continued.steps] == ["report"]
    assert engine.state(FLOW).active.status is Status.FAIL


@pytest.mark.proves("A14", "K34")
def test_the_engine_hints_what_a_pause_had_held_back(store: Store) -> None:
    hinted: list[str] = []
    engine = Engine(store, lambda ticket, state: hinted.append(ticket.step))
    begun(engine)
    engine.apply(FLOW, ev.Paused(by="ann"), operation="pause")
    engine.apply(FLOW, ev.Continued(by="ann"), operation="continue")

    assert hinted == ["validate", "validate"]


@pytest.mark.proves("A14", "R6")
def test_a_deadline_of_a_paused_workflow_is_not_due(engine: Engine, world: World) -> None:
    waiting(engine, limits=SHORT)
    due = deadline(engine, "main-agent-fix")
    engine.apply(FLOW, ev.Paused(by="ann"), operation="pause")
    let_pass(engine, world)

    with pytest.raises(NotDue):
        engine.reach(FLOW, "main-agent-fix", due)
    engine.apply(FLOW, ev.Continued(by="ann"), operation="continue")

    assert deadline(engine, "main-agent-fix") > due + 1.0
    assert not said(engine, "TIMEOUT")


@pytest.mark.proves("A14", "K20")
def test_cancelling_a_paused_workflow_leaves_nothing(engine: Engine) -> None:
    begun(engine)
    engine.apply(FLOW, ev.Paused(by="ann"), operation="pause")

    engine.apply(FLOW, ev.Cancelled(by="ann"), operation="cancel")

    found = engine.store.read(FLOW)
    assert found is not None
    assert (found.tickets, dict(found.deadlines), found.fields.get("held")) == ((), {}, None)
    assert engine.state(FLOW).outcome is WorkflowOutcome.CANCELLED


def deadline(engine: Engine, name: str) -> float:
    found = engine.store.read(FLOW)
    assert found is not None
    return found.deadlines[name]


def let_pass(engine: Engine, world: World) -> None:
    """Two seconds with a sweeper."""
    sweep(engine.store, FLOW)
    world.elapse(2)
    sweep(engine.store, FLOW)


def pass_deadlines(engine: Engine, world: World, count: int) -> None:
    """Let the next `count` deadlines fall due, and reach each."""
    for _ in range(count):
        found = engine.store.read(FLOW)
        assert found is not None
        name, due = min(found.deadlines.items(), key=lambda entry: entry[1])
        let_pass(engine, world)
        assert engine.reach(FLOW, name, due).status == "ok"
