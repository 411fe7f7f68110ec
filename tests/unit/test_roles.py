"""Who may send an event: a status set by the wrong role is refused on every path (A51)."""

from functools import partial

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER, Decision
from fixloop.protocol.roles import (
    HANDLES,
    MAY_BRING,
    SPECIALIST,
    WrongParty,
    check_party,
    handle_of,
    worker_of,
)
from fixloop.protocol.specialists import SPECIALISTS, specialist as slot
from fixloop.protocol.state import Completion
from fixloop.protocol.ticket import Ticket
from tests.fixtures.script import SILENT, Fix, errs, fails
from tests.fixtures.validation_stage import Stage

TESTER, GUARD = slot("test-runner").handle, slot("security").handle


def waiting() -> Stage:
    """The main agent has the report of the first run."""
    return Stage({"test-runner": [fails("a")], "security": []}, answers=[SILENT]).run()


@pytest.mark.proves("A51")
def test_every_kind_of_event_has_a_permitted_sender() -> None:
    assert set(MAY_BRING) == set(ev.KINDS)
    assert all(may <= HANDLES | {SPECIALIST} for may in MAY_BRING.values())
    assert all(may for may in MAY_BRING.values())


@pytest.mark.proves("A51", "A3")
def test_only_specialists_report_results_and_only_their_own() -> None:
    event = ev.RunFinished(
        step="recheck", specialist="test-runner", iteration=2, outcome="passed", tree="tree-0"
    )

    check_party(event, TESTER)
    for other in HANDLES - {TESTER}:
        with pytest.raises(
            WrongParty, match=f"run-finished is not for {other} to bring; it comes from {TESTER}"
        ):
            check_party(event, other)


@pytest.mark.proves("A51")
def test_the_main_agent_cannot_report_that_the_checks_passed() -> None:
    stage = Stage([fails("a"), SILENT]).run()
    passed = ev.RunFinished(
        step="recheck",
        specialist="test-runner",
        iteration=2,
        outcome="passed",
        tree=stage.state.tree,
        sender=MAIN_AGENT,
    )

    refusal = stage.refused(partial(stage.apply, passed))

    assert refusal == f"run-finished is not for {MAIN_AGENT} to bring; it comes from {TESTER}"


ANSWERS: tuple[ev.Event, ...] = (
    ev.FixAcknowledged(specialist="test-runner", iteration=1, by="x"),
    ev.FixCompleted(specialist="test-runner", completion=Completion(iteration=1, by="x", tree="t", tip="c")),
    ev.AnswerRejected(specialist="test-runner", iteration=1, violations=("x",)),
    ev.BlockerSignalled(by="x", text="x"),
)


@pytest.mark.proves("A51", "A3", "G1")
@pytest.mark.parametrize("event", ANSWERS, ids=lambda event: event.kind)
@pytest.mark.parametrize("sender", [TESTER, GUARD, ORCHESTRATOR, "@somebody"])
def test_no_other_agent_answers_for_the_main_agent(event: ev.Event, sender: str) -> None:
    stage = waiting()

    assert f"not for {sender} to bring" in stage.refused(
        partial(stage.apply, event.model_copy(update={"sender": sender}))
    )


@pytest.mark.proves("A51")
@pytest.mark.parametrize("event", ANSWERS, ids=lambda event: event.kind)
@pytest.mark.parametrize("sender", [MAIN_AGENT, USER])
def test_the_main_agent_answers_or_a_person_in_its_place(event: ev.Event, sender: str) -> None:
    waiting().apply(event.model_copy(update={"sender": sender}))


@pytest.mark.proves("K27", "A13", "G25")
def test_the_main_agent_decides_what_was_escalated_to_it_and_nothing_else() -> None:
    to_user = Stage([fails("a")] * 3).run()
    to_agent = Stage([errs(), errs()]).run()

    refusal = to_user.refused(partial(to_user.decide, Decision.SKIP, sender=MAIN_AGENT))
    to_agent.decide(Decision.SKIP, sender=MAIN_AGENT)

    assert refusal.endswith(f"is not for {MAIN_AGENT} to decide; it waits for {USER}")
    assert to_agent.state.specialist("test-runner").skipped


@pytest.mark.proves("A51", "A13")
@pytest.mark.parametrize(
    "event",
    [
        ev.DecisionMade(decision=Decision.SKIP),
        ev.Cancelled(),
        ev.Paused(),
        ev.Continued(),
        ev.ManualFixDone(tip="c", tree="t"),
    ],
    ids=lambda event: event.kind,
)
def test_no_specialist_decides_anything(event: ev.Event) -> None:
    stage = Stage([fails("a")] * 3).run()

    assert "not for" in stage.refused(partial(stage.apply, event.model_copy(update={"sender": TESTER})))


@pytest.mark.proves("A51", "R6")
def test_only_the_orchestrator_may_report_timers() -> None:
    stage = waiting()
    stage.clock = 4000.0
    late = ev.DeadlineReached(name="main-agent-fix", due=1800.0, sender=TESTER)

    assert "not for" in stage.refused(partial(stage.apply, late))


@pytest.mark.proves("A51")
@pytest.mark.parametrize("entry", SPECIALISTS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("step", ["validate", "recheck", "confirm"])
def test_a_check_belongs_to_its_specialist(step: str, entry: object) -> None:
    assert isinstance(entry, type(SPECIALISTS[0]))
    assert worker_of(ticket(step, entry.name)) == entry.handle


@pytest.mark.proves("A51", "A1")
@pytest.mark.parametrize(
    ("step", "handle"),
    [("fix", MAIN_AGENT), ("report", ORCHESTRATOR), ("deliver", ORCHESTRATOR), ("notify", ORCHESTRATOR)],
)
def test_other_steps_belong_to_the_main_agent_or_the_orchestrator(step: str, handle: str) -> None:
    assert worker_of(ticket(step, "test-runner")) == handle


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("test-runner", TESTER),
        ("@test-runner-specialist", TESTER),
        ("main-agent", MAIN_AGENT),
        ("user", USER),
        ("User", USER),
        ("orchestrator", ORCHESTRATOR),
        ("@somebody", "@somebody"),
    ],
)
def test_a_role_may_be_given_by_its_short_name(name: str, handle: str) -> None:
    assert handle_of(name) == handle


@pytest.mark.proves("A51", "K20", "A55")
def test_a_refusal_is_reported_and_changes_nothing() -> None:
    stage = waiting()
    before = stage.state

    stage.apply(ev.EventRefused(refused="fix-completed", reason="it answers nothing", sender=TESTER))

    assert stage.notes[-1] == f"refused: fix-completed from {TESTER}: it answers nothing"
    assert stage.state == before.model_copy(update={"last_at": stage.state.last_at})


@pytest.mark.proves("K20", "A84")
def test_a_refusal_after_the_end_leaves_the_end_as_it_was() -> None:
    stage = waiting()
    late = stage.completed(Fix(), 1, "test-runner")
    stage.apply(ev.Cancelled())
    before = stage.state
    stage.advance(600.0)

    stage.refused(partial(stage.apply, late))
    stage.apply(ev.EventRefused(refused=late.kind, reason="it came after the end"))

    assert stage.state == before.model_copy(update={"last_at": stage.state.last_at})
    assert stage.state.until == before.last_at < stage.state.last_at


def ticket(step: str, specialist: str) -> Ticket:
    return Ticket(
        id="0a1b2c3d-1-1.x", workflow="0a1b2c3d-1-1", step=step, queue="q", specialist=specialist, iteration=1
    )
