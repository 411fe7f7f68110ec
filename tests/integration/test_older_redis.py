"""A Redis that an older version filled: its workflows verify, are archived, are purged, and continue."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from fixloop.errors import ExitCode
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_key
from tests.fixtures.command_stage import Agents, empty_store, said
from tests.unit.golden_schema import FOLDER

pytestmark = pytest.mark.slow

ENDED: Final = "0a1b2c3d-47-1"
LIVE: Final = "0a1b2c3d-48-1"
Capsys = pytest.CaptureFixture[str]


def restored(client: Any, name: str) -> None:
    """The keys of a golden file: text is base64, a sorted set a list of pairs."""
    for key, (kind, value) in json.loads((FOLDER / "redis" / f"{name}.json").read_bytes()).items():
        if kind == "hash":
            client.hset(key, mapping={_bytes(field): _bytes(text) for field, text in value.items()})
        elif kind == "list":
            client.rpush(key, *map(_bytes, value))
        else:
            client.zadd(key, {_bytes(member): score for member, score in value})


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


@pytest.fixture(params=["version-1-first", "version-1"])
def store(
    request: pytest.FixtureRequest, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """What version 1 of the schema left: one workflow that passed, one that waits for its report to be sent."""
    with empty_store(redis_url, tmp_path, monkeypatch) as found, redis.Redis.from_url(redis_url) as client:
        restored(client, request.param)
        monkeypatch.setenv("FIXLOOP_ARCHIVE_DIR", str(tmp_path / "archive"))
        yield found


@pytest.mark.proves("B18")
def test_a_history_of_version_1_verifies(store: Store, capsys: Capsys) -> None:
    told = said(capsys, "audit", "verify", "--project", "0a1b2c3d")

    assert (told.code, told.err) == (ExitCode.DONE, "")
    assert [line.split(": verified: ")[0] for line in told.out.splitlines()] == [ENDED, LIVE]


@pytest.mark.proves("B18")
@pytest.mark.parametrize(
    ("name", "value"), [("verdict", "lost"), ("updated_at", "2026-11-22T20:15:40+00:00")]
)
def test_a_field_changed_since_is_still_named(
    store: Store, redis_url: str, capsys: Capsys, name: str, value: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.hset(workflow_key(ENDED), name, value)

    told = said(capsys, "audit", "verify", ENDED)

    assert (told.code, f"field {name} was changed" in told.out) == (ExitCode.WRONG, True)


@pytest.mark.proves("G26")
@pytest.mark.parametrize(
    ("command", "done", "verifies"),
    [("archive", "archived", ExitCode.DONE), ("purge", "purged", ExitCode.USAGE)],
)
def test_a_workflow_that_ended_under_version_1_is_archived_or_purged_by_age(
    store: Store, capsys: Capsys, command: str, done: str, verifies: ExitCode
) -> None:
    young = said(capsys, command, "--older-than", "100000d")
    put_away = said(capsys, command, "--older-than", "0")

    assert (young.code, young.out) == (ExitCode.DONE, "")
    assert put_away.code == ExitCode.DONE
    assert put_away.out.startswith(f"{ENDED}  {done}  ended 2026-11-22 ")
    assert said(capsys, "audit", "verify", ENDED).code == verifies
    assert [name for name, _ in store.workflows()] == [LIVE]


def test_a_workflow_started_under_version_1_continues_to_its_end(store: Store, capsys: Capsys) -> None:
    assert Agents(store).run(LIVE).ended

    assert said(capsys, "audit", "verify", LIVE).code == ExitCode.DONE
    assert said(capsys, "archive", "--older-than", "0").out.count("  archived  ") == 2
