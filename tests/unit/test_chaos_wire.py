"""How a chaos run reads the traffic between a worker and Redis."""

import json
from hashlib import sha1
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from fixloop.store.keys import artifact_key, artifacts_key, shard_keys, workflow_key
from fixloop.store.scripts import source
from fixloop.testing.wire import (
    BEGUN,
    EFFECTS,
    Request,
    Requests,
    answer_to,
    encoded,
    has_claimed,
    has_swept,
    is_whole,
    step_of,
    ticket_in,
    twice,
)

WORKFLOW = "d15a57e2-5-1"
TICKET = "d15a57e2-5-1.security.recheck.2.1"
MESSAGE = {"body": "W10=", "headers": {"id": TICKET}, "properties": {"delivery_tag": "one"}}
PUSH = (b"LPUSH", b"fixloop.security", json.dumps(MESSAGE).encode())


@pytest.mark.parametrize(
    ("ticket", "step"),
    [
        (TICKET, "recheck"),
        ("d15a57e2-5-1.security.confirm.2.1.e2", "confirm"),
        ("d15a57e2-5-1.vas.2.1", "work"),
        ("d15a57e2-5-1.finish.2", "finish"),
        ("6c1f1a0e-7d39-4a3c-9a6c-3b0d8d9a4f10", ""),
        ("", ""),
    ],
)
def test_a_ticket_s_id_contains_its_step(ticket: str, step: str) -> None:
    assert step_of(ticket) == step


@given(st.lists(st.integers(0, 300), max_size=6))
def test_a_command_is_read_whatever_its_chunks(cuts: list[int]) -> None:
    data, requests = encoded((b"PING",)) + encoded(PUSH), Requests()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    found = [one for begin, end in pairwise(edges) for one in requests.read(data[begin:end])]

    assert found == [Request("hint", TICKET, PUSH)]


def test_scripts_are_recognised_by_their_digests() -> None:
    claim = sha1(source("claim").encode()).hexdigest().encode()
    read = sha1(source("read").encode()).hexdigest().encode()

    found = Requests().read(
        encoded((b"EVALSHA", claim, b"1", b"key", TICKET.encode(), b"me"))
        + encoded((b"EVALSHA", read, b"1", b"key"))
    )

    assert [(one.kind, one.ticket) for one in found] == [("claim", TICKET)]


def test_a_commit_is_recognised_by_its_ticket_and_its_claims() -> None:
    digest = sha1(source("commit").encode()).hexdigest().encode()
    change = json.dumps({"ticket": TICKET, "claim": f"{WORKFLOW}.security.report.2.1"}).encode()

    (found,) = Requests().read(encoded((b"EVALSHA", digest, b"1", b"key", change)))

    assert (found.kind, found.ticket, found.claims) == ("commit", TICKET, f"{WORKFLOW}.security.report.2.1")
    assert has_claimed(b"*3\r\n$2\r\nok\r\n*0\r\n*2\r\n:4\r\n:5\r\n")
    assert not has_claimed(b"*3\r\n$2\r\nok\r\n*0\r\n*0\r\n")


def test_an_unacknowledged_message_is_recognised_by_its_ticket() -> None:
    stored = json.dumps([MESSAGE, "", "fixloop.security"]).encode()

    assert Requests().read(encoded((b"HSET", b"unacked", b"tag", stored))) == [Request("unacked", TICKET)]


def test_a_sweep_is_recognised_by_its_shard_and_whether_it_was_allowed() -> None:
    digest, shard = sha1(source("sweep").encode()).hexdigest().encode(), shard_keys(3).shard

    found = Requests().read(encoded((b"EVALSHA", digest, b"1", shard.encode(), b"me")))

    assert found == [Request("sweep", shard)]
    assert has_swept(b"*10\r\n:1\r\n$3\r\n")
    assert not has_swept(b"*10\r\n:0\r\n$3\r\n")


@pytest.mark.parametrize("name", [artifact_key(WORKFLOW, "d1"), artifacts_key(WORKFLOW)])
def test_artifacts_are_recognised_by_their_keys(name: str) -> None:
    words = (b"HSET", name.encode(), b"d1", b"bytes")

    assert Requests().read(encoded(words)) == [Request("artifact", "", words)]
    assert Requests().read(encoded((b"HSET", workflow_key(WORKFLOW).encode(), b"a", b"b"))) == []


@pytest.mark.parametrize(("name", "kind"), [(BEGUN, "claim"), (EFFECTS, "commit")])
def test_the_counters_of_a_bare_step_count_as_claim_and_commit(name: str, kind: str) -> None:
    words = (b"HINCRBY", name.encode(), TICKET.encode(), b"1")

    (found,) = Requests().read(encoded(words))

    assert (found.kind, found.ticket) == (kind, TICKET)


def test_a_copy_is_the_same_message_with_its_own_tag() -> None:
    name, queue, data = twice(Request("hint", TICKET, PUSH))

    assert (name, queue) == PUSH[:2]
    copied = json.loads(data)
    assert copied["properties"].pop("delivery_tag") != "one"
    assert copied == {**MESSAGE, "properties": {}}


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (b"*2\r\n$2\r\nok\r\n:1\r\n", "ok"),
        (b"*4\r\n$4\r\nbusy\r\n", "busy"),
        (b"-NOSCRIPT none\r\n", ""),
        (b":1\r\n", "ok"),
    ],
)
def test_an_answer_begins_with_its_status(reply: bytes, status: str) -> None:
    assert answer_to(reply) == status


def test_a_reply_is_complete_with_its_last_byte() -> None:
    reply = b"*2\r\n$2\r\nok\r\n:1\r\n"

    assert not any(is_whole(reply[:cut]) for cut in range(len(reply)))
    assert is_whole(reply)
    assert is_whole(reply + b"*2\r\n")
    assert is_whole(b"-NOSCRIPT none\r\n")


def test_a_message_is_found_only_by_its_own_id() -> None:
    other = json.dumps({"headers": {"root_id": TICKET, "id": "another"}}).encode()

    assert ticket_in(PUSH[2], [TICKET]) == TICKET
    assert ticket_in(PUSH[2].replace(b": ", b":"), [TICKET]) == TICKET
    assert ticket_in(other, [TICKET]) == ""
