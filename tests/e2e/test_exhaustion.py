"""A step whose attempts are used up, with real workers: Celery says so, and it escalates once (K5, R9)."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from fixloop.outside.mailbox import queue_name
from fixloop.protocol.messages import Escalation
from fixloop.protocol.state import Limits
from tests.e2e.test_canvas import Watch
from tests.fixtures.crews import Crews
from tests.fixtures.deployment import PROJECT, ROOT, Deployment, deployed
from tests.fixtures.patience import slack

pytestmark = pytest.mark.slow

EXHAUSTED = "MaxRetriesExceededError"


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    further = {"FIXLOOP_CREW": "tests.e2e.broken_crew:broken_crew", "PYTHONPATH": str(ROOT)}
    folder = tmp_path_factory.mktemp("exhaustion")
    with deployed(redis_url, folder, FIXLOOP_TASK_EVENTS="1", **further) as running:
        yield running


@pytest.fixture(scope="module")
def watch(deployment: Deployment) -> Iterator[Watch]:
    watching = Watch(deployment.url)
    watching.settle(deployment)
    yield watching
    watching.stop()


def escalations(deployment: Deployment, workflow: str) -> list[str]:
    """The reasons of all that were opened, as the history has them."""
    said = [message.body for message in deployment.messages(workflow)]
    return [body.reason.value for body in said if isinstance(body, Escalation)]


VALIDATION = {
    "!": ("test-runner.validate.1", 2, "specialist_error", "scripted to raise in attempt 2"),
    "a -; fix: !": ("test-runner.fix.1", 3, "unresponsive", "scripted to raise in attempt 3"),
    "a -; fix: gone": ("test-runner.fix.1", 3, "communication_error", "scripted to gone in attempt 3"),
    "a -; fix: bad": ("test-runner.fix.1", 2, "invalid_response", "scripted to be bad"),
}


@pytest.mark.proves("K5", "R9", "R12")
@pytest.mark.parametrize("script", VALIDATION)
def test_a_step_s_last_attempt_ends_as_celery_s_exhaustion_and_one_escalation(
    deployment: Deployment, watch: Watch, script: str
) -> None:
    step, attempts, reason, why = VALIDATION[script]
    started = deployment.begin(script)

    deployment.finished(started.workflow)

    tickets = [f"{started.workflow}.{step}.{attempt}" for attempt in range(1, attempts + 1)]
    deployment.until(lambda: bool(watch.failed(started.workflow)))
    (last,) = watch.failed(started.workflow)
    assert last["uuid"] == tickets[-1]
    assert last["exception"].startswith(EXHAUSTED)
    assert why in last["exception"]
    # Two workers send these events, so their order means nothing.
    deployment.until(lambda: sorted(watch.of("task-retried", started.workflow)) == tickets[:-1])
    assert escalations(deployment, started.workflow) == [reason]
    deployment.story(started.workflow)


@pytest.mark.proves("K5", "R9", "A70")
def test_the_last_delivery_attempt_ends_as_exhaustion_too(deployment: Deployment, watch: Watch) -> None:
    broker: Any = redis.Redis.from_url(deployment.url)
    broker.set(queue_name(PROJECT, "refusing"), "somebody's string")
    broker.close()
    started = deployment.begin("a -", fixer="outside", agent="refusing", limits=Limits(backoff_seconds=0.1))

    deployment.finished(started.workflow)

    ids = [f"{started.workflow}.test-runner.{step}.1.3" for step in ("deliver", "escalate")]
    deployment.until(lambda: len(watch.failed(started.workflow)) == 2)
    assert sorted(event["uuid"] for event in watch.failed(started.workflow)) == ids
    assert all("WRONGTYPE" in event["exception"] for event in watch.failed(started.workflow))
    assert escalations(deployment, started.workflow) == ["communication_error"]


AGENTS = {
    ("cycle", "ra: !"): ("ra.1", 3, "retries_exhausted", "scripted to raise in attempt 3"),
    ("cycle", "ra: bad"): ("ra.2", 1, "invalid_response", "PHASE_RESULT"),
    ("handoff", "planner: !"): ("planner.1", 3, "retries_exhausted", "scripted to raise in attempt 3"),
    ("handoff", "planner: bad"): ("planner.1", 3, "retries_exhausted", "has no result"),
}


@pytest.mark.proves("K5", "R9", "D40", "D37")
@pytest.mark.parametrize(("profile", "script"), AGENTS)
def test_an_agent_s_last_attempt_ends_as_celery_s_exhaustion_and_one_escalation(
    deployment: Deployment, watch: Watch, profile: str, script: str
) -> None:
    run, attempts, reason, why = AGENTS[profile, script]
    crews = Crews(deployment, profile)
    workflow = crews.begin(script, 500 + list(AGENTS).index((profile, script)))

    crews.ended(workflow)

    deployment.until(lambda: bool(watch.failed(workflow)))
    (last,) = watch.failed(workflow)
    assert last["uuid"] == f"{workflow}.{run}.{attempts}"
    assert last["exception"].startswith(EXHAUSTED)
    assert why in last["exception"]
    deployment.until(lambda: len(watch.of("task-retried", workflow)) == attempts - 1)
    state = crews.state(workflow)
    opened = state.escalations if profile == "cycle" else state.questions
    assert [each.reason for each in opened] == [reason]


@pytest.mark.proves("K5", "D38")
def test_a_fatal_error_is_no_exhaustion_and_ends_its_task_with_the_reason(
    deployment: Deployment, watch: Watch
) -> None:
    crews = Crews(deployment, "handoff")
    workflow = crews.begin("builder: fatal", 520)

    crews.ended(workflow)

    deployment.until(lambda: bool(watch.failed(workflow)))
    (last,) = watch.failed(workflow)
    assert last["uuid"] == f"{workflow}.builder.1.1"
    assert last["exception"].startswith("FatalError(")
    assert watch.of("task-retried", workflow) == []


@pytest.mark.proves("R9", "K5", "R8")
def test_the_failure_handler_escalates_an_error_after_a_step_s_commit(
    deployment: Deployment, watch: Watch
) -> None:
    started = deployment.begin("a -; fix: lie")

    # The state was not told: the tickets would be offered again when their leases expire, for ever.
    deployment.finished(started.workflow, seconds=slack(30))

    tickets = [f"{started.workflow}.test-runner.fix.1.{attempt}" for attempt in (1, 2, 3)]
    deployment.until(lambda: len(watch.failed(started.workflow)) == 3)
    assert sorted(event["uuid"] for event in watch.failed(started.workflow)) == tickets
    assert all("AttributeError" in event["exception"] for event in watch.failed(started.workflow))
    assert escalations(deployment, started.workflow) == ["unresponsive"]
    kinds = [event["kind"] for event in deployment.events(started.workflow)]
    assert (kinds.count("fix-failed"), kinds.count("event-refused")) == (3, 0)
    deployment.story(started.workflow)
