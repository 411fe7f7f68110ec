"""A history is a chain in which every changed byte is detected."""

import json
import zlib
from hashlib import sha256
from itertools import pairwise

import pytest

from fixloop.errors import ProtocolError
from fixloop.store.contract import Store
from fixloop.store.entries import ARTIFACT_LIMIT_BYTES, ENTRY_LIMIT_BYTES, digest_of
from tests.fixtures.store_samples import FLOW, change, created, reworded, text_of
from tests.fixtures.store_world import World


@pytest.fixture
def written(store: Store) -> Store:
    """A store with a workflow of five entries."""
    created(store, entry={"at": "t1", "n": 1})
    for version in range(1, 5):
        assert store.commit(change(version, entry={"at": f"t{version + 1}", "n": version + 1})).status == "ok"
    return store


def test_entries_are_read_back_in_order_and_chained(written: Store) -> None:
    entries = written.history(FLOW)
    found = written.read(FLOW)

    assert found is not None
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry.body for entry in entries] == [{"at": f"t{number}", "n": number} for number in range(1, 6)]
    assert entries[0].prev == ""
    assert all(
        len(one.prev) >= 32 and before.digest.startswith(one.prev) for before, one in pairwise(entries)
    )
    assert found.head == entries[-1].digest
    assert written.verify(FLOW) == []
    assert [entry.seq for entry in written.history(FLOW, start=3)] == [4, 5]
    assert written.history(FLOW, start=9) == []


@pytest.mark.parametrize("place", range(5))
def test_a_changed_entry_is_named_even_if_it_is_the_last(written: Store, world: World, place: int) -> None:
    entries = world.entries(FLOW)
    entries[place] = reworded(entries, place, b'"n":', b'"N":')
    world.put_entries(FLOW, entries)

    assert written.verify(FLOW) == [
        f"entry {place + 1} was changed: its bytes are not those that were committed"
    ]


@pytest.mark.parametrize("place", range(5))
def test_a_damaged_entry_is_named(written: Store, world: World, place: int) -> None:
    entries = world.entries(FLOW)
    entries[place] = entries[place][:-1] + b"\x00"
    world.put_entries(FLOW, entries)

    (problem,) = written.verify(FLOW)

    assert problem.startswith(f"entry {place + 1} ")
    with pytest.raises(ProtocolError, match="damaged"):
        written.history(FLOW)


@pytest.mark.parametrize("place", range(5))
def test_a_missing_entry_is_named(written: Store, world: World, place: int) -> None:
    entries = world.entries(FLOW)
    del entries[place]
    world.put_entries(FLOW, entries)

    assert written.verify(FLOW) == [f"entry {place + 1} is missing"]


def test_entries_that_were_never_committed_are_detected(written: Store, world: World) -> None:
    entries = world.entries(FLOW)
    world.put_entries(FLOW, [*entries, entries[-1]])

    assert written.verify(FLOW) != []


def test_a_changed_snapshot_is_detected(written: Store, world: World) -> None:
    world.put_snapshot(FLOW, zlib.compress(b'{"after":99}'))
    assert written.verify(FLOW) == ["the snapshot was changed: it is not the state that entry 5 recorded"]

    world.put_snapshot(FLOW, b"no zlib")
    assert written.verify(FLOW) == ["the snapshot cannot be read"]
    with pytest.raises(ProtocolError, match="0a1b2c3d-42-1 is damaged: its snapshot cannot be read"):
        written.read(FLOW)


def test_changed_and_missing_artifacts_are_named_by_their_digest(store: Store, world: World) -> None:
    kept, changed, lost = (store.put_artifact(FLOW, text) for text in (b"kept", b"changed", b"lost"))
    created(store, entry={"at": "t", "artifacts": [kept, changed]})
    store.commit(change(1, entry={"at": "t", "artifacts": [kept, lost]}))
    assert store.verify(FLOW) == []
    assert store.get_artifact(FLOW, kept) == b"kept"
    assert store.get_artifact(FLOW, "0" * 64) is None

    world.put_artifact(FLOW, changed, zlib.compress(b"chanGed"))
    world.put_artifact(FLOW, lost, None)

    assert store.verify(FLOW) == [
        f"artifact {changed}, named by entry 1, was changed",
        f"artifact {lost}, named by entry 2, is missing or cannot be read",
    ]


def test_a_large_artifact_is_kept_as_its_beginning_and_end(store: Store) -> None:
    data = b"begin" + bytes(ARTIFACT_LIMIT_BYTES) + b"end"

    found = store.get_artifact(FLOW, store.put_artifact(FLOW, data))

    assert found is not None
    assert len(found) <= ARTIFACT_LIMIT_BYTES
    assert found.startswith(b"begin")
    assert found.endswith(b"end")
    assert b"left out the middle of %d bytes" % len(data) in found


def test_a_large_entry_is_kept_outside_the_list_and_read_as_any_other(store: Store, world: World) -> None:
    noise = "".join(chr(0x4E00 + (number * number) % 20000) for number in range(20_000))
    entry = {"at": "t1", "text": noise, "artifacts": []}
    created(store, entry=entry)
    store.commit(change(1))

    assert len(world.entries(FLOW)[0]) < ENTRY_LIMIT_BYTES
    assert store.history(FLOW)[0].body == entry
    assert store.verify(FLOW) == []

    whole = text_of(world.entries(FLOW), 0).split(b'"whole":"')[1][:64].decode()
    world.put_artifact(FLOW, whole, None)
    assert store.verify(FLOW) == [f"artifact {whole}, named by entry 1, is missing or cannot be read"]


def noise(number: int) -> str:
    """A unique text of a kilobyte."""
    return "".join(sha256(b"%d %d" % (number, part)).hexdigest() for part in range(16))


def test_repeated_text_takes_almost_no_space(store: Store, world: World) -> None:
    created(store)
    store.commit(change(1, snapshot=noise(1).encode(), entry={"at": "t2", "text": noise(1)}))
    store.commit(change(2, snapshot=noise(1).encode(), entry={"at": "t3", "text": noise(1)}))
    store.commit(change(3, snapshot=noise(1).encode(), entry={"at": "t4", "text": noise(2)}))
    store.commit(change(4, snapshot=noise(2).encode(), entry={"at": "t5", "text": noise(1) + noise(2)}))

    sizes = [len(entry) for entry in world.entries(FLOW)]
    assert [size > 500 for size in sizes] == [False, True, False, True, True]
    assert [entry.body["text"] for entry in store.history(FLOW, 3)] == [noise(2), noise(1) + noise(2)]
    assert store.verify(FLOW) == []


def test_entries_that_build_on_a_damaged_one_are_not_reported(store: Store, world: World) -> None:
    created(store)
    store.commit(change(1, entry={"at": "t2", "text": noise(1)}))
    store.commit(change(2, snapshot=noise(1).encode(), entry={"at": "t3", "text": noise(1)}))
    entries = world.entries(FLOW)
    entries[1] = entries[1][:-1] + b"\x00"
    world.put_entries(FLOW, entries)

    assert store.verify(FLOW) == ["entry 2 was changed: its bytes are not those that were committed"]
    with pytest.raises(ProtocolError, match="0a1b2c3d-42-1 is damaged: its snapshot cannot be read"):
        store.read(FLOW)


def test_data_packed_by_a_newer_version_is_refused_but_not_called_damaged(store: Store, world: World) -> None:
    created(store)
    world.put_snapshot(FLOW, b"\x09\n1234and then its own")

    with pytest.raises(
        ProtocolError, match="a newer fixloop packed this, with dictionary 9; upgrade this one"
    ):
        store.read(FLOW)


def test_a_workflow_of_an_older_version_is_read_and_continues(store: Store, world: World) -> None:
    created(store)
    whole = {"at": "t1", "event": "x", "seq": 1, "prev": "", "state": digest_of(b'{"after":1}')}
    entry = zlib.compress(json.dumps(whole).encode(), 1)
    world.put_entries(FLOW, [entry])
    world.put_snapshot(FLOW, zlib.compress(b'{"after":1}', 1))
    world.put_head(FLOW, digest_of(entry))

    found = store.read(FLOW)

    assert found is not None
    assert (found.snapshot, found.head) == (b'{"after":1}', digest_of(entry))
    assert store.history(FLOW)[0].body == {"at": "t1", "event": "x"}
    assert store.commit(change(1, head=found.head, context=found.context)).status == "ok"
    assert store.commit(change(2, entry={"at": "t3", "text": noise(1)})).status == "ok"
    assert store.commit(change(3, entry={"at": "t4", "text": noise(1)})).status == "ok"
    assert store.verify(FLOW) == []
    assert [entry.seq for entry in store.history(FLOW)] == [1, 2, 3, 4]


def test_any_text_survives(store: Store) -> None:
    entry = {"at": "t", "text": "ü \u2028 \x00 \U0001f600 \ud800", "number": 1.5, "list": [None, True, {}]}
    created(store, entry=entry, fields={"status": 'quote " and \\ and / and ü'})

    found = store.read(FLOW)

    assert found is not None
    assert store.history(FLOW)[0].body == {**entry, "text": "ü \u2028 \x00 \U0001f600 ?"}
    assert found.fields == {"status": 'quote " and \\ and / and ü'}
    assert store.verify(FLOW) == []


@pytest.mark.proves("B18")
@pytest.mark.parametrize("head", ["", "a"])
def test_an_invalid_head_is_detected(store: Store, world: World, head: str) -> None:
    created(store)

    world.put_head(FLOW, head)

    assert "its head is gone, and with it what vouches for the last entry" in store.verify(FLOW)
