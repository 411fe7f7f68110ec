"""An entry that was written without the deployment's key is found, however well it fits into the chain."""

from pathlib import Path

import pytest

from fixloop.errors import UsageError
from fixloop.store.contract import Store
from fixloop.store.entries import ENTRY_LIMIT_BYTES
from fixloop.store.seal import Sealing, sealing_in
from tests.fixtures.store_samples import FLOW, change, created

KEY = Sealing(b"0123456789abcdef0123456789abcdef")
OTHER = Sealing(b"another key of another deployment")


@pytest.fixture
def sealed(store: Store) -> Store:
    """A store with a key, and a workflow of three entries, the second of which is kept as an artifact."""
    store.sealing = KEY
    created(store, entry={"at": "2026-03-01T09:00:00Z", "n": 1})
    large = "".join(chr(33 + number * number % 89) for number in range(8 * ENTRY_LIMIT_BYTES))
    for version, said in ((1, large), (2, 'ü " } small')):
        committed = store.commit(change(version, entry={"at": "2026-03-01T09:00:01Z", "said": said}))
        assert committed.status == "ok"
    return store


def test_sealed_entries_verify_and_read_as_before(sealed: Store) -> None:
    assert sealed.verify(FLOW) == []
    assert [set(entry.body) for entry in sealed.history(FLOW)] == [
        {"at", "n"},
        {"at", "said"},
        {"at", "said"},
    ]


def test_a_commit_without_the_key_is_named(sealed: Store) -> None:
    sealed.sealing = None
    assert sealed.commit(change(3, entry={"at": "2026-03-01T09:00:02Z", "forged": True})).status == "ok"
    sealed.sealing = KEY
    assert sealed.verify(FLOW) == ["entry 4 has no seal: it was not written by fixloop"]


def test_a_commit_with_another_key_is_named(sealed: Store) -> None:
    sealed.sealing = OTHER
    assert sealed.commit(change(3, entry={"at": "2026-03-01T09:00:02Z", "forged": True})).status == "ok"
    sealed.sealing = KEY
    assert sealed.verify(FLOW) == ["entry 4 has a seal that is not its own: it was not written by fixloop"]


def test_a_seal_is_valid_only_at_its_place() -> None:
    text = b'{"at":"2026-03-01T09:00:00Z"}'
    made = KEY.sealed(FLOW, 3, "a" * 64, "b" * 64, text)
    assert KEY.objection(FLOW, 3, "a" * 32, "b" * 32, made) == ""
    moved = [(f"{FLOW}0", 3, "a", "b"), (FLOW, 4, "a", "b"), (FLOW, 3, "c", "b"), (FLOW, 3, "a", "c")]
    for workflow, number, prev, state in moved:
        assert "not its own" in KEY.objection(workflow, number, prev * 32, state * 32, made)


def test_entries_older_than_the_key_need_no_seal(store: Store) -> None:
    created(store, entry={"at": "2026-02-01T09:00:00Z", "n": 1})
    store.sealing = KEY._replace(since="2026-02-02T00:00:00Z")
    assert store.verify(FLOW) == []
    store.sealing = KEY._replace(since="2026-01-31T00:00:00Z")
    assert store.verify(FLOW) == ["entry 1 has no seal: it was not written by fixloop"]


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "seal.key"
    first = sealing_in(file, create=True)
    assert first is not None
    assert first == sealing_in(file, create=True) == sealing_in(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(first.key) == 64
    assert first.since.endswith("Z")
    assert [each.name for each in tmp_path.iterdir()] == ["seal.key"]


def test_a_file_without_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(UsageError, match="at least 16 characters"):
        sealing_in(tmp_path / "short")
    with pytest.raises(UsageError, match="cannot read the key"):
        sealing_in(tmp_path / "missing")
    assert sealing_in(None) is None
