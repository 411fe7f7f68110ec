"""Lateness in real time, with limits of a second: reminders, escalations, the cap, and a withdrawn step."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from fixloop.protocol.events import BlockerSignalled, Cancelled, FixCompleted, WorkflowStarted
from fixloop.protocol.messages import Escalation, Message, Reason
from fixloop.protocol.state import Completion, Limits
from fixloop.testing.rehearsal import Answer, Story, undisturbed
from tests.fixtures.deployment import Deployment, deployed
from tests.fixtures.patience import slack

pytestmark = pytest.mark.slow

SLACK_SECONDS = 4.0
"""How much later than its instant a deadline may be acted on, on a machine that is busy; a lost one is handed out again
after 5 s."""
FIX = FixCompleted(
    specialist="test-runner",
    completion=Completion(iteration=1, by="ann", fixes=("mended",), files=("a.py",), tip="c", tree="t"),
)


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("deadlines")) as running:
        yield running


@pytest.mark.proves("A61", "A66", "B31", "K6")
def test_s6_a_silent_agent_is_reminded_once_and_then_a_person_is_asked(deployment: Deployment) -> None:
    started = begun(deployment, "a -", fixer="outside", fix_seconds=1.0, reminder_window_seconds=1.0)

    ended(deployment, started)

    report, reminder, error, escalation = deployment.messages(started.workflow)[-4:]
    assert reminder.message_id.startswith("TIMEOUT-")
    assert error.message_id.startswith("ERR-")
    within(reminder, after=report, seconds=1.0)
    within(escalation, after=reminder, seconds=1.0)
    body = escalated(deployment, started)
    assert body.reason is Reason.TIMEOUT
    assert body.flags == ("unresponsive",)


@pytest.mark.proves("K29", "A89", "B61")
def test_an_early_reminder_is_followed_by_the_limit_itself(deployment: Deployment) -> None:
    started = begun(
        deployment, "a -", fixer="outside", fix_seconds=1.5, reminder_seconds=0.5, reminder_window_seconds=0.5
    )

    ended(deployment, started)

    report, reminder, _, escalation = deployment.messages(started.workflow)[-4:]
    within(reminder, after=report, seconds=0.5)
    within(escalation, after=report, seconds=1.5)


@pytest.mark.proves("A64", "K6", "R6", "S7")
def test_s7_an_answered_reminder_is_the_end_of_it(deployment: Deployment) -> None:
    started = begun(deployment, "a -~3", fixer="outside", fix_seconds=0.5, reminder_window_seconds=2.5)

    story = ended(deployment, started, Answer("TIMEOUT", FIX))

    assert story.outcome == "success"
    assert not any(line.message_id.startswith("ESC-") for line in story.lines)


@pytest.mark.proves("G8", "S7")
def test_s7_a_blocker_instead_is_an_escalation_at_once(deployment: Deployment) -> None:
    started = begun(deployment, "a -", fixer="outside", fix_seconds=0.5, reminder_window_seconds=30.0)

    ended(deployment, started, Answer("TIMEOUT", BlockerSignalled(by="ann", text="no access")))

    assert escalated(deployment, started).reason is Reason.BLOCKER


@pytest.mark.proves("A57", "K6", "S8")
def test_s8_the_cap_on_an_iteration_escalates_without_a_reminder(deployment: Deployment) -> None:
    started = begun(deployment, "a -~30", fixer="outside", iteration_seconds=1.5, validation_seconds=20.0)

    story = ended(deployment, started, Answer("VFR", FIX))

    assert not any(line.message_id.startswith("TIMEOUT-") for line in story.lines)
    assert story.lines[-1].before == "RE_CHECKING"
    assert escalated(deployment, started).reason is Reason.TIMEOUT
    called_off(deployment, f"{started.workflow}.test-runner.recheck.2.1")


@pytest.mark.proves("A56", "K34", "S8")
def test_s8_a_slow_specialist_s_clock_starts_when_its_step_is_claimed(deployment: Deployment) -> None:
    started = begun(deployment, "~30", validation_seconds=1.0, reminder_window_seconds=0.5, hinted=False)
    deployment.until(lambda: bool(deployment.executions(f"{started.workflow}.")), about=started.workflow)
    claimed = deployment.store.now(started.workflow).at

    ended(deployment, started)

    reminder, escalation = deployment.messages(started.workflow)
    assert reminder.recipient == "@test-runner-specialist"
    assert reminder.at - claimed > timedelta(seconds=0.8)
    within(escalation, after=reminder, seconds=0.5)
    called_off(deployment, f"{started.workflow}.test-runner.validate.1.1")


@pytest.mark.proves("K20", "R7")
def test_a_cancel_reaches_a_running_step(deployment: Deployment) -> None:
    started = begun(deployment, "a~30 -")
    deployment.owner_pid(started.workflow)

    deployment.engine.apply(started.workflow, Cancelled(by="ann"), operation="cancel")

    called_off(deployment, f"{started.workflow}.test-runner.validate.1.1")
    assert len(deployment.executions(f"{started.workflow}.")) == 1
    assert deployment.messages(started.workflow) == []


@pytest.mark.proves("R6", "S30")
def test_a_deadline_whose_countdown_died_with_its_process_is_returned_again(deployment: Deployment) -> None:
    started = begun(deployment, "a -", fixer="outside", fix_seconds=2.0, reminder_window_seconds=60.0)
    deployment.until(lambda: deployment.last_line(started.workflow).startswith("VFR-"))
    deployment.until(lambda: handed_out(deployment, started))

    for process in deployment.processes("control"):
        os.kill(process.pid, signal.SIGKILL)

    deployment.until(lambda: deployment.last_line(started.workflow).startswith("TIMEOUT-"))
    report, reminder = deployment.messages(started.workflow)[-2:]
    within(reminder, after=report, seconds=2.0, slack_seconds=5.0 + SLACK_SECONDS)


def begun(deployment: Deployment, script: str, *, hinted: bool = True, **further: Any) -> WorkflowStarted:
    """A workflow with these limits; `fixer` is none of them."""
    fixer = further.pop("fixer", "command")
    return deployment.begin(script, hinted=hinted, fixer=fixer, limits=Limits(backoff_seconds=0.1, **further))


def ended(deployment: Deployment, started: WorkflowStarted, *answers: Answer) -> Story:
    deployment.answer(started.workflow, answers)
    deployment.finished(started.workflow)
    story = deployment.story(started.workflow)
    assert story == undisturbed(started, answers)
    return story


def escalated(deployment: Deployment, started: WorkflowStarted) -> Escalation:
    body = deployment.messages(started.workflow)[-1].body
    assert isinstance(body, Escalation)
    return body


def within(message: Message, *, after: Message, seconds: float, slack_seconds: float = SLACK_SECONDS) -> None:
    """Strictly after the instant, and not long after it (A58)."""
    took = (message.at - after.at).total_seconds()
    assert seconds < took < seconds + slack(slack_seconds)


def called_off(deployment: Deployment, ticket: str) -> None:
    """The step notices that its ticket was withdrawn, by its next heartbeat."""
    took = deployment.until(lambda: (ticket, "cancelled") in deployment.deliveries())
    assert took < 3.0 + slack(SLACK_SECONDS)


def handed_out(deployment: Deployment, started: WorkflowStarted) -> bool:
    """The deadline is in the memory of the control process."""
    held = deployment.broker_holds()
    return any("deadline" in message and started.workflow in message for message in held)
