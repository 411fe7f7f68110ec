"""RabbitMQ for the messages, Redis for the state: the crash sample, and the differences."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from fixloop.engine.hints import producer, send_hint
from fixloop.errors import InfrastructureError
from fixloop.outside.mailbox import Mailboxes
from fixloop.protocol.events import WorkflowStarted
from fixloop.servers.broker import ping
from fixloop.servers.rabbitmq import queue_arguments
from fixloop.servers.redis_url import shown_url
from tests.contract.test_mailboxes import PROJECT, issues, letter
from tests.crash.test_workers_killed import SCRIPTS, unharmed
from tests.fixtures.deployment import Deployment, fresh_database, wait_until
from tests.fixtures.ports import free_port
from tests.fixtures.rabbitmq_server import RabbitServer

pytestmark = pytest.mark.slow

CONSUMER_TIMEOUT_SECONDS = 1.5
"""30 minutes, scaled down."""


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    own = RabbitServer(consumer_timeout=round(CONSUMER_TIMEOUT_SECONDS * 1000), channel_tick_interval=500)
    try:
        yield own.start()
    finally:
        own.end()


@pytest.fixture(scope="module")
def deployment(
    server: RabbitServer, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    own = Deployment(fresh_database(redis_url), tmp_path_factory.mktemp("rabbitmq"), broker=server.url)
    try:
        yield own.start()
        own.stop()
        assert own.processes() == []
    finally:
        own.end()


@pytest.mark.proves("S30", "R7", "R8", "K40")
def test_workers_and_rabbitmq_itself_are_killed_and_nothing_is_lost_or_doubled(
    deployment: Deployment, server: RabbitServer
) -> None:
    started = one_of_each(deployment)
    deployment.owner_pid(started[0].workflow)

    deployment.kill("worker")
    after_worker = len(deployment.executions())
    deployment.until(lambda: len(deployment.executions()) > after_worker)
    deployment.kill("supervise")
    deployment.until(lambda: deployment.processes() == [])
    deployment.start()
    after_all = len(deployment.executions())
    deployment.until(lambda: len(deployment.executions()) > after_all)
    server.signal(signal.SIGKILL)
    started += one_of_each(deployment)
    server.start()

    unharmed(deployment, *started)


@pytest.mark.proves("S30", "R7", "R8")
def test_lost_and_duplicated_messages_change_nothing(deployment: Deployment, server: RabbitServer) -> None:
    started = one_of_each(deployment)
    for one in started:
        send_again(deployment, one)
    deployment.owner_pid(started[0].workflow)

    assert purge(server) > 0

    unharmed(deployment, *started)


@pytest.mark.proves("S30", "K40")
def test_a_step_longer_than_rabbitmq_s_timeout_continues_and_is_done_once(deployment: Deployment) -> None:
    long = deployment.begin(f"-~{CONSUMER_TIMEOUT_SECONDS * 1.6}")

    unharmed(deployment, long)

    assert [run.step for run in deployment.executions(long.workflow)] == ["validate"]


def test_urgent_messages_are_served_first_and_no_priority_means_urgent(server: RabbitServer) -> None:
    app = producer(server.url)
    for number, priority in enumerate([9, 3, 6, 0, None, 5]):
        app.send_task("any", kwargs={"number": number}, queue="fixloop.order", priority=priority)
    wait_until(lambda: waiting(server, "fixloop.order") == 6, seconds=60)

    with app.connection_for_read() as connection:
        queue: Any = app.amqp.queues["fixloop.order"](connection.default_channel)
        taken = [queue.get() for _ in range(6)]
        priorities = [message.properties["priority"] for message in taken]
        numbers = [message.payload[1]["number"] for message in taken]
    app.close()

    assert numbers == [3, 4, 1, 5, 2, 0]
    assert priorities == [0, 0, 3, 3, 6, 9]


def test_a_caller_with_only_celery_finds_the_queue_it_declares() -> None:
    assert queue_arguments("celery") is None
    assert "x-expires" in (queue_arguments("run-0a1b2c3d-47-1") or {})
    assert "x-expires" not in (queue_arguments("fixloop.fix") or {})


@pytest.mark.proves("G1", "K13")
def test_mailboxes_are_read_in_order_and_unacknowledged_letters_return(server: RabbitServer) -> None:
    mailboxes, reader = Mailboxes(server.url, most_letters=5), Mailboxes(server.url)
    for number, priority in enumerate([9, 3, 6, 0, 3], 1):
        mailboxes.put("coder", letter(number), priority)
    assert reader.take(PROJECT, "coder") is not None

    reader.close()

    assert issues(mailboxes) == [4, 2, 5, 3, 1]
    assert issues(mailboxes, agent="nobody") == []
    mailboxes.close()


@pytest.mark.proves("A70")
def test_an_unreachable_frozen_or_refusing_rabbitmq_is_one_sentence(server: RabbitServer) -> None:
    away = f"amqp://me:secret@127.0.0.1:{free_port()}//"
    with pytest.raises(
        InfrastructureError, match=r"the broker at amqp://127\S+ did not take part: .*refused"
    ):
        ping(away)
    # One reachable host of several is enough.
    ping(server.url.replace("@", f"@127.0.0.1:{free_port()},"))
    with pytest.raises(InfrastructureError, match="ACCESS_REFUSED"):
        ping(server.url.replace("guest:guest", "guest:wrong"))
    with pytest.raises(InfrastructureError, match="does not speak TLS; use a URL without TLS"):
        ping(server.url.replace("amqp:", "amqps:"))
    mailboxes = Mailboxes(server.url)
    mailboxes.put("frozen", letter(1), 3)
    server.signal(signal.SIGSTOP)

    try:
        with pytest.raises(InfrastructureError, match="did not take part"):
            mailboxes.put("frozen", letter(2), 3)
    finally:
        server.signal(signal.SIGCONT)

    mailboxes.put("frozen", letter(3), 3)
    assert {1, 3} <= set(issues(mailboxes, agent="frozen"))
    mailboxes.close()
    assert shown_url(away) == f"amqp://me:***@{away.partition('@')[2]}"


def one_of_each(deployment: Deployment) -> list[WorkflowStarted]:
    """A few workflows at once."""
    return [deployment.begin(script) for script in SCRIPTS[::2]]


def send_again(deployment: Deployment, started: WorkflowStarted) -> None:
    """Send the hints of all its open tickets a second time."""
    found = deployment.store.read(started.workflow)
    assert found is not None
    for held in found.tickets:
        send_hint(deployment.producer, held.ticket, deployment.state(started.workflow).profile)


def waiting(server: RabbitServer, queue: str) -> int:
    connection = server.connect()
    count = int(connection.channel().queue_declare(queue, passive=True).message_count)
    connection.close()
    return count


def purge(server: RabbitServer) -> int:
    """Lose every waiting message; returns how many."""
    connection = server.connect()
    lost = 0
    for name in ("fixloop.test-runner", "fixloop.fix", "fixloop.control"):
        lost += connection.channel().queue_purge(name)
    connection.close()
    return lost
