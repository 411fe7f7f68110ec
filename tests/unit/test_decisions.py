"""Every decision from every escalation, including late and repeated ones (K20)."""

from collections.abc import Callable
from functools import partial

import pytest

from fixloop.errors import UsageError
from fixloop.protocol import events as ev
from fixloop.protocol.messages import FOUR, ON_A_HOLD, Decision, Reason
from fixloop.protocol.specialists import Role, Status
from fixloop.protocol.state import Limits, WorkflowOutcome
from fixloop.protocol.validation import decide
from tests.fixtures.script import SILENT, BadAnswer, Breaks, Fix, errs, fails, held
from tests.fixtures.validation_stage import Answers, Runs, Stage


def staged(runs: Runs, answers: Answers = (), **further: object) -> Stage:
    """A phase followed by another, played until all wait."""
    options = {"answers": list(answers), **further}
    return Stage({"test-runner": runs, "security": []}, **options).run()  # type: ignore[arg-type]


def max_iterations() -> Stage:
    return staged([fails("a", "b"), fails("a")], max_iterations=2)


def deadlock() -> Stage:
    return staged([fails("a")] * 3)


def late_validation() -> Stage:
    return staged([SILENT]).advance(2101.0)


def late_fix() -> Stage:
    return staged([fails("a")], [SILENT]).advance(2101.0)


def late_command() -> Stage:
    return staged([fails("a")], [SILENT], fixer="command").advance(2101.0)


def late_recheck() -> Stage:
    limits = Limits(iteration_seconds=None)
    return staged([fails("a"), SILENT], limits=limits).advance(2101.0)


def late_iteration() -> Stage:
    return staged([fails("a"), SILENT], [Fix(takes_seconds=1200.0)]).advance(601.0)


def specialist_error() -> Stage:
    return staged([errs(), errs()])


def communication_error() -> Stage:
    return staged([fails("a")], [Breaks(undelivered=True)] * 3, fixer="command")


def invalid_response() -> Stage:
    return staged([fails("a")], [BadAnswer(), BadAnswer()])


def unresponsive() -> Stage:
    return staged([fails("a")], [Breaks()] * 3, fixer="command")


def blocker() -> Stage:
    stage = staged([fails("a")], [SILENT])
    stage.apply(ev.BlockerSignalled(by="agent", text="no access"))
    return stage


def integrity_hold() -> Stage:
    return staged([fails("a"), held("changed-test")], trusted="commit-0")


Maker = Callable[[], Stage]
TIMEOUTS: tuple[Maker, ...] = (late_validation, late_fix, late_command, late_recheck, late_iteration)
OPEN_REQUEST: tuple[Maker, ...] = (communication_error, invalid_response, unresponsive, blocker)
ALL: tuple[Maker, ...] = (
    max_iterations,
    deadlock,
    specialist_error,
    *TIMEOUTS,
    *OPEN_REQUEST,
    integrity_hold,
)
WAITING: tuple[Maker, ...] = (late_fix, late_command, *OPEN_REQUEST)


@pytest.mark.proves("A12", "K12")
def test_the_stages_cover_every_reason() -> None:
    reasons = {make().escalation.reason for make in ALL}

    assert reasons == set(Reason)


@pytest.mark.proves("A11", "A14", "A69")
@pytest.mark.parametrize("make", ALL)
def test_an_escalation_pauses_and_leaves_nothing_to_do(make: Maker) -> None:
    stage = make()

    assert stage.state.paused
    assert stage.active.status is Status.ESCALATED
    assert len(stage.said("escalation")) == 1
    assert not stage.pending
    assert not stage.running
    assert not stage.deadlines
    assert stage.state.owner == "person"


@pytest.mark.proves("A13")
def test_an_unknown_word_is_no_decision() -> None:
    with pytest.raises(ValueError, match="retry"):
        ev.event_from_json('{"kind": "decision-made", "decision": "retry"}')
    assert list(FOUR) == ["manual-fix", "skip", "abort", "extend"]
    assert set(Decision) == {*FOUR, *ON_A_HOLD}


@pytest.mark.proves("K20", "K7")
@pytest.mark.parametrize("make", [max_iterations, deadlock])
def test_extend_adds_iterations_and_reports_the_last_failed_run(make: Maker) -> None:
    stage = make()
    iteration, maximum = stage.active.iteration, stage.active.max_iterations

    stage.decide("extend")
    stage.step()

    assert stage.active.max_iterations == maximum + 3
    assert stage.messages[-1].message_id == f"VFR-101-test-runner-{iteration}"
    assert stage.path()[-2:] == [Status.ESCALATED, Status.AWAITING_FIX]


@pytest.mark.proves("K7", "K20")
def test_extend_opens_a_fresh_window_for_a_deadlock() -> None:
    stage = deadlock()
    stage.script.runs["test-runner"] = [fails("a"), fails("a"), fails("a")]
    stage.decide("extend")

    stage.run()

    assert stage.active.iteration == 6
    assert stage.escalation.reason is Reason.DEADLOCK


@pytest.mark.proves("K20", "K19")
@pytest.mark.parametrize("decision", ["extend", "manual-fix"])
def test_after_a_specialist_error_the_same_run_is_tried_again(decision: str) -> None:
    stage = specialist_error()
    stage.script.runs["test-runner"] = [errs(), fails("a")]

    outcome = stage.decide(decision)

    (change,) = outcome.transitions
    assert (change.before, change.after) == (Status.ESCALATED, Status.IN_PROGRESS)
    (ticket,) = stage.pending
    assert (ticket.step, ticket.iteration, ticket.attempt) == ("validate", 1, 1)
    assert stage.active.max_iterations == 5
    stage.run()
    assert "DETECT-101-test-runner-1" in stage.ids
    assert len(stage.said("escalation")) == 1


@pytest.mark.proves("K20")
def test_after_a_specialist_error_in_a_later_run_that_run_is_tried_again() -> None:
    stage = staged([fails("a"), errs(), errs()], [Fix(tree="tree-0")])
    assert stage.escalation.reason is Reason.SPECIALIST_ERROR

    stage.decide("extend")
    stage.run()

    assert [ticket.step for ticket in stage.executed].count("recheck") == 3
    assert "SUCCESS-101-test-runner-2" in stage.ids


@pytest.mark.proves("K20")
def test_a_manual_fix_of_a_specialist_error_reads_the_configuration_again() -> None:
    stage = specialist_error()

    stage.decide(
        "manual-fix", configuration="d2", specialists=("test-runner", "e2e-accessibility-specialist")
    )

    assert stage.state.configuration == "d2"
    assert any(note.startswith("configuration re-read") for note in stage.notes)
    assert not stage.state.specialist("security").applicable
    assert stage.state.specialist("e2e-accessibility").applicable
    assert stage.state.specialist("test-runner").applicable


@pytest.mark.proves("K20")
def test_a_changed_configuration_without_specialists_leaves_them_as_they_are() -> None:
    stage = specialist_error()

    stage.decide("manual-fix", configuration="d2")

    assert stage.state.specialist("security").applicable


@pytest.mark.proves("K20", "K19", "A51")
@pytest.mark.parametrize(
    ("make", "status", "role", "step"),
    [
        (late_validation, Status.IN_PROGRESS, Role.SPECIALIST, "validate"),
        (late_recheck, Status.RE_CHECKING, Role.SPECIALIST, "recheck"),
        (late_iteration, Status.RE_CHECKING, Role.SPECIALIST, "recheck"),
        (late_command, Status.FIXING, Role.MAIN_AGENT, "fix"),
    ],
)
def test_extend_after_a_timeout_gives_the_late_operation_its_time(
    make: Maker, status: Status, role: Role, step: str
) -> None:
    stage = make()

    outcome = stage.decide("extend", minutes=45)

    (change,) = outcome.transitions
    assert (change.before, change.after, change.role) == (Status.ESCALATED, status, role)
    (ticket,) = stage.pending
    assert (ticket.step, ticket.limit_seconds) == (step, 45 * 60)
    assert stage.active.max_iterations == 5
    assert not outcome.messages


@pytest.mark.proves("K20", "A73")
def test_extend_gives_an_outside_agent_its_time() -> None:
    stage = late_fix()

    stage.decide("extend")

    assert stage.active.status is Status.AWAITING_FIX
    assert stage.deadlines["main-agent-fix"] == stage.clock + 1800
    assert stage.deadlines["total-iteration"] == stage.clock + 1800
    assert len(stage.said("failure-report")) == 1


@pytest.mark.proves("K20", "A57")
def test_extend_lengthens_the_iteration_clock() -> None:
    stage = late_iteration()

    stage.decide("extend", minutes=10)

    assert stage.deadlines["total-iteration"] == stage.clock + 600
    stage.advance(601.0)
    assert len(stage.said("escalation")) == 2


@pytest.mark.proves("K20", "A87")
@pytest.mark.parametrize("make", OPEN_REQUEST)
def test_extend_delivers_the_open_request_again_with_fresh_attempts(make: Maker) -> None:
    stage = make()
    stage.script.answers = [SILENT]

    stage.decide("extend")
    stage.run()

    reports = [m for m in stage.said("failure-report") if m.message_id == "VFR-101-test-runner-1"]
    assert len(reports) == 2
    assert reports[0].body == reports[1].body
    assert reports[0].uid != reports[1].uid
    assert (stage.state.attempts, stage.state.answers) == (1, 0)
    assert stage.deadlines["total-iteration"] == stage.clock + 1800
    assert stage.active.max_iterations == 5


@pytest.mark.proves("A92", "K20")
@pytest.mark.parametrize(
    "wrong", [{"iterations": 0}, {"iterations": -3}, {"minutes": 0.0}, {"minutes": -1.0}]
)
@pytest.mark.parametrize("make", [max_iterations, late_fix])
def test_an_extension_by_nothing_is_refused(make: Maker, wrong: dict[str, float]) -> None:
    stage = make()
    before = stage.state

    with pytest.raises(UsageError, match="extend by"):
        stage.decide("extend", **wrong)

    assert stage.state == before


@pytest.mark.proves("A92")
@pytest.mark.parametrize("minutes", [float("inf"), float("nan"), 1e12])
def test_an_extension_without_an_end_is_refused(minutes: float) -> None:
    event = ev.DecisionMade(decision=Decision.EXTEND, minutes=minutes)
    stage = late_fix()

    # Not through the stage: JSON has no such numbers.
    with pytest.raises(UsageError, match="minutes"):
        decide(stage.state, event, stage.now)


@pytest.mark.proves("K20", "A63")
@pytest.mark.parametrize("make", WAITING)
@pytest.mark.parametrize("decision", ["extend", "manual-fix"])
def test_a_completion_that_arrives_while_paused_is_processed_later(make: Maker, decision: str) -> None:
    stage = make()
    lines = len(stage.messages)

    stage.complete(Fix(summary="late but good", tree="tree-late"))
    assert stage.state.paused
    assert len(stage.messages) == lines
    stage.decide(decision)

    assert not stage.state.paused
    assert stage.state.kept is None
    assert stage.state.tree == "tree-late"
    assert stage.messages[-1].message_id == "REVAL-101-test-runner-2"
    assert ("FIXDONE-101-1" in stage.ids) is (decision == "extend")
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K6", "B33")
@pytest.mark.parametrize("make", WAITING)
def test_a_kept_completion_starts_a_fresh_iteration_clock(make: Maker) -> None:
    stage = make()
    stage.complete()
    stage.advance(4000.0)

    stage.decide("extend")

    assert stage.deadlines["total-iteration"] == stage.clock + 1800
    (done,) = stage.said("fix-completion")
    report = stage.said("failure-report")[0]
    assert done.body.kind == "fix-completion"
    assert done.body.duration_seconds == (done.at - report.at).total_seconds()


@pytest.mark.proves("A8", "K1")
@pytest.mark.parametrize("make", [make for make in ALL if make not in WAITING])
def test_an_unrequested_completion_is_not_kept(make: Maker) -> None:
    stage = make()

    assert "answers no open request" in stage.refused(stage.complete)


@pytest.mark.proves("K20")
def test_a_completion_after_the_person_took_over_is_refused() -> None:
    stage = late_fix()
    stage.decide("manual-fix")

    assert "waits for a person" in stage.refused(stage.complete)


@pytest.mark.proves("K20", "K4")
def test_a_kept_completion_is_not_processed_by_another_phase() -> None:
    stage = late_fix()
    stage.complete(Fix(tree="tree-of-test-runner"))
    stage.script.runs["security"] = [errs(), errs()]
    stage.decide("skip")
    stage.run()
    assert stage.active.name == "security"

    stage.decide("extend")

    assert stage.state.kept is None
    assert stage.state.tree == "tree-0"
    assert stage.active.status is Status.IN_PROGRESS


@pytest.mark.proves("K20", "A14")
@pytest.mark.parametrize("make", ALL)
def test_during_a_pause_other_events_are_refused(make: Maker) -> None:
    stage = make()
    name, number = stage.active.name, stage.active.iteration
    late: list[ev.Event] = [
        ev.ReportDelivered(specialist=name, iteration=number),
        ev.FixAcknowledged(specialist=name, iteration=number, by="agent"),
        ev.FixFailed(specialist=name, iteration=number, attempt=9, error="x"),
        ev.AnswerRejected(specialist=name, iteration=number, violations=("x",)),
        ev.BlockerSignalled(by="agent", text="x"),
        ev.ManualFixDone(tip="c", tree="t"),
        ev.RunFinished(step="recheck", specialist=name, iteration=number, outcome="passed", tree="t"),
    ]

    for event in late:
        stage.refused(partial(stage.apply, event))


@pytest.mark.proves("R6", "K8")
@pytest.mark.parametrize("make", ALL)
def test_a_timer_during_a_pause_is_only_noted(make: Maker) -> None:
    stage = make()
    before = stage.state.model_copy(update={"last_at": stage.now.at})

    outcome = stage.apply(ev.DeadlineReached(name="main-agent-fix", due=stage.clock - 1))

    assert outcome.notes == ("deadline main-agent-fix passed while paused",)
    assert outcome.state == before


@pytest.mark.proves("K20", "A8")
@pytest.mark.parametrize("make", WAITING)
def test_a_completion_after_abort_is_refused(make: Maker) -> None:
    stage = make()
    stage.decide("abort")

    assert "ended (aborted)" in stage.refused(stage.complete)


@pytest.mark.proves("K20")
@pytest.mark.parametrize("make", ALL)
def test_cancel_ends_the_workflow_in_its_status(make: Maker) -> None:
    stage = make()

    stage.apply(ev.Cancelled(by="ann", reason="not needed any more"))

    assert stage.state.outcome is WorkflowOutcome.CANCELLED
    assert stage.state.verdict == "not_passed"
    assert stage.active.status is Status.ESCALATED
    assert "cancelled by ann not needed any more" in stage.notes
    stage.refused(lambda: stage.apply(ev.Cancelled()))


@pytest.mark.proves("K20")
def test_cancel_withdraws_a_running_step() -> None:
    stage = staged([SILENT])

    outcome = stage.apply(ev.Cancelled())

    assert outcome.withdraws_tickets
    assert stage.active.status is Status.IN_PROGRESS
    assert not stage.running
    assert not stage.deadlines


@pytest.mark.proves("K20")
def test_an_escalation_notifies_a_person_if_configured() -> None:
    stage = Stage([fails("a")] * 3, notify=True).run()

    (ticket,) = stage.pending
    assert ticket.step == "notify"
    stage.decide("extend")
    stage.run()
    assert "notified: told" in stage.notes
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
