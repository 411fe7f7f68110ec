"""
Damage to what is stored of one workflow, done to each of its keys in ten ways: others are shown, swept and archived.

Its neighbours are in the same shard, where one script handles them all.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import redis

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_in
from fixloop.engine.replay import ADDED
from fixloop.errors import Damaged, ExitCode
from fixloop.store import keys
from fixloop.store.contract import Store
from fixloop.store.entries import frame_of
from fixloop.store.packing import NOTHING, pack
from tests.attacks.sizes import size
from tests.fixtures.command_stage import OWNER, PROJECT, Agents, Said, empty_store, said
from tests.fixtures.patience import slack
from tests.fixtures.profile_stage import Profiles
from tests.fixtures.store_samples import release_all_of

pytestmark = pytest.mark.slow

Capsys = pytest.CaptureFixture[str]
PROFILES: Final = ("validation", "cycle", "handoff")
TARGET: Final = f"{PROJECT}-47-1"
SHARD: Final = keys.shard_of(TARGET)
NESTED: Final = b'{"schema_version":' + b"[" * 100_000
LONGEST_SECONDS: Final = 20.0

VALUES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty": lambda value: b"",
    "cut": lambda value: value[: len(value) // 2],
    "flipped": lambda value: bytes(byte ^ (place == len(value) // 2) for place, byte in enumerate(value)),
    "no text": lambda value: b"\xff\xfe\x00garbled",
    "nested": lambda value: NESTED,
    "nested, packed": lambda value: pack(NESTED, NOTHING),
    "another state": lambda value: pack(b'{"workflow":1}', NOTHING),
    "packed by others": lambda value: b"\x07" + value[1:],
    "huge": lambda value: b"9" * 5000,
    "no number": lambda value: b"nan",
}
"""How a value is changed; another way is to delete it."""


MEMBERS: Final = (
    b"\xff\xfe",
    b"",
    b"|",
    b".",
    b"nan|nan",
    TARGET.encode(),
    TARGET.encode() + b".x",
    b"a|3|x|y|z",
)
"""Entries of lists that belong to no workflow."""


class Damage(NamedTuple):
    """Something done to the workflow."""

    name: str
    commands: tuple[tuple[Any, ...], ...]
    """Of Redis."""
    is_seen: bool = True
    """Whether `audit verify` has to report it; it need not without a digest or a second copy."""

    def do(self, client: Any) -> None:
        for words in self.commands:
            client.execute_command(*words)


def of_key(name: str, kind: str, *, is_seen: bool = True) -> Iterator[Damage]:
    """A key that is missing or of the wrong type."""
    makes = {
        "string": ("SET", name, b"\xff"),
        "hash": ("HSET", name, b"\xff", b"\xfe"),
        "list": ("RPUSH", name, b"\xff", b"#1\n"),
        "set": ("SADD", name, b"\xff"),
        "zset": ("ZADD", name, 1, b"\xff"),
        "stream": ("XADD", name, "*", b"\xff", b"\xfe"),
    }
    yield Damage(f"{name} deleted", (("DEL", name),), is_seen)
    for other, make in makes.items():
        if other != kind:
            yield Damage(f"{name} a {other}", (("DEL", name), make), is_seen)


def of_fields(client: Any, name: str, shown: frozenset[str]) -> Iterator[Damage]:
    """Each field of a workflow's hash."""
    for field, value in client.hgetall(name).items():
        told = field.decode()
        is_seen = told in shown or told in ("version", "head", "snapshot")
        for way, made in made_of(value):
            is_garbled = told.startswith("t:") and way not in ("cut", "flipped")
            yield Damage(f"{told} {way}", (("HSET", name, field, made),), is_seen or is_garbled)
        # What older versions did not write may be missing.
        yield Damage(f"{told} deleted", (("HDEL", name, field),), is_seen and told not in ADDED)


def made_of(value: bytes) -> Iterator[tuple[str, bytes]]:
    return ((way, made) for way, make in VALUES.items() if (made := make(value)) != value)


def of_history(client: Any, name: str) -> Iterator[Damage]:
    """The list of entries, and each of them."""
    entries = client.lrange(name, 0, -1)
    yield Damage("history without its end", (("RPOP", name),))
    yield Damage("history without its beginning", (("LPOP", name),))
    yield Damage("history with a stranger", (("RPUSH", name, b"\xff"),))
    yield Damage("history twice", (("RPUSH", name, *entries),))
    for place, value in enumerate(entries):
        misnumbered = b"#" + b"9" * 5000 + b"\n" + value
        for way, made in (*made_of(value), ("misnumbered", misnumbered)):
            yield Damage(f"entry {place + 1} {way}", (("LSET", name, place, made),))


def of_contents(store: Store, entries: list[bytes]) -> Iterator[Damage]:
    """A state and entries of the right form with other content."""
    found = store.read(TARGET)
    assert found is not None
    state = json.loads(found.snapshot)
    for key in state:
        values: tuple[object, ...] = ({}, "x", -1)
        for value in values:
            made = pack(json.dumps(state | {key: value}, separators=(",", ":")).encode(), NOTHING)
            yield Damage(f"state's {key} {value}", (("HSET", keys.workflow_key(TARGET), "snapshot", made),))
    for place, entry in enumerate(entries):
        frame = frame_of(entry)
        assert frame is not None
        for text in (
            b"{}",
            b'{"event":1}',
            b'{"event":{"kind":"x"},"messages":[{"body":1}],"at":1,"artifacts":[1]}',
        ):
            lie = frame._replace(packed=pack(text, NOTHING)).stored()
            yield Damage(
                f"entry {place + 1} says {text!r}", (("LSET", keys.history_key(TARGET), place, lie),)
            )


def of_lists(*, is_live: bool) -> Iterator[Damage]:
    """The entries of the shard's lists about the workflow, and those that belong to no workflow."""
    shared, feature = keys.shard_keys(SHARD), keys.feature_of(TARGET)
    other = ("HDEL", shared.live, feature) if is_live else ("HSET", shared.live, feature, 1)
    yield Damage("listed as what it is not", (other,))
    yield Damage("unlisted", (("ZREM", shared.workflows, TARGET),))
    for made in (b"\xff", b"nan", b"ffffffff-1-1"):
        yield Damage(f"live as {made!r}", (("HSET", shared.live, feature, made),))
    sorted_sets = (shared.pending, shared.leases, shared.due, shared.delayed, shared.workflows)
    for made in MEMBERS:
        for name in (*sorted_sets, keys.ended_key(SHARD)):
            yield Damage(f"{made!r} in {name}", (("ZADD", name, 0, made),), False)
        yield Damage(f"{made!r} in owners", (("HSET", shared.owners, made, made),), False)
        yield Damage(f"{made!r} made", (("HSET", shared.shard, b"made:" + made, made),), False)
        yield Damage(f"{made!r} retired", (("HSET", keys.retired_key(SHARD), feature, made),), False)


class Database(NamedTuple):
    """A Redis with the workflow and its neighbours, as it is before each damage."""

    client: Any
    store: Store
    before: dict[bytes, bytes]
    live: list[str]
    ended: list[str]
    folder: Path

    def restored(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FIXLOOP_ARCHIVE_DIR", str(self.folder / f"archive-{number}"))
        self.client.flushall()
        with self.client.pipeline() as pipe:
            for name, data in self.before.items():
                pipe.restore(name, 0, data)
            pipe.execute()

    def damages(self) -> list[Damage]:
        found = self.store.read(TARGET)
        assert found is not None
        name, history, own = keys.workflow_key(TARGET), keys.history_key(TARGET), keys.artifacts_key(TARGET)
        made = [*of_key(name, "hash"), *of_key(history, "list"), *of_history(self.client, history)]
        made += of_contents(self.store, self.client.lrange(history, 0, -1))
        made += of_lists(is_live=not found.fields.get("outcome"))
        made += of_fields(self.client, name, frozenset(found.fields))
        made += of_key(own, "hash") if self.client.exists(own) else ()
        return [*made, *of_key(keys.lock_key(TARGET, "archive"), "hash", is_seen=False)]


@contextmanager
def unsynced(client: Any) -> Iterator[None]:
    """Thousands of writes that are not needed after a crash."""
    client.config_set("appendfsync", "no")
    yield
    client.config_set("appendfsync", "always")


@pytest.fixture(params=[(profile, ended) for profile in PROFILES for ended in (False, True)], ids=str)
def database(
    request: pytest.FixtureRequest, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    profile, is_ended = request.param
    issues = (issue for issue in count(100) if keys.shard_of(f"{PROJECT}-{issue}-1") == SHARD)
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        redis.Redis.from_url(redis_url) as client,
        unsynced(client),
    ):
        begin(store, profile, 47)
        live = [begin(store, each, next(issues)) for each in PROFILES]
        ended = [begin(store, each, next(issues)) for each in PROFILES]
        for workflow in (*ended, *((TARGET,) if is_ended else ())):
            end(store, workflow)
        store.locks.acquire(TARGET, "src/a.py", "builder")
        store.claim(ticket_of(store, live[0]), OWNER, "token", lease_seconds=0.001)
        before = {name: client.dump(name) for name in client.keys("*")}
        yield Database(client, store, before, live, ended, tmp_path)


def begin(store: Store, profile: str, issue: int) -> str:
    """A workflow that waits for an outside agent or for a step."""
    if profile == "cycle":
        return Profiles(store).cycle(issue)
    if profile == "handoff":
        return Profiles(store).handoff(issue)
    agents = Agents(store)
    digest = store.put_artifact(f"{PROJECT}-{issue}-1", b"{}")
    workflow = agents.start(issue, configuration=digest)
    agents.run(workflow, 1)
    return workflow


def end(store: Store, workflow: str) -> None:
    found = store.read(workflow)
    assert found is not None
    profile = profile_in(found.snapshot)
    ProfileEngine(store, profile).apply(
        workflow, profile.event("cancelled", reason="enough"), operation="cancel"
    )


def ticket_of(store: Store, workflow: str) -> str:
    found = store.read(workflow)
    assert found is not None
    return found.tickets[0].ticket.id


@pytest.mark.proves("B17", "B18", "S30")
def test_damage_to_one_workflow_does_not_affect_the_others(
    database: Database, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    damages = database.damages()
    chosen = random.Random(13).sample(damages, min(size(8, 80), len(damages)))
    wrong = []

    for number, damage in enumerate(chosen):
        database.restored(number, monkeypatch)
        damage.do(database.client)
        began = time.monotonic()
        wrong += [f"{damage.name}: {complaint}" for complaint in complaints(database, damage, capsys)]
        if time.monotonic() - began > slack(LONGEST_SECONDS):
            wrong.append(f"{damage.name}: took {time.monotonic() - began:.0f} s")

    assert wrong == []


def complaints(database: Database, damage: Damage, capsys: Capsys) -> Iterator[str]:
    """Which others do not continue, and what is not reported of the damaged one."""
    for look in (seen, swept, audited, moved, mailed):
        try:
            yield from look(database, damage, capsys)
        except Exception as error:
            yield f"{look.__name__}: {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def seen(database: Database, damage: Damage, capsys: Capsys) -> Iterator[str]:
    """`status` and `inbox`, and the commands that show each of the others."""
    told = said(capsys, "status", "--json")
    listed = {each["workflow_id"]: each["damaged"] for each in told.document["workflows"]}
    yield from (f"status misses {name}" for name in {*database.live, *database.ended} - listed.keys())
    yield from (f"status calls {name} damaged" for name in listed if listed[name] and name != TARGET)
    yield from named(told, TARGET, listed.get(TARGET))
    waiting = said(capsys, "inbox", "--json")
    found = {each["workflow_id"] for each in waiting.document["items"]}
    yield from (f"inbox misses {name}" for name in {*database.live[1:]} - found)
    of_it = [(word, TARGET) for word in ("status", "report", "log")]
    for words in (("report", database.live[1]), ("log", database.ended[0]), *of_it):
        told = said(capsys, *words)
        if (TARGET not in words and told.code != ExitCode.DONE) or "Traceback" in told.err:
            yield f"{' '.join(words)}: {told.code} {told.err}"


def mailed(database: Database, damage: Damage, capsys: Capsys) -> Iterator[str]:
    """What is asked of an agent outside by a cycle; of each workflow there is one of that name."""
    told = said(capsys, "mailbox", "ra", "--json", "--project", PROJECT)
    found = [message["workflow_id"] for message in told.document["messages"]]
    if database.live[1] not in found:
        yield f"mailbox: {told}"


def named(told: Said, workflow: str, damage: str | None) -> Iterator[str]:
    line = str(Damaged(workflow, damage or ""))
    if damage and line not in told.err.replace("fixloop: ", ""):
        yield f"not named: {line}"


def swept(database: Database, damage: Damage, capsys: Capsys) -> Iterator[str]:
    """The sweeper's script, and what the supervisor asks."""
    due = set()
    for _ in range(2):
        found = database.store.sweep(SHARD, owner=OWNER, horizon_seconds=1e9)
        due |= {each.workflow for each in found.deadlines} | {each.workflow for each in found.hints}
    yield from (f"the sweeper misses {name}" for name in {*database.live} - due)
    release_all_of(database.store, {OWNER})
    for workflow, _ in database.store.workflows(live_only=True):
        if workflow != TARGET:
            database.store.read(workflow)


def audited(database: Database, damage: Damage, capsys: Capsys) -> Iterator[str]:
    """`audit verify` finds it, and `repair` sets it aside."""
    told = said(capsys, "audit", "verify", "--project", PROJECT)
    others = {*database.live, *database.ended}
    yield from (f"audit misses {name}" for name in others if f"{name}: verified: " not in told.out)
    if damage.is_seen and (told.code != ExitCode.WRONG or f"{TARGET}: " not in told.out):
        yield f"audit does not see it: {told.out}"
    mended = said(capsys, "repair", TARGET)
    if told.code == ExitCode.DONE:
        return
    if mended.code != ExitCode.DONE or not Path(mended.out.strip()).is_file():
        yield f"repair: {mended}"
    after = said(capsys, "audit", "verify", "--project", PROJECT)
    if after.code != ExitCode.DONE or TARGET in after.out:
        yield f"repair left {after.out}"
    if database.store.live(PROJECT, 47) is not None or database.store.next_number(PROJECT, 47) != 2:
        yield "repair did not free the issue"


def moved(database: Database, damage: Damage, capsys: Capsys) -> Iterator[str]:
    """`archive` and `purge`, of a workflow that is still damaged."""
    database.restored(time.monotonic_ns(), pytest.MonkeyPatch())
    damage.do(database.client)
    told = said(capsys, "purge", "--older-than", "0", "--dry")
    yield from (f"purge misses {name}" for name in database.ended if f"{name}  purged  " not in told.out)
    told = said(capsys, "archive", "--older-than", "0")
    yield from (f"archive misses {name}" for name in database.ended if f"{name}  archived  " not in told.out)
    if f"{TARGET}  kept  " in told.out and told.code != ExitCode.WRONG:
        yield f"archive ends with {told.code}"


@pytest.mark.proves("K10")
@pytest.mark.parametrize("kind", ["string", "list", "hash"])
def test_a_damaged_lock_can_be_acquired(
    kind: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with empty_store(redis_url, tmp_path, monkeypatch) as store, redis.Redis.from_url(redis_url) as client:
        as_it_is = of_key(keys.lock_key(TARGET, "archive"), "")
        next(damage for damage in as_it_is if damage.name.endswith(kind)).do(client)

        grant = store.locks.acquire(TARGET, "archive", "one")

        assert (grant.is_held, store.locks.release(TARGET, "archive", grant.token)) == (True, "ok")
