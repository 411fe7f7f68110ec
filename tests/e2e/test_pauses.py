"""Pauses, refusals and roles through real workers and a real Redis."""

from collections.abc import Iterator

import pytest

from fixloop.protocol.events import Cancelled, Continued, FixCompleted, Paused, WorkflowStarted
from fixloop.protocol.messages import Escalation, Reason
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Completion, Limits
from fixloop.testing.rehearsal import Answer, undisturbed
from tests.fixtures.deployment import ROOT, Deployment, deployed

pytestmark = pytest.mark.slow

FIX = FixCompleted(
    specialist="test-runner",
    completion=Completion(iteration=1, by="ann", fixes=("mended",), files=("a.py",), tip="c", tree="t"),
)


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("pausing")) as running:
        yield running


def pause(deployment: Deployment, started: WorkflowStarted) -> None:
    deployment.engine.apply(started.workflow, Paused(by="ann"), operation="pause")


def go_on(deployment: Deployment, started: WorkflowStarted) -> None:
    deployment.engine.apply(started.workflow, Continued(by="ann"), operation="continue")


def kinds(deployment: Deployment, started: WorkflowStarted) -> list[str]:
    return [str(event["kind"]) for event in deployment.events(started.workflow)]


@pytest.mark.proves("A14", "K21", "B17")
def test_a_running_step_may_finish_and_nothing_starts_until_continued(deployment: Deployment) -> None:
    started = deployment.begin("a~2 -")
    other = deployment.begin("b -")
    deployment.owner_pid(started.workflow)

    pause(deployment, started)

    deployment.until(lambda: "run-finished" in kinds(deployment, started), about=started.workflow)
    deployment.finished(other.workflow)
    assert deployment.state(other.workflow).ended
    assert deployment.messages(started.workflow) == []
    assert deployment.state(started.workflow).active.status is Status.IN_PROGRESS
    go_on(deployment, started)
    deployment.finished(started.workflow)
    assert deployment.story(started.workflow) == undisturbed(started)


@pytest.mark.proves("A14", "R6")
def test_an_unclaimed_step_waits_for_the_end_of_the_pause(deployment: Deployment) -> None:
    started = deployment.begin("a -", hinted=False)
    pause(deployment, started)
    other = deployment.begin("-")
    deployment.finished(other.workflow)

    held = deployment.store.read(started.workflow)
    go_on(deployment, started)
    deployment.finished(started.workflow)

    assert held is not None
    assert [ticket.status for ticket in held.tickets] in (["delayed"], ["claimed"])
    assert deployment.story(started.workflow) == undisturbed(started)


@pytest.mark.proves("A14", "K34", "A61")
def test_the_clocks_of_a_paused_workflow_stop(deployment: Deployment) -> None:
    limits = Limits(fix_seconds=3.0, reminder_window_seconds=60.0)
    started = deployment.begin("a -", fixer="outside", limits=limits)
    deployment.until(lambda: deployment.last_line(started.workflow).startswith("VFR-"))
    pause(deployment, started)
    paused_at = deployment.store.now(started.workflow).clock

    deployment.until(lambda: deployment.store.now(started.workflow).clock > paused_at + 4.5)
    assert deployment.last_line(started.workflow).startswith("VFR-")
    deployment.engine.apply(started.workflow, FIX, operation="fix")
    assert deployment.last_line(started.workflow).startswith("VFR-")
    go_on(deployment, started)

    deployment.finished(started.workflow)
    assert deployment.story(started.workflow) == undisturbed(started, [Answer("VFR", FIX)])


@pytest.mark.proves("A14", "K20")
def test_a_step_cancelled_during_a_pause_is_ended(deployment: Deployment) -> None:
    started = deployment.begin("a~30 -")
    deployment.owner_pid(started.workflow)
    pause(deployment, started)

    deployment.engine.apply(started.workflow, Cancelled(by="ann"), operation="cancel")

    ticket = f"{started.workflow}.test-runner.validate.1.1"
    deployment.until(lambda: (ticket, "cancelled") in deployment.deliveries())
    assert deployment.messages(started.workflow) == []


@pytest.mark.proves("A51", "A55", "K40")
def test_a_fixer_that_reports_a_pass_is_refused_and_ends_as_unresponsive(
    redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    crew = {"FIXLOOP_CREW": "tests.e2e.false_pass_crew:false_pass_crew", "PYTHONPATH": str(ROOT)}
    with deployed(redis_url, tmp_path_factory.mktemp("false-pass"), concurrency=1, **crew) as deployment:
        started = deployment.begin("a -")
        deployment.finished(started.workflow)

        refused = [e for e in deployment.events(started.workflow) if e["kind"] == "event-refused"]
        assert refused
        assert refused[0]["refused"] == "run-finished"
        body = deployment.messages(started.workflow)[-1].body
        assert isinstance(body, Escalation)
        assert body.reason is Reason.UNRESPONSIVE
        assert deployment.state(started.workflow).active.runs[-1].number == 1
        deployment.story(started.workflow)
