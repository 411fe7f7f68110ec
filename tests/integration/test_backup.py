"""A project in a file, and back: everything stored, live workflows continue, and nothing is overwritten."""

import base64
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixloop.cli import main
from fixloop.commands.session import Session, open_session
from fixloop.engine.replay import audit
from fixloop.store import backup, backup_records, keys, packing
from tests.fixtures.command_stage import OWNER, PROJECT, Agents, empty_store
from tests.fixtures.patience import slack
from tests.fixtures.profile_stage import Profiles

pytestmark = pytest.mark.slow


class World:
    """A Redis with a project, and commands that use it."""

    def __init__(self, session: Session, agents: Agents, capsys: pytest.CaptureFixture[str]) -> None:
        self.session, self.agents, self._capsys = session, agents, capsys

    def fixloop(self, *words: str) -> tuple[int, str]:
        code = main(words)
        return code, self._capsys.readouterr().err

    def everything(self) -> dict[bytes, Any]:
        """All keys of workflows with their types, without those that change by themselves."""
        client: Any = self.session.connection
        names = client.call(lambda redis: sorted(redis.keys("fixloop:{*")))
        read = {
            b"hash": "hgetall",
            b"list": "lrange",
            b"zset": "zrange",
            b"set": "smembers",
            b"string": "get",
        }
        found = {}
        for name in names:
            kind = client.call(lambda redis, name=name: redis.type(name))
            if kind == b"stream" or kind not in read:
                continue
            args: tuple[Any, ...] = (0, -1) if kind in (b"list", b"zset") else ()
            found[name] = client.call(lambda redis, n=name, k=kind, a=args: getattr(redis, read[k])(n, *a))
        return found

    def own(self, workflow: str, found: dict[bytes, Any] | None = None) -> list[Any]:
        """The stored data of one workflow, from `everything` if given."""
        names = (keys.workflow_key(workflow), keys.history_key(workflow), keys.artifacts_key(workflow))
        found = self.everything() if found is None else found
        return [found.get(name.encode()) for name in names]

    def histories(self, workflows: Iterable[str]) -> dict[str, Any]:
        found = self.everything()
        return {workflow: self.own(workflow, found)[1] for workflow in workflows}

    def flush(self) -> None:
        self.session.connection.call(lambda client: client.flushall())

    def populate(self) -> dict[str, str]:
        """Workflows in all states → what they wait for."""
        made = {}
        for issue, script in enumerate(("0", "1 0", "1 1 1", "2 1 0"), 1):
            workflow = self.agents.start(issue, script=script)
            self.agents.run(workflow)
            made[workflow] = "ended or waits"
        for issue in range(10, 16):
            made[self.agents.start(issue)] = "a first run"
            made[self.agents.start(issue + 10, script="1 0", fixer="outside")] = "a fix"
            self.agents.run(f"{PROJECT}-{issue + 10}-1")
        return made


@pytest.fixture
def world(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    with empty_store(redis_url, tmp_path, monkeypatch) as store, open_session() as session:
        yield World(session, Agents(store), capsys)


def backed_up(world: World, path: Path) -> Path:
    code, said = world.fixloop("backup", str(path), "--project", PROJECT)
    assert code == 0, said
    return path


def test_a_restored_workflow_is_unchanged_and_continues_to_its_end(world: World, tmp_path: Path) -> None:
    made = world.populate()
    before = {workflow: world.own(workflow) for workflow in made}
    index = world.everything()
    file = backed_up(world, tmp_path / "project.backup")
    world.flush()

    code, said = world.fixloop("restore", str(file))

    assert code == 0, said
    assert f"{len(made)} workflows of project {PROJECT} restored, 0 already there" in said
    after = world.everything()
    for shard in range(keys.SHARDS):
        for name in (keys.shard_keys(shard).workflows, keys.shard_keys(shard).live, keys.ended_key(shard)):
            assert after.get(name.encode()) == index.get(name.encode()), name
    for workflow, (hash_, history, artifacts) in before.items():
        now = world.own(workflow)
        assert (now[1], now[2]) == (history, artifacts)
        assert {name: value for name, value in now[0].items() if not name.startswith(b"s:")} == {
            name: value for name, value in hash_.items() if not name.startswith(b"s:")
        }
        assert audit(world.session.store, workflow).problems == ()
    store = world.agents.store
    for shard in range(keys.SHARDS):
        store.sweep(shard, owner="sweeper")
    for workflow, waits in made.items():
        if waits == "a first run":
            assert world.agents.run(workflow).outcome == "success"
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert world.agents.start(100, script="0") == f"{PROJECT}-100-1"
    assert store.allocate_issue(PROJECT) == 5, "numbers that were used stay used"


def test_restoring_twice_changes_nothing_and_keeps_later_work(world: World, tmp_path: Path) -> None:
    world.populate()
    file = backed_up(world, tmp_path / "project.backup")
    before = world.everything()

    code, said = world.fixloop("restore", str(file))
    same = world.everything()
    changed = f"{PROJECT}-10-1"
    world.agents.run(changed)
    newer = world.own(changed)
    refused = world.fixloop("restore", str(file))
    kept = world.own(changed)
    replaced = world.fixloop("restore", str(file), "--replace")

    assert (code, same) == (0, before), said
    assert refused[0] == 1
    assert f"{changed} is there in another version; --replace overwrites it" in refused[1]
    assert kept == newer
    assert replaced[0] == 0
    assert world.agents.engine.state(changed).outcome is None


def test_a_workflow_with_a_live_successor_is_not_restored(world: World, tmp_path: Path) -> None:
    workflow = world.agents.start(1)
    file = backed_up(world, tmp_path / "project.backup")
    world.flush()
    world.agents.start(1, number=2)

    code, said = world.fixloop("restore", str(file))

    assert code == 1
    assert f"{workflow} has a live successor" in said
    assert world.agents.store.live(PROJECT, 1) == f"{PROJECT}-1-2"


def test_limits_do_not_count_the_time_between_backup_and_restore(world: World, tmp_path: Path) -> None:
    workflow = world.agents.start(1, script="1 0", fixer="outside")
    world.agents.run(workflow)
    found = world.agents.store.read(workflow)
    assert found is not None
    left = {name: due - found.moment.clock for name, due in found.deadlines.items()}
    file = backed_up(world, tmp_path / "project.backup")
    world.flush()
    old = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    lines = [json.loads(line) for line in old[:-1]]
    for line in lines:
        if "workflow" in line:
            # As if the backup had been made an hour ago.
            line["clock"] -= 3600
    rewritten(file, lines)

    world.fixloop("restore", str(file))
    again = world.agents.store.read(workflow)

    assert again is not None
    assert left
    for name, due in again.deadlines.items():
        assert due - again.moment.clock == pytest.approx(left[name] + 3600, abs=30)


def rewritten(file: Path, lines: list[dict[str, Any]]) -> None:
    texts = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
    end = {
        "count": sum("workflow" in line for line in lines),
        "digest": hashlib.sha256(b"".join(texts)).hexdigest(),
    }
    file.write_bytes(gzip.compress(b"".join(texts) + json.dumps(end).encode() + b"\n"))


def test_a_claim_from_before_a_restore_is_stale_after_it(world: World, tmp_path: Path) -> None:
    workflow, store = world.agents.start(1), world.agents.store
    file = backed_up(world, tmp_path / "project.backup")
    found = store.read(workflow)
    assert found is not None
    ticket = found.tickets[0].ticket.id
    before = store.claim(ticket, OWNER, "before")
    world.flush()
    world.fixloop("restore", str(file))
    store.sweep(keys.shard_of(workflow), owner="sweeper")

    after = store.claim(ticket, OWNER, "after")

    assert (before.status, after.status) == ("ok", "ok")
    assert after.fence > before.fence
    assert store.renew(ticket, OWNER, before.fence) == "lost"
    assert store.renew(ticket, OWNER, after.fence) == "ok"


@pytest.mark.parametrize(
    "damage", ["cut", "edited", "flipped", "other", "unnumbered", "listed", "newer", "gone"]
)
def test_an_incomplete_backup_file_changes_nothing(world: World, tmp_path: Path, damage: str) -> None:
    world.populate()
    file = backed_up(world, tmp_path / "project.backup")
    world.flush()
    data = file.read_bytes()
    plain = gzip.decompress(data)
    match damage:
        case "cut":
            file.write_bytes(data[: len(data) // 2])
        case "edited":
            file.write_bytes(gzip.compress(plain.replace(b'"history":["', b'"history":["A', 1)))
        case "flipped":
            # The first block has an unknown kind.
            file.write_bytes(data[:10] + bytes([data[10] | 0b110]) + data[11:])
        case "unnumbered":
            file.write_bytes(gzip.compress(b'{"fixloop": "backup"}\n{}\n'))
        case "listed":
            file.write_bytes(gzip.compress(plain.rpartition(b"{")[0] + b"[]\n"))
        case "other":
            file.write_bytes(gzip.compress(b'{"a": 1}\n{"count": 0}\n'))
        case "newer":
            file.write_bytes(gzip.compress(plain.replace(b'"format":1', b'"format":9', 1)))
        case "gone":
            file.unlink()

    code, said = world.fixloop("restore", str(file))

    assert code == 2
    assert said.startswith("fixloop: ")
    assert said.count("\n") == 1
    assert not [name for name in world.everything() if b"workflow" in name]


def test_a_backup_that_cannot_be_written_is_refused_in_one_sentence(world: World, tmp_path: Path) -> None:
    code, said = world.fixloop("backup", str(tmp_path / "no" / "project.backup"), "--project", PROJECT)

    assert code == 2
    assert said.startswith(f"fixloop: cannot write {tmp_path / 'no' / 'project.backup'}: ")
    assert said.count("\n") == 1


def test_a_backup_is_readable_by_its_owner_alone_whatever_it_replaces(world: World, tmp_path: Path) -> None:
    world.agents.start(1)
    file, other = tmp_path / "project.backup", tmp_path / "other"
    other.write_text("precious")
    file.symlink_to(other)
    (tmp_path / ".project.backup.part").symlink_to(other)

    backed_up(world, file)

    assert file.stat().st_mode & 0o777 == 0o600
    assert not file.is_symlink()
    assert other.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.glob(".project*")) == [".project.backup.part"]


def test_a_killed_restore_is_completed_by_the_next(world: World, tmp_path: Path) -> None:
    made = world.populate()
    for issue in range(200, 400):
        made[world.agents.start(issue)] = "a first run"
    file = backed_up(world, tmp_path / "project.backup")
    before = world.histories(made)
    kills = 0
    for seconds in (0.0, 0.05, 0.1, 0.2):
        world.flush()
        command = [sys.executable, "-m", "fixloop.cli", "restore", str(file)]
        with subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.PIPE) as process:
            count = world.session.connection.call
            give_up = time.monotonic() + slack(30)
            while not count(lambda client: client.dbsize()) and time.monotonic() < give_up:
                pass
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                pass
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        code, said = world.fixloop("restore", str(file))
        assert code == 0, said
        assert world.histories(made) == before
    assert kills >= 2


def test_a_workflow_that_changes_during_a_backup_is_saved_consistently(world: World, tmp_path: Path) -> None:
    import threading

    stopping = threading.Event()
    agents = Agents(world.agents.store)

    def work() -> None:
        issue = 1000
        while not stopping.is_set():
            issue += 1
            agents.run(agents.start(issue, script="2 1 0"))

    worker = threading.Thread(target=work)
    worker.start()
    files = []
    try:
        for number in range(6):
            files.append(backed_up(world, tmp_path / f"{number}.backup"))
            time.sleep(0.05)
    finally:
        stopping.set()
        worker.join()
    for file in files:
        world.flush()
        assert world.fixloop("restore", str(file))[0] == 0
        restored = [workflow for workflow, _ in world.session.store.workflows()]
        for workflow in restored:
            assert audit(world.session.store, workflow).problems == ()
    assert restored


def test_workflows_of_agents_are_restored_too_and_other_projects_are_not(
    world: World, tmp_path: Path
) -> None:
    cycle = Profiles(world.agents.store).cycle(issue=7)
    project = cycle[:8]
    other = world.agents.start(1, workflow="ffffffff-1-1")
    file = tmp_path / "project.backup"
    assert world.fixloop("backup", str(file), "--project", project)[0] == 0
    world.flush()

    world.fixloop("restore", str(file))

    assert [workflow for workflow, _ in world.session.store.workflows()] == [cycle]
    assert world.session.store.read(other) is None
    assert audit(world.session.store, cycle).problems == ()


SESSION = "fixloop:serve:session:0a1b"


def forge(kind: str, lines: list[dict[str, Any]]) -> None:
    """Change a record so that it has what no backup of its project has."""
    [first, project], workflow = lines[:2], next(line for line in lines if "workflow" in line)
    data = base64.b64encode(zlib.compress(b"{}")).decode()
    digest = hashlib.sha256(b"{}").hexdigest()
    ticket = base64.b64encode(b"d\n1\nsomebody\n9\n0").decode()
    match kind:
        case "a key":
            lines.append({"artifact": digest, "key": SESSION, "data": data})
        case "a key after a count":
            lines.append({"count": 1, "artifact": digest, "key": SESSION, "data": data})
        case "a bomb":
            bomb = zlib.compress(bytes(3_000_000))
            digest = hashlib.sha256(bytes(3_000_000)).hexdigest()
            whole = base64.b64encode(bomb).decode()
            lines.append({"artifact": digest, "key": f"fixloop:{{00}}:artifact:{digest}", "data": whole})
        case "a key beside a workflow":
            workflow |= {"artifact": digest, "key": SESSION, "data": data}
        case "an artifact":
            lines.append({"artifact": "0" * 64, "key": f"fixloop:{{00}}:artifact:{'0' * 64}", "data": data})
        case "another project":
            workflow["workflow"] = f"ffffffff{workflow['workflow'][8:]}"
        case "a ticket of another project":
            workflow["hash"]["s:ffffffff-1-1.test-runner.validate.1.1"] = ticket
        case "a ticket":
            workflow["hash"]["s:nothing"] = ticket
        case "a time":
            workflow["hash"]["d:decision"] = base64.b64encode(b"nan").decode()
        case "a fence":
            workflow["fence"] = 10**400
        case "a clock":
            workflow["clock"] = float("-inf")
        case "no head":
            del workflow["hash"]["head"]
        case "no base64":
            workflow["history"] = ["é"]
        case "a waiver":
            project["waivers"] = {f"{PROJECT}-1-1 unit-test": "[]"}
        case "a waiver of another project":
            project["waivers"] = {"ffffffff-1-1 unit-test": "{}"}
        case "a number":
            project["numbers"] = ["x"]
        case "a project":
            first["project"] = ".*"
        case "depth":
            workflow["hash"] = json.loads("[" * 900 + "]" * 900)
        case "nothing":
            lines.append({})


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "a key",
            "a key beside a workflow",
            "an artifact",
            "another project",
            "a ticket",
            "a time",
            "a fence",
        ),
        *(
            "a ticket of another project",
            "a clock",
            "no head",
            "no base64",
            "a waiver",
            "a number",
            "a project",
        ),
        *("a waiver of another project", "depth", "nothing"),
    ],
)
def test_a_forged_backup_changes_nothing_outside_its_project(
    world: World, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MOST_BYTES", 1_000_000)
    world.agents.start(1)
    file = backed_up(world, tmp_path / "project.backup")
    world.flush()
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()[:-1]]
    forge(kind, lines)
    rewritten(file, lines)

    code, said = world.fixloop("restore", str(file))

    assert code == 2, said
    assert said.count("\n") == 1
    assert said.endswith("nothing was restored\n")
    assert world.everything() == {}
    assert world.session.connection.call(lambda client: client.get(SESSION)) is None


def test_a_backup_made_to_fill_memory_is_refused(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.agents.start(1)
    file = backed_up(world, tmp_path / "project.backup")
    monkeypatch.setattr(backup_records, "MOST_BYTES", 1000)
    monkeypatch.setattr(backup, "MOST_BYTES", 1000)

    code, said = world.fixloop("restore", str(file))
    written = world.fixloop("backup", str(tmp_path / "other"), "--project", PROJECT)

    assert (code, written[0]) == (2, 2)
    assert "a line has more than 1,000 bytes" in said
    assert f"{PROJECT}-1-1 has more than 1,000 bytes" in written[1]
    assert not (tmp_path / "other").exists()
