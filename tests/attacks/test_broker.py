"""Hostile messages on the broker: workers refuse them, continue, and report them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
import redis

from bench.pieces import cpu_seconds
from tests.attacks.messages import (
    CONTROL_EXCHANGE,
    KINDS,
    POISON,
    POISON_OF_RABBITMQ,
    POISON_OF_REDIS,
    TOO_DEEP,
    Message,
    honest,
    mutated,
    send_rabbitmq,
    send_redis,
)
from tests.attacks.sizes import ATTACKS, size
from tests.fixtures.deployment import Deployment, fresh_database
from tests.fixtures.rabbitmq_server import RabbitServer

pytestmark = pytest.mark.slow
QUEUES = tuple({honest(kind).queue for kind in KINDS} - {CONTROL_EXCHANGE})


class Target:
    """A deployment, and a way to put anything into its broker."""

    def __init__(
        self, deployment: Deployment, send: Callable[[Message], bool], waiting: Callable[[], int]
    ) -> None:
        self.deployment = deployment
        self.send = send
        self._waiting = waiting
        self.is_redis = deployment.broker == deployment.url

    def mains(self) -> dict[str, int]:
        """The processes that must not end: role and pid."""
        return {p.role: p.pid for p in self.deployment.processes() if p.role in ("work", "control", "sweep")}

    def rejected(self) -> int:
        return self.deployment.store.rejections().total

    def waiting(self) -> int:
        """The messages that wait or are unacknowledged."""
        return self._waiting()

    def fixloop(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """The program, as its operator calls it on the worker's machine."""
        told = {
            "FIXLOOP_STATE_URL": self.deployment.url,
            "FIXLOOP_BROKER_URL": self.deployment.broker,
            "FIXLOOP_CACHE_DIR": str(self.deployment.folder / "cache"),
        }
        command = [sys.executable, "-m", "fixloop.cli", *words]
        return subprocess.run(
            command, env=os.environ | told, cwd="/", capture_output=True, text=True, timeout=90
        )

    def honest_work(self, workflows: int) -> float:
        """
        The cost of this many workflows, each with a fix and a second run, in seconds.

        Wall time if nothing else runs; CPU time if other tests run too.
        """
        now = time.monotonic if ATTACKS else lambda: cpu_seconds(p.pid for p in self.deployment.processes())
        began = now()
        started = [self.deployment.begin("a -") for _ in range(workflows)]
        self.deployment.finished(*(each.workflow for each in started), seconds=90 + workflows)
        return now() - began


@pytest.fixture(scope="module", params=["redis", "rabbitmq"])
def target(
    request: pytest.FixtureRequest, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """Started once for each broker."""
    url, folder = fresh_database(redis_url), tmp_path_factory.mktemp("attacked")
    server = RabbitServer().start() if request.param == "rabbitmq" else None
    deployment = Deployment(url, folder, broker=server.url if server else "", FIXLOOP_LOG_LEVEL="WARNING")
    client = redis.Redis.from_url(url)
    connection: Any = server.connect() if server else None
    database = int(url.rpartition("=")[2])

    def send(message: Message) -> bool:
        nonlocal connection
        if server is not None:
            connection = connection if connection.connected else server.connect()
            return send_rabbitmq(connection.channel(1 if 1 in connection.channels else None), message)
        send_redis(client, message, database=database)
        return True

    def waiting() -> int:
        if server is None:
            lists = [
                name for name in client.scan_iter("*") if client.type(name) == b"list" and b"{" not in name
            ]
            return sum(map(client.llen, lists)) + client.hlen("unacked")
        return sum(
            int(connection.channel(1).queue_declare(name, passive=True).message_count) for name in QUEUES
        )

    try:
        made = Target(deployment.start(), send, waiting)
        made.honest_work(1)  # by then its queues exist: RabbitMQ drops messages without one
        yield made
        deployment.stop()
    finally:
        deployment.end()
        client.close()
        if server is not None:
            connection.close()
            server.end()


def test_every_invalid_message_is_refused_and_valid_work_continues(target: Target) -> None:
    before, rejected_before = target.mains(), target.rejected()
    poison = {**POISON, **(POISON_OF_REDIS if target.is_redis else POISON_OF_RABBITMQ)}
    tasks = [kind for kind in KINDS if kind != "control"]

    sent = sum(target.send(spoil(honest(kind))) for spoil in poison.values() for kind in tasks)
    target.honest_work(2)

    target.deployment.until(lambda: target.rejected() - rejected_before >= sent)
    assert target.rejected() - rejected_before == sent >= len(poison) * len(tasks) * 0.9
    assert target.mains() == before
    kept = target.deployment.store.rejections().kept
    assert len(kept) == 100
    assert all(each.why and len(each.text) <= 2000 for each in kept)
    assert target.deployment.log().count(" is rejected: ") >= sent
    assert "Traceback" not in target.deployment.log()
    checked = target.fixloop("worker", "--check")
    assert checked.returncode == 0, checked.stderr
    assert f"rejected so far: {target.rejected()} messages, the last at " in checked.stderr
    assert len(target.fixloop("doctor", "--rejected").stdout.splitlines()) == 2 * len(kept)
    target.deployment.until(lambda: target.waiting() == 0)


def test_a_refused_message_takes_no_slot_of_the_pool(target: Target) -> None:
    before = target.rejected()

    sent = sum(target.send(TOO_DEEP(honest("validation.validate", number))) for number in range(1, 9))
    target.honest_work(1)

    target.deployment.until(lambda: target.rejected() - before >= sent)
    assert target.rejected() - before == sent


def test_valid_work_keeps_half_its_speed_under_mutated_messages(target: Target) -> None:
    """500 messages of every kind, mutated, in `make test`; 10,000 in `make attacks` and `make chaos`."""
    before = target.mains()
    count = size(500, 10_000) if target.is_redis else size(100, 2_000)
    random = Random(size(1, 2))
    messages = [mutated(random, number) for number in range(count)]
    workflows = count // 5  # about as many messages
    alone = target.honest_work(workflows)

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(lambda: [target.send(message) for message in messages])
        attacked = target.honest_work(workflows)
        sending.result()

    target.deployment.until(lambda: target.waiting() == 0)
    assert target.mains() == before
    slower = attacked / max(alone, target.honest_work(workflows))
    print(f"{alone:.1f} s alone, {attacked:.1f} s attacked: {slower:.2f}; {target.rejected()} rejected")
    assert slower < 2


def test_workers_answer_health_queries_and_refuse_other_remote_commands(target: Target) -> None:
    app = target.deployment.producer
    app.conf.control_exchange = "celery"
    before = target.rejected()

    assert len(app.control.inspect(timeout=5.0).ping() or ()) == 2
    stats = app.control.inspect(timeout=5.0).stats() or {}
    assert len(stats) == 2
    assert app.control.inspect(timeout=1.0).conf() is None
    for order, told in (
        ("add_consumer", {"queue": "others"}),
        ("cancel_consumer", {"queue": "fixloop.fix"}),
        ("shutdown", {}),
        ("revoke", {"task_id": "0a1b2c3d-7-1.x", "terminate": True}),
        ("rate_limit", {"task_name": "fixloop.validation.fix", "rate_limit": "1/h"}),
        ("pool_grow", {"n": 1000}),
    ):
        assert app.control.broadcast(order, arguments=told, reply=True, timeout=0.5) == []
    target.deployment.until(lambda: target.rejected() - before == 14)
    target.honest_work(1)
