"""Machines that change during a test: links come and go, two write at once, memory runs out, a master dies."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

from fixloop.engine.engine import Engine
from fixloop.engine.replay import audit
from fixloop.errors import FixloopError, RefusedError
from fixloop.protocol import events as ev
from fixloop.protocol.state import WorkflowOutcome
from fixloop.servers.settings import load_settings
from fixloop.store.redis_store import RedisStore
from tests.attacks.sizes import size
from tests.crash.test_workers_killed import unharmed
from tests.e2e.sentinels import SENTINEL_PASSWORD, Sentinels
from tests.fixtures.deployment import Deployment, fresh_database
from tests.fixtures.holdings import hold
from tests.fixtures.repositories import write
from tests.fixtures.store_samples import FLOW, ME, change, created
from tests.integration.test_repository_apply import Work
from tests.proofs import ROOT

pytestmark = pytest.mark.slow

FILES = 60
# Makes the folder of the fixed files a link to another place once the first of them has been moved.
_SWAP = """
import glob, os, sys
repository, outside = sys.argv[1:]
print("ready", flush=True)
while not glob.glob(os.path.join(glob.escape(repository), ".fixloop", "*", "old-0")):
    pass
os.rename(os.path.join(repository, "d"), os.path.join(repository, "moved"))
os.symlink(outside, os.path.join(repository, "d"))
"""


@pytest.mark.proves("K23")
@pytest.mark.parametrize("attempt", range(size(3, 15)))
def test_a_folder_replaced_by_a_link_during_apply_lets_no_write_escape(tmp_path: Path, attempt: int) -> None:
    work = Work(tmp_path, {f"d/{number}": "old\n" for number in range(FILES)})
    agent = work.check_out()
    write(agent, {f"d/{number}": "fixed\n" for number in range(FILES)})
    tip = work.fix()
    outside = tmp_path / "outside"
    write(outside, {f"{number}": "mine\n" for number in range(FILES)})
    swapping = subprocess.Popen(
        [sys.executable, "-c", _SWAP, str(work.repository), str(outside)], stdout=subprocess.PIPE
    )
    try:
        assert swapping.stdout is not None
        assert swapping.stdout.readline() == b"ready\n"
        try:
            work.apply(tip)
        except FixloopError as error:
            assert "the checkout is as it was before" in str(error)  # noqa: PT017
    finally:
        swapping.kill()
        swapping.communicate()

    assert {path.read_text() for path in outside.iterdir()} == {"mine\n"}
    moved = work.repository / "moved"
    fixed = moved if moved.exists() else work.repository / "d"
    assert len({path.read_text() for path in fixed.iterdir()}) == 1, "all or nothing"


@pytest.mark.proves("K8", "R5", "R8")
def test_a_simultaneous_cancellation_and_last_result_end_the_workflow_once(redis_url: str) -> None:
    url = fresh_database(redis_url)
    with ThreadPoolExecutor(2) as threads:
        stores = RedisStore(url), RedisStore(url)
        ends = [raced(threads, Engine(stores[0]), Engine(stores[1]), 1 + n) for n in range(size(60, 1000))]
    for store in stores:
        store.close()

    assert set(ends) == {WorkflowOutcome.CANCELLED, WorkflowOutcome.SUCCESS}, (
        "one of the two was always first"
    )


def raced(threads: ThreadPoolExecutor, ours: Engine, theirs: Engine, issue: int) -> WorkflowOutcome | None:
    """The outcome of a workflow cancelled at the moment of its last result; it ended once."""
    flow = f"0a1b2c3d-{issue}-1"
    told = {
        "specialists": ("test-runner",),
        "tip": "c",
        "tree": "tree-0",
        "issue": issue,
        "name": "a feature",
    }
    ours.start(ev.WorkflowStarted.model_validate({"workflow": flow, **told}))
    found = ours.store.read(flow)
    assert found is not None
    claim = ours.store.claim(found.tickets[0].ticket.id, ME, "token")
    assert claim.ticket is not None
    held, together = hold(claim.ticket, claim, ME), Barrier(2)
    passed = ev.RunFinished(
        step="validate", specialist="test-runner", iteration=1, outcome="passed", tree="tree-0"
    )

    def finish() -> str:
        together.wait(60)
        return ours.finish(held, passed, held.moment).status

    def cancel() -> str:
        together.wait(60)
        try:
            return theirs.apply(flow, ev.Cancelled(by="ann"), operation="cancel").status
        except RefusedError:
            return "refused"

    finished, cancelled = (each.result() for each in [threads.submit(finish), threads.submit(cancel)])
    end = ours.state(flow).outcome
    assert (finished, cancelled) in {("ok", "refused"), ("stale", "ok"), ("gone", "ok")}
    assert end is (WorkflowOutcome.SUCCESS if finished == "ok" else WorkflowOutcome.CANCELLED)
    assert audit(ours.store, flow).problems == ()
    after = ours.store.read(flow)
    assert after is not None
    assert after.tickets == ()
    return end


@pytest.fixture
def sentinels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sentinels]:
    own = Sentinels()
    try:
        yield own.start()
    finally:
        own.end()


@pytest.mark.proves("R7", "R8", "S30")
def test_no_acknowledged_commit_is_lost_when_the_master_dies_mid_commit(
    sentinels: Sentinels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", sentinels.url)
    monkeypatch.setenv("FIXLOOP_SENTINEL_PASSWORD", SENTINEL_PASSWORD)
    urls = load_settings().urls()
    assert urls is not None
    store = RedisStore(urls.state, patience_seconds=30)
    head, acknowledged = created(store).head, [1]
    killer = threading.Thread(target=kill_amid, args=(sentinels, acknowledged))
    killer.start()

    for version in range(1, size(400, 3000)):
        done = store.commit(change(version, head=head, operation=f"commit {version}"))
        assert done.status in ("ok", "dup"), f"{done} after {acknowledged[-1]}"
        head = done.head
        acknowledged.append(done.version)
    killer.join()

    assert acknowledged == list(range(1, size(400, 3000) + 1))
    assert len(store.history(FLOW)) == len(acknowledged)
    assert store.verify(FLOW) == []
    store.close()


def kill_amid(sentinels: Sentinels, acknowledged: list[int]) -> None:
    """Kill the master in the middle of a commit: they follow each other without a pause."""
    master = sentinels.master()
    while acknowledged[-1] < 150:
        time.sleep(0.001)
    sentinels.kill(master)


def memory_group(name: str) -> Path:
    """This test's control group with little memory; skips if none can be made."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, inner = line.split(":", 2)
        if controllers == "memory":
            place = Path("/sys/fs/cgroup/memory") / inner.strip("/") / f"fixloop-{name}-{os.getpid()}"
            with suppress(OSError):
                place.mkdir()
                (place / "memory.limit_in_bytes").write_text(str(MEMORY))
                return place
    pytest.skip("no memory control group can be made here")


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    place = memory_group("attack")
    yield place
    for _ in range(500):
        with suppress(OSError):
            place.rmdir()
            return
        time.sleep(0.02)


MEMORY = 700_000_000
HOG = "found = []\nwhile True: found.append(bytearray(20_000_000))"
ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


@pytest.mark.proves("K40")
@pytest.mark.parametrize("mode", ["namespace", "watched"])
def test_a_check_that_takes_all_memory_is_an_injury_and_its_worker_lives(group: Path, mode: str) -> None:
    program = (
        "import sys; from pathlib import Path; from fixloop.machine.guard import run_guarded\n"
        f"print(run_guarded([sys.executable, '-c', {HOG!r}], cwd=Path('/'), env={{}}, timeout_seconds=60).injured)"
    )

    told = subprocess.run(
        ["sh", "-c", ENTER, str(group), sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "FIXLOOP_GUARD": mode},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (told.stdout, told.returncode) == ("True\n", 0), told.stderr


@pytest.mark.proves("K40", "S30")
def test_a_work_process_killed_for_lack_of_memory_changes_no_result(
    group: Path, redis_url: str, tmp_path: Path
) -> None:
    own = Deployment(fresh_database(redis_url), tmp_path, within=("sh", "-c", ENTER, str(group)))
    try:
        own.start()
        started = own.begin("a~2 -")
        pid = own.owner_pid(started.workflow)
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")

        hog = subprocess.run(["sh", "-c", ENTER, str(group), sys.executable, "-c", HOG], check=False)

        assert hog.returncode == -9
        own.until(lambda: not Path(f"/proc/{pid}").exists())
        unharmed(own, started)
        assert len(own.executions(f"{started.workflow}.")) > 2
        own.stop()
    finally:
        own.end()
