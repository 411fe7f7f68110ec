"""What `fixloop audit verify` says when a history in Redis was edited by hand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import redis

from fixloop.store.entries import Texts, digest_of, frame_of
from fixloop.store.keys import artifacts_key, history_key, workflow_key
from fixloop.store.packing import NOTHING, context_of, pack, pack_alone, unpack
from tests.fixtures.project import MEND, TOML, Host, Project, Told
from tests.fixtures.store_samples import reworded, text_of

pytestmark = pytest.mark.slow


class Kept(NamedTuple):
    """A workflow that has ended, and a way to its keys."""

    project: Project
    client: Any
    """redis-py's; its types know of no list items that are bytes."""
    workflow: str

    def entry(self, index: int) -> bytes:
        return bytes(self.client.lindex(history_key(self.workflow), index))

    def verify(self, *words: str) -> Told:
        return self.project.fixloop("audit", "verify", *words)


@pytest.fixture(scope="module")
def kept(host: Host) -> Iterator[Kept]:
    """A project whose one failure was fixed."""
    project = host.project("audited", toml=f'[fixer]\ncommand = "{MEND}"\n' + TOML)
    assert project.submit().code == 0
    client = redis.Redis.from_url(host.url)
    try:
        yield Kept(project, client, project.status()["workflow_id"])
    finally:
        client.close()


@contextmanager
def put_back(client: Any, key: str) -> Iterator[None]:
    """Undo the block's changes to `key`."""
    before = client.dump(key)
    try:
        yield
    finally:
        client.restore(key, 0, before, replace=True)


def flipped(data: bytes) -> bytes:
    """Flip one bit of one byte."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def winner(entries: list[bytes], index: int) -> bytes:
    """A forgery in the same form: the entry as it would have been stored with other content."""
    return reworded(entries, index, b"test-runner", b"test-winner")


@pytest.mark.proves("B18")
def test_an_untouched_history_verifies(kept: Kept) -> None:
    told = kept.verify("1")

    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"{kept.workflow}: verified: ")


@pytest.mark.proves("B18")
@pytest.mark.parametrize("lie", [lambda entries, index: flipped(entries[index]), winner])
@pytest.mark.parametrize("seq", [1, 4, -1])
def test_a_changed_entry_is_named(kept: Kept, seq: int, lie: Callable[[list[bytes], int], bytes]) -> None:
    key = history_key(kept.workflow)
    entries = kept.client.lrange(key, 0, -1)
    index = seq - 1 if seq > 0 else len(entries) - 1

    with put_back(kept.client, key):
        kept.client.lset(key, index, lie(entries, index))
        told = kept.verify("1")

    assert told.code == 1
    assert f"{kept.workflow}: entry {index + 1} " in told.out
    assert "Traceback" not in told.err
    assert kept.verify("1").code == 0


@pytest.mark.proves("B18")
def test_a_removed_entry_is_named(kept: Kept) -> None:
    key = history_key(kept.workflow)

    with put_back(kept.client, key):
        kept.client.lset(key, 2, b"gone")
        kept.client.lrem(key, 1, "gone")
        told = kept.verify("1")

    assert told.code == 1
    assert "entry 3 is missing" in told.out


@pytest.mark.proves("B18")
def test_reordered_entries_are_named(kept: Kept) -> None:
    key = history_key(kept.workflow)
    second, third = kept.entry(1), kept.entry(2)

    with put_back(kept.client, key):
        kept.client.lset(key, 1, third)
        kept.client.lset(key, 2, second)
        told = kept.verify("1")

    assert told.code == 1
    assert "entry 3 was changed" in told.out


def skipped(kept: Kept, snapshot: bytes) -> bytes:
    """The snapshot as if the workflow had ended differently."""
    texts = Texts(kept.client.lrange(history_key(kept.workflow), 0, -1))
    text = unpack(snapshot, texts)
    assert text is not None
    return pack(text.replace(b"success", b"skipped"), context_of(snapshot, texts))


@pytest.mark.parametrize("lie", [lambda _, data: flipped(data), skipped])
def test_a_changed_snapshot_is_named(kept: Kept, lie: Callable[[Kept, bytes], bytes]) -> None:
    key = workflow_key(kept.workflow)
    snapshot = kept.client.hget(key, "snapshot")

    with put_back(kept.client, key):
        kept.client.hset(key, "snapshot", lie(kept, snapshot))
        told = kept.verify("1")

    assert told.code == 1
    assert "the snapshot" in told.out


def test_a_verdict_that_disagrees_with_the_snapshot_is_named(kept: Kept) -> None:
    key = workflow_key(kept.workflow)

    with put_back(kept.client, key):
        kept.client.hset(key, "verdict", "passed_with_known_issues")
        told = kept.verify("1")

    assert told.code == 1
    assert "verdict" in told.out


@pytest.mark.proves("B18")
@pytest.mark.parametrize("what", ["changed", "missing"])
def test_a_changed_or_missing_artifact_is_named_with_its_entry(kept: Kept, what: str) -> None:
    digest = named_artifact(kept)
    key = artifacts_key(kept.workflow)

    with put_back(kept.client, key):
        if what == "changed":
            kept.client.hset(key, digest, pack_alone(b"another report"))
        else:
            kept.client.hdel(key, digest)
        told = kept.verify("1")

    assert told.code == 1
    assert f"artifact {digest}, named by entry " in told.out
    assert what in told.out


@pytest.mark.proves("B18")
def test_a_recomputed_chain_is_caught_by_replaying_the_decisions(kept: Kept) -> None:
    key, hash_key = history_key(kept.workflow), workflow_key(kept.workflow)
    entries = kept.client.lrange(key, 0, -1)

    with put_back(kept.client, key), put_back(kept.client, hash_key):
        head = ""
        for index, stored in enumerate(entries):
            frame = frame_of(stored)
            assert frame is not None
            text = text_of(entries, index).replace(b"1 failure", b"9 failures")
            forged = frame._replace(prev=head, packed=pack(text, NOTHING)).stored()
            kept.client.lset(key, index, forged)
            head = digest_of(forged)
        snapshot = unpack(kept.client.hget(hash_key, "snapshot"), Texts(entries)) or b""
        kept.client.hset(hash_key, mapping={"head": head, "snapshot": pack(snapshot, NOTHING)})
        told = kept.verify("1")

    assert told.code == 1
    assert "entry 2" in told.out


def test_all_workflows_of_the_project_are_verified_without_a_number(kept: Kept) -> None:
    key = history_key(kept.workflow)

    with put_back(kept.client, key):
        kept.client.lset(key, 0, b"")
        told = kept.verify("--json")

    assert told.code == 1
    [found] = told.document["workflows"]
    assert found["problems"][0].startswith("entry 1 was changed")


def named_artifact(kept: Kept) -> str:
    """The digest of a report that the history names."""
    told = kept.project.fixloop("log", "1", "--all", "--json")
    assert told.code == 0
    entries = kept.client.lrange(history_key(kept.workflow), 0, -1)
    texts = [text_of(entries, index) for index in range(len(entries))]
    named = [text.partition(b'"artifacts":["')[2][:64].decode() for text in texts]
    return [digest for digest in named if digest][1]
