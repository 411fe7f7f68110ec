"""Mailboxes on a real Redis: what is stored, in which order it is read, and what a broken broker says (G1, K13)."""

import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import redis

from fixloop.errors import InfrastructureError
from fixloop.outside.mailbox import EXCHANGE, Letter, Mailboxes, queue_name
from tests.fixtures.redis_server import RedisServer

pytestmark = pytest.mark.slow

PROJECT = "0a1b2c3d"


def letter(number: int, *, project: str = PROJECT, kind: str = "failure-report") -> Letter:
    return Letter(
        workflow=f"{project}-{number}-1",
        message_id=f"VFR-{number}-test-runner-1",
        uid=f"uid-{number}",
        issue=number,
        type=kind,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    running = RedisServer().start()
    yield running
    running.end()


@pytest.fixture
def client(server: RedisServer) -> Iterator[Any]:
    """The broker's own contents, empty at the beginning."""
    found: Any = redis.Redis.from_url(server.url)
    found.flushall()
    yield found
    found.close()


@pytest.fixture
def mailboxes(server: RedisServer, client: Any) -> Iterator[Mailboxes]:
    made = Mailboxes(server.url)
    yield made
    made.close()


def issues(mailboxes: Mailboxes, project: str = PROJECT, agent: str = "coder") -> list[int]:
    """The letters of a mailbox, read to its end."""
    found = []
    while received := mailboxes.take(project, agent):
        assert received.letter is not None
        found.append(received.letter.issue)
        received.acknowledge()
    return found


@pytest.mark.proves("G1")
def test_a_letter_carries_ids_and_no_text(mailboxes: Mailboxes) -> None:
    mailboxes.put("coder", letter(47), 3)

    received = mailboxes.take(PROJECT, "coder")

    assert received is not None
    assert received.letter == letter(47)
    assert set(letter(47).model_dump()) == {"workflow", "message_id", "uid", "issue", "type"}


def test_a_letter_waits_for_a_reader_that_comes_later(server: RedisServer, client: Any) -> None:
    first = Mailboxes(server.url)
    first.put("coder", letter(47), 3)
    first.close()

    second = Mailboxes(server.url)

    assert issues(second) == [47]
    assert issues(second) == []
    second.close()


@pytest.mark.proves("K13")
def test_the_most_urgent_letter_is_read_first(mailboxes: Mailboxes) -> None:
    for number, priority in enumerate([9, 3, 6, 0, 3], 1):
        mailboxes.put("coder", letter(number), priority)

    assert issues(mailboxes) == [4, 2, 5, 3, 1]


@pytest.mark.proves("G1")
def test_agents_of_one_name_in_two_projects_have_separate_mailboxes(mailboxes: Mailboxes) -> None:
    mailboxes.put("coder", letter(1), 3)
    mailboxes.put("coder", letter(2, project="ffffffff"), 3)
    mailboxes.put("other", letter(3), 3)

    assert issues(mailboxes) == [1]
    assert issues(mailboxes, project="ffffffff") == [2]
    assert issues(mailboxes, agent="other") == [3]


@pytest.mark.proves("G1")
def test_an_unacknowledged_letter_is_delivered_again(server: RedisServer, mailboxes: Mailboxes) -> None:
    mailboxes.put("coder", letter(47), 3)
    reader = Mailboxes(server.url)
    assert reader.take(PROJECT, "coder") is not None
    assert issues(mailboxes) == []

    reader.close()

    assert issues(mailboxes) == [47]


@pytest.mark.proves("A70")
def test_a_mailbox_of_a_wrong_type_is_refused_in_one_sentence(mailboxes: Mailboxes, client: Any) -> None:
    client.set(queue_name(PROJECT, "coder"), "somebody's string")

    for use in (partial(mailboxes.put, "coder", letter(47), 3), partial(mailboxes.take, PROJECT, "coder")):
        with pytest.raises(InfrastructureError, match="WRONGTYPE"):
            use()

    client.delete(queue_name(PROJECT, "coder"))
    mailboxes.put("coder", letter(47), 3)
    assert issues(mailboxes) == [47]


@pytest.mark.proves("A70", "R7")
def test_an_emptied_broker_takes_the_next_letter(mailboxes: Mailboxes, client: Any) -> None:
    mailboxes.put("coder", letter(1), 3)
    client.flushall()

    mailboxes.put("coder", letter(2), 3)

    assert issues(mailboxes) == [2]
    assert not [key for key in client.keys("*") if b"undeliver" in key]


@pytest.mark.proves("A70")
def test_an_unreachable_broker_is_reported_at_once_and_used_when_it_is_back() -> None:
    server = RedisServer().start()
    mailboxes = Mailboxes(server.url)
    mailboxes.put("coder", letter(1), 3)
    server.signal(signal.SIGKILL)

    with pytest.raises(
        InfrastructureError, match=r"the broker at unix://.* did not take part: connection refused"
    ):
        mailboxes.put("coder", letter(2), 3)

    server.start()
    mailboxes.put("coder", letter(3), 3)
    assert issues(mailboxes) == [1, 3]
    mailboxes.close()
    server.end()


def test_a_mailbox_entry_that_is_no_letter_is_recognised(mailboxes: Mailboxes, client: Any) -> None:
    mailboxes.put("coder", letter(47), 3)
    name = queue_name(PROJECT, "coder")
    (key,) = [key for key in client.keys(f"{name}*")]
    client.lset(key, 0, client.lindex(key, 0).replace(b'"body": "', b'"body": "AAAA'))

    received = mailboxes.take(PROJECT, "coder")

    assert received is not None
    assert received.letter is None
    received.acknowledge()
    assert issues(mailboxes) == []


@pytest.mark.parametrize("data", [b"\xff\xff", b"5", b"[]", b"{}", b'{"properties": 5}', b"[" * 100_000])
def test_entries_that_are_no_letters_are_removed_and_the_letters_read(
    mailboxes: Mailboxes, client: Any, data: bytes
) -> None:
    mailboxes.put("coder", letter(47), 3)
    client.lpush(queue_name(PROJECT, "coder"), data)

    received = mailboxes.take(PROJECT, "coder")

    assert received is not None
    assert received.letter is None
    received.acknowledge()
    assert issues(mailboxes) == [47]


def test_a_full_mailbox_takes_letters_regardless_of_what_else_is_in_it(
    server: RedisServer, client: Any
) -> None:
    small = Mailboxes(server.url, most_letters=2)
    small.put("coder", letter(1), 3)
    client.lpush(queue_name(PROJECT, "coder"), b"[]", b"5")

    small.put("coder", letter(2), 3)
    small.put("coder", letter(3), 3)

    assert issues(small)[-1] == 3
    small.close()


def test_an_unread_mailbox_keeps_its_latest_letters(server: RedisServer, client: Any) -> None:
    small = Mailboxes(server.url, most_letters=3)

    for number in range(1, 7):
        small.put("coder", letter(number), 3)

    assert issues(small) == [4, 5, 6]
    small.close()


@pytest.mark.proves("G1")
def test_others_can_bind_a_queue_to_an_agent_s_letters(mailboxes: Mailboxes, client: Any) -> None:
    mailboxes.put("coder", letter(1, kind="escalation"), 0)

    (row,) = client.smembers(f"_kombu.binding.{EXCHANGE.name}")

    assert row.startswith(f"{PROJECT}.coder.#".encode())
    assert row.endswith(queue_name(PROJECT, "coder").encode())
