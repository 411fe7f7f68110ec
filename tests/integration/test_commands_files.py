"""`fixloop files` and what `resume` does where an embedded Redis lost its data, with a real Redis."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import redis

from fixloop.commands.files import restore_lost
from fixloop.commands.session import open_session
from fixloop.engine.engine import ProfileEngine
from fixloop.errors import ExitCode
from fixloop.machine.owner import identity, is_dead_here
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.protocol.agent_events import Cancelled
from fixloop.repository.snapshot import Snapshot
from fixloop.servers.redis_place import Place
from fixloop.statefiles.sync import project
from tests.fixtures.command_stage import Agents, on_redis, said
from tests.fixtures.deployment import PATIENCE_SECONDS, wait_until
from tests.fixtures.profile_runs import FLOW, SCRIPTS

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]
STATE = ".claude/state.json"


def begin(agents: Agents, root: Path, name: str = "handoff") -> None:
    taken = Snapshot(source=str(root), commit="c", tree="t").model_dump_json()
    script: Any = SCRIPTS[name]
    ProfileEngine(agents.store, script.profile).start(script.begin.model_copy(update={"snapshot": taken}))


@pytest.mark.proves("K23")
def test_files_are_written_into_the_repository_and_anywhere(
    agents: Agents, tmp_path: Path, capsys: Capsys
) -> None:
    begin(agents, tmp_path)

    here, there = said(capsys, "files", FLOW), said(capsys, "files", FLOW, "--to", "copies/a")

    assert (here.code, here.out) == (ExitCode.DONE, f"{tmp_path}\n")
    assert (there.code, there.out) == (ExitCode.DONE, f"{tmp_path / 'copies/a'}\n")
    assert (tmp_path / "copies/a" / STATE).read_bytes() == (tmp_path / STATE).read_bytes()


@pytest.mark.proves("K23")
def test_a_run_leaves_the_files_of_its_last_commit_even_if_its_worker_dies(
    agents: Agents, tmp_path: Path, capsys: Capsys
) -> None:
    begin(agents, tmp_path)
    engine = ProfileEngine(agents.store, HANDOFF)
    project(agents.store, FLOW)
    engine.apply(FLOW, Cancelled(), operation="cancel")
    assert '"status": "failed"' not in (tmp_path / STATE).read_text()

    said(capsys, "resume", FLOW)

    assert json.loads((tmp_path / STATE).read_text())["status"] == "failed"


@pytest.mark.proves("K23", "D19")
def test_an_edit_is_reported_and_undone_and_the_exit_code_says_so(
    agents: Agents, tmp_path: Path, capsys: Capsys
) -> None:
    begin(agents, tmp_path)
    said(capsys, "files", FLOW)
    written = (tmp_path / STATE).read_text()
    (tmp_path / STATE).write_text(written.replace('"iteration": 1', '"iteration": 4'))

    told, again = said(capsys, "files", FLOW), said(capsys, "files", FLOW)

    assert told.code == ExitCode.USAGE
    assert told.err.startswith(
        f"fixloop: {STATE} was edited by hand: iteration is 4, and was written as 1; it is kept in .fixloop/files/"
    )
    assert (again.code, again.err) == (ExitCode.DONE, "")
    assert json.loads((tmp_path / STATE).read_text())["iteration"] == 1


@pytest.mark.proves("K23", "R13")
def test_a_redis_that_lost_its_data_is_rebuilt_on_request(
    agents: Agents, tmp_path: Path, capsys: Capsys, redis_url: str
) -> None:
    begin(agents, tmp_path, "cycle")
    project(agents.store, FLOW)
    assert said(capsys, "files", "7", "--rebuild").err == (
        f"fixloop: Redis knows workflow {FLOW}, and is right; `fixloop files 7` draws its files anew\n"
    )
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()

    rebuilt = said(capsys, "files", "7", "--rebuild")

    assert (rebuilt.code, rebuilt.out) == (ExitCode.DONE, f"{FLOW}\n")
    assert "was lost, and rebuilt from the files" in rebuilt.err
    found = agents.store.read(FLOW)
    assert found is not None
    assert [held.ticket.id for held in found.tickets] == [f"{FLOW}.ra.1.1"]


@pytest.mark.proves("K23")
def test_a_redis_that_was_rolled_back_is_reported(
    agents: Agents, tmp_path: Path, capsys: Capsys, redis_url: str
) -> None:
    begin(agents, tmp_path)
    engine: Any = ProfileEngine(agents.store, SCRIPTS["handoff"].profile)
    engine.apply(FLOW, SCRIPTS["handoff"].started("planner"), operation="started")
    project(agents.store, FLOW)
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    begin(agents, tmp_path)

    told = said(capsys, "files", FLOW)

    assert told.code == ExitCode.USAGE
    assert f"are of version 2 of {FLOW}, but Redis has version 1: it was set back" in told.err


def test_a_validation_loop_has_no_files(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start()

    assert said(capsys, "files", workflow).err == f"fixloop: workflow {workflow} has no named files\n"
    assert said(capsys, "files", "x", "--rebuild").err.startswith("fixloop: 'x' is not an issue number")


@pytest.mark.proves("K23", "R13")
def test_an_embedded_redis_that_lost_its_data_is_rebuilt_on_resume(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    with open_session(create=True) as session:
        begin(Agents(session.store), tmp_path)
        project(session.store, FLOW)
        keeper = identity(int((Place(tmp_path).data / "keeper.pid").read_text()))
    # It ends the server when the last user has gone. The socket goes before the server has closed its files.
    wait_until(lambda: is_dead_here(keeper), seconds=PATIENCE_SECONDS)
    shutil.rmtree(tmp_path / ".fixloop/redis")

    restore_lost("7")

    assert f"issue 7 was lost, and rebuilt from the files in {tmp_path}" in capsys.readouterr().err
    with open_session() as session:
        found = session.store.read(FLOW)
        assert found is not None
        assert json.loads(found.snapshot)["rebuilt"] == 1
    restore_lost("7")
    assert capsys.readouterr().err == ""
