"""A hop by the short way is the message that Celery would have sent, to the byte, but for what is unique to each."""

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery, Task, signals
from redis import Redis

from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis
from workers.celery_fast.hop import StepTask

pytestmark = pytest.mark.slow

QUEUE = "hop"
TICKET = "0a1b2c3d-42-1.test-runner.report.1.1"
ARGUMENTS = {"ticket": TICKET, "issue": 42, "specialist": "test-runner", "iteration": 1}
OPTIONS: dict[str, Any] = {
    "queue": QUEUE,
    "priority": 3,
    "chain": [{"task": "step", "options": {"task_id": "0a1b2c3d-42-1.test-runner.fix.1.1"}}],
    "root_id": "0a1b2c3d-42-1.test-runner.validate.1.1",
    "parent_id": "0a1b2c3d-42-1.test-runner.validate.1.1",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded_redis(tmp_path_factory.mktemp("hop")) as found:
        yield found


@pytest.fixture
def app(url: str) -> Iterator[Any]:
    Redis.from_url(url).flushall()
    made = Celery("hop", broker=celery_url(url), set_as_current=False)
    # Given by its name: the registry is the worker process' business.
    made.conf.update(broker_transport="workers.celery_fast.transport:Transport", task_ignore_result=True)
    yield made
    made.close()


@pytest.fixture
def step(app: Any) -> Any:
    @app.task(base=StepTask, name="step", shared=False)  # type: ignore[untyped-decorator]
    def run(**_: Any) -> None:
        """Nothing."""

    return run


def _messages(url: str, count: int) -> list[dict[str, Any]]:
    """`count` messages that lie in the queue, oldest first, with bodies read and without what is unique to each."""
    deadline = time.monotonic() + 60
    while len(found := _taken(url)) < count:
        # No answer to it is waited for.
        assert time.monotonic() < deadline, f"{len(found)} messages were sent instead of {count}"
    for message in found:
        message["body"] = json.loads(b64decode(message["body"]))
        del message["properties"]["delivery_tag"]
    return found


def _taken(url: str) -> list[dict[str, Any]]:
    client: Any = Redis.from_url(url)
    return [
        json.loads(text) for key in client.scan_iter(f"{QUEUE}*") for text in client.lrange(key, 0, -1)[::-1]
    ]


def test_a_hop_is_the_message_that_celery_would_have_sent(step: Any, url: str) -> None:
    step.apply_async((), ARGUMENTS, TICKET, **OPTIONS)
    Task.apply_async(step, (), ARGUMENTS, TICKET, **OPTIONS)

    short, celerys = _messages(url, 2)
    assert short == celerys


def test_a_hop_sends_events_as_any_message_does(step: Any, url: str) -> None:
    told: list[tuple[str, Any]] = []

    def before(sender: str, headers: dict[str, Any], **_: Any) -> None:
        told.append((sender, headers["id"]))

    def after(sender: str, routing_key: str, **_: Any) -> None:
        told.append((sender, routing_key))

    signals.before_task_publish.connect(before)
    signals.after_task_publish.connect(after)

    step.apply_async((), ARGUMENTS, TICKET, **OPTIONS)

    assert told == [("step", TICKET), ("step", QUEUE)]


def test_flower_sees_a_hop(app: Any, step: Any, url: str) -> None:
    app.conf.task_send_sent_event = True
    client: Any = Redis.from_url(url)
    with client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.psubscribe("*celeryev*")
        assert heard.get_message(timeout=10) is None, "this is the answer to the subscription"

        step.apply_async((), ARGUMENTS, TICKET, **OPTIONS)

        event = json.loads(b64decode(json.loads(heard.get_message(timeout=60)["data"])["body"]))
    assert (event["type"], event["uuid"], event["queue"]) == ("task-sent", TICKET, QUEUE)


@pytest.mark.parametrize("more", [{"countdown": 1}, {"expires": 60}, {"headers": {"from": "a caller"}}])
def test_what_is_no_hop_goes_by_celerys_own_way(step: Any, url: str, more: dict[str, Any]) -> None:
    options = OPTIONS | more

    sent = step.apply_async((), ARGUMENTS, TICKET, **options)

    assert sent.id == TICKET
    assert len(_messages(url, 1)) == 1


def test_a_hop_whose_connection_was_closed_is_sent_all_the_same(step: Any, url: str) -> None:
    step.apply_async((), ARGUMENTS, TICKET, **OPTIONS)
    Redis.from_url(url).client_kill_filter(_type="normal", skipme=True)

    step.apply_async((), ARGUMENTS, TICKET, **OPTIONS)

    assert len(_messages(url, 2)) == 2
