"""The canvas as a broker sees it: usually each ticket is one message, named by the ticket, of constant size."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from fixloop.engine.hints import producer
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.testing.rehearsal import undisturbed
from tests.fixtures.deployment import Deployment, deployed
from workflows import canvas

pytestmark = pytest.mark.slow


class Watch:
    """Celery's own events, as Flower sees them."""

    def __init__(self, url: str) -> None:
        self._seen: list[Mapping[str, Any]] = []
        self._connection = producer(url).connection_for_read()
        self._receiver = producer("redis://unused").events.Receiver(
            self._connection, handlers={"*": self._seen.append}
        )
        # Without a time limit: at each limit it would subscribe again and miss events published meanwhile.
        self._thread = threading.Thread(
            target=self._receiver.capture, kwargs={"limit": None, "wakeup": False}, daemon=True
        )
        self._thread.start()

    def of(self, kind: str, workflow: str) -> list[str]:
        """The ids of the tasks of a workflow with an event of this kind, in order."""
        return [str(event["uuid"]) for event in self._events(kind, workflow)]

    def failed(self, workflow: str) -> list[Mapping[str, Any]]:
        """The events of the tasks of a workflow that Celery calls a FAILURE, each once."""
        return list({event["uuid"]: event for event in self._events("task-failed", workflow)}.values())

    def gone(self) -> set[str]:
        """The roles of the workers that announced their end."""
        lines = [event for event in list(self._seen) if event["type"] == "worker-offline"]
        return {str(event["hostname"]).partition("-")[0] for event in lines}

    def settle(self, deployment: Deployment) -> None:
        """Return when events arrive."""
        first = deployment.begin("-")
        deployment.until(lambda: _events_arrive(deployment, self, first.workflow))

    def _events(self, kind: str, workflow: str) -> list[Mapping[str, Any]]:
        seen = [event for event in list(self._seen) if event["type"] == kind]
        return [event for event in seen if str(event["uuid"]).startswith(f"{workflow}.")]

    def stop(self) -> None:
        self._receiver.should_stop = True
        self._thread.join(60)
        self._connection.release()


def test_an_idle_worker_that_stops_says_so_and_leaves_nothing(redis_url: str, tmp_path: Path) -> None:
    with deployed(redis_url, tmp_path, FIXLOOP_TASK_EVENTS="1") as idle:
        watching = Watch(idle.url)
        watching.settle(idle)
        idle.finished(idle.begin("-").workflow)
        idle.until(lambda: idle.broker_holds() == [])

        idle.stop()

        idle.until(lambda: watching.gone() == {"work", "control"})
        watching.stop()
        assert not idle.processes()
        assert idle.supervisor is not None
        assert idle.supervisor.returncode == 0
        assert idle.broker_holds() == []


@pytest.fixture(scope="module", params=["going on", "hop by hop"])
def deployment(
    request: pytest.FixtureRequest, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """Workers that continue with the next step by themselves, and workers that get each from the broker."""
    folder, goes_on = tmp_path_factory.mktemp("canvas"), str(int(request.param == "going on"))
    with deployed(redis_url, folder, FIXLOOP_TASK_EVENTS="1", FIXLOOP_GO_ON=goes_on) as running:
        yield running


@pytest.fixture(scope="module")
def watch(deployment: Deployment) -> Iterator[Watch]:
    watching = Watch(deployment.url)
    watching.settle(deployment)
    yield watching
    watching.stop()


@pytest.mark.proves("R2", "R3")
@pytest.mark.parametrize(
    "script", ["-", "a -", "abcde abcd abc ab a", "!a -", "a -; fix: fail fail ok", "a -; fix: bad ok"]
)
def test_each_ticket_is_one_message_with_the_tickets_id(
    deployment: Deployment, watch: Watch, script: str
) -> None:
    started = deployment.begin(script)
    deployment.finished(started.workflow)

    committed = tickets(deployment, started.workflow)
    deployment.until(lambda: len(watch.of("task-received", started.workflow)) >= len(committed))
    # Two workers say it, so the order of what they say means nothing.
    assert Counter(watch.of("task-received", started.workflow)) == Counter(committed)
    # The log has its line a moment after the commit.
    deployment.until(lambda: (committed[-1], "done") in deployment.deliveries())
    assert Counter(deployment.deliveries())[(committed[-1], "done")] == 1
    assert deployment.story(started.workflow) == undisturbed(started)


@pytest.mark.proves("R3", "K37")
def test_five_specialists_and_their_confirmations_are_one_message_a_ticket(
    deployment: Deployment, watch: Watch
) -> None:
    specialists = ("unit-test", "integration-test", "test-runner", "code-quality", "security")
    started = deployment.begin("test-runner: abc a -; security: a -", specialists=specialists)
    deployment.finished(started.workflow)

    committed = tickets(deployment, started.workflow)
    deployment.until(lambda: len(watch.of("task-received", started.workflow)) >= len(committed))
    # Two workers say it, so the order of what they say means nothing.
    assert Counter(watch.of("task-received", started.workflow)) == Counter(committed)


@pytest.mark.proves("K5")
def test_a_further_attempt_is_celerys_retry(deployment: Deployment, watch: Watch) -> None:
    started = deployment.begin("!a -")
    deployment.finished(started.workflow)

    first = f"{started.workflow}.test-runner.validate.1.1"
    deployment.until(lambda: watch.of("task-retried", started.workflow) == [first])
    assert f"{started.workflow}.test-runner.validate.1.2" in watch.of("task-received", started.workflow)


@pytest.mark.proves("R3")
@pytest.mark.parametrize("deployment", ["hop by hop"], indirect=True)
def test_a_message_does_not_grow_from_round_to_round(deployment: Deployment) -> None:
    started = deployment.begin("abcde~1 abcd~1 abc~1 ab~1 a~0.3")

    sizes: dict[str, int] = {}
    give_up = time.monotonic() + 90
    while not deployment.at_rest(started.workflow) and time.monotonic() < give_up:
        sizes |= taken(deployment.url, f"{started.workflow}.test-runner.recheck.")

    assert len(sizes) == 4
    assert max(sizes.values()) - min(sizes.values()) <= 8


@pytest.mark.proves("R8")
def test_a_second_delivery_does_nothing_and_drops_the_rest_of_its_chain(deployment: Deployment) -> None:
    started = deployment.begin("a~2 b c -", hinted=False)
    state = deployment.state(started.workflow)
    found = deployment.store.read(started.workflow)
    assert found is not None

    for _ in range(2):
        send_whole(deployment, state, found.tickets[0].ticket)

    deployment.finished(started.workflow)
    committed = tickets(deployment, started.workflow)
    deployment.until(lambda: len(deliveries(deployment, started.workflow)) > len(committed))
    said = deliveries(deployment, started.workflow)
    ended = Counter(status for _, status in said)
    assert ended == {"done": len(committed), "busy": 1}
    assert [run.ticket for run in deployment.executions(f"{started.workflow}.")] == [
        name for name in committed if ".report." not in name
    ]
    assert deployment.story(started.workflow) == undisturbed(started)


@pytest.mark.proves("R8")
def test_a_delivery_of_a_finished_step_does_nothing(deployment: Deployment) -> None:
    started = deployment.begin("a -", hinted=False)
    state = deployment.state(started.workflow)
    found = deployment.store.read(started.workflow)
    assert found is not None
    first = found.tickets[0].ticket
    send_whole(deployment, state, first)
    deployment.finished(started.workflow)
    before = deployment.story(started.workflow)

    send_whole(deployment, state, first)

    deployment.until(lambda: (first.id, "gone") in deployment.deliveries())
    said = deliveries(deployment, started.workflow)
    assert len(said) == len(tickets(deployment, started.workflow)) + 1
    assert deployment.story(started.workflow) == before


@pytest.mark.proves("R3")
def test_a_wait_for_an_outside_agent_leaves_no_message(deployment: Deployment) -> None:
    started = deployment.begin("a -", fixer="outside")
    deployment.until(lambda: deployment.last_line(started.workflow).startswith("VFR-"))
    report = f"{started.workflow}.test-runner.report.1.1"

    deployment.until(lambda: (report, "done") in deployment.deliveries())
    assert deliveries(deployment, started.workflow)[-1] == (report, "done")
    found = deployment.store.read(started.workflow)
    assert found is not None
    assert found.tickets == ()
    deployment.until(lambda: not taken(deployment.url, started.workflow))


def tickets(deployment: Deployment, workflow: str) -> list[str]:
    """The tickets committed, in order."""
    history = deployment.store.history(workflow)
    return [entry.body["by"]["ticket"] for entry in history if "by" in entry.body]


def deliveries(deployment: Deployment, workflow: str) -> list[tuple[str, str]]:
    return [pair for pair in deployment.deliveries() if pair[0].startswith(f"{workflow}.")]


def taken(url: str, prefix: str) -> dict[str, int]:
    """Messages that workers have and have not acknowledged: the task's id and the size."""
    client: Any = redis.Redis.from_url(url)
    sizes = {}
    for stored in client.hvals("unacked"):
        task = json.loads(stored)[0]["headers"]["id"]
        if task.startswith(prefix):
            sizes[task] = len(stored)
    client.close()
    return sizes


def send_whole(deployment: Deployment, state: State, ticket: Ticket) -> None:
    """The ticket's canvas, as a worker would send it."""
    app = producer(deployment.url)
    first, *rest = canvas(app, state, ticket)
    first.apply_async(chain=[dict(entry) for entry in reversed(rest)])
    app.close()


def _events_arrive(deployment: Deployment, watching: Watch, workflow: str) -> bool:
    if deployment.at_rest(workflow) and not watching.of("task-received", workflow):
        # Sent before anything listened: send again.
        first = deployment.begin("-")
        deployment.finished(first.workflow)
        return bool(watching.of("task-received", first.workflow))
    return bool(watching.of("task-received", workflow))
