"""A workflow's work reaches any machine: the base from its repository, each fix as a bundle from the store."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixloop.engine.engine import Engine
from fixloop.errors import InfrastructureError
from fixloop.outside.declining import signalled
from fixloop.outside.transfer import NotKept, bring_work, facts_of_change, keep_bundle, snapshot_in
from fixloop.protocol.declining import Kind
from fixloop.protocol.events import FixCompleted, ReportDelivered, RunFinished, WorkflowStarted
from fixloop.protocol.failures import Failure
from fixloop.protocol.state import Completion, State
from fixloop.repository.merge import commit_of_directory
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import mirror_of, take_snapshot
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.repositories import make_repository, write
from workers.workspaces.workspace import open_workspace, remove_folder

pytestmark = pytest.mark.slow

WORKFLOW = "0a1b2c3d-47-1"


class Loop:
    """A workflow in memory whose fixes are made on machines with separate caches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryStore(lambda: datetime.now(UTC))
        self.engine = Engine(self.store)
        repository = make_repository(folder / "shop", {"price": "wrong\n", "stock": "wrong\n"})
        taken = take_snapshot(repository, issue=47, cache=folder / "first")
        started = WorkflowStarted(
            workflow=WORKFLOW,
            issue=47,
            name="shop",
            specialists=("test-runner",),
            snapshot=taken.model_dump_json(),
            tip=taken.commit,
            tree=taken.tree,
        )
        assert self.engine.start(started).status == "ok"

    @property
    def state(self) -> State:
        return self.engine.state(WORKFLOW)

    def mirror(self, machine: str) -> Mirror:
        return mirror_of(snapshot_in(self.state), self.folder / machine)

    def fix(self, machine: str, files: dict[str, str]) -> str:
        """A run fails, and its fix is made on `machine`; returns the digest of its bundle."""
        number = self.state.active.iteration
        failed = RunFinished(
            step="validate" if number == 1 else "recheck",
            specialist="test-runner",
            iteration=number,
            outcome="failed",
            tree=self.state.tree,
            failures=(Failure(name=f"test {number}"),),
        )
        self.engine.apply(WORKFLOW, failed, operation=f"run-{number}")
        reported = ReportDelivered(specialist="test-runner", iteration=number)
        self.engine.apply(WORKFLOW, reported, operation=f"report-{number}")
        state, cache = self.state, self.folder / machine
        mirror = bring_work(self.store, state, cache)
        with open_workspace(cache, mirror, state.tip, name=f"fix-{number}.1") as workspace:
            write(workspace.path, files)
            change = commit_of_directory(workspace.path, state.tip, mirror, "fix\n")
        bundle = keep_bundle(self.store, state, mirror, change.commit)
        facts = facts_of_change(
            self.store, state, mirror, change, hide=lambda text: text.replace("s3cr3t", "***")
        )
        completion = Completion(iteration=number, by="x", said="I think so", **facts)
        event = FixCompleted(specialist="test-runner", completion=completion, bundle=bundle)
        self.engine.apply(WORKFLOW, event, operation=f"fix-{number}")
        return bundle


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def test_fixes_made_on_several_machines_reach_another_one(loop: Loop) -> None:
    loop.fix("first", {"price": "right\n"})
    loop.fix("second", {"stock": "right\n"})

    mirror = bring_work(loop.store, loop.state, loop.folder / "third")

    assert mirror.git.text("cat-file", "blob", f"{loop.state.tip}:price") == "right"
    assert mirror.git.text("cat-file", "blob", f"{loop.state.tip}:stock") == "right"
    assert mirror.git.text("rev-list", "--count", loop.state.tip) == "3"


def test_a_run_keeps_the_diff_of_its_fix_and_what_the_agent_said(loop: Loop) -> None:
    loop.fix("first", {"price": "right s3cr3t\n"})

    run = loop.state.active.runs[-1]

    assert "-wrong\n+right ***\n" in run.diff
    assert run.said == "I think so"
    assert loop.store.get_artifact(WORKFLOW, run.diff_artifacts[0]) == run.diff.encode()


def test_a_run_keeps_the_beginning_of_a_long_diff_and_the_store_all_of_it(loop: Loop) -> None:
    loop.fix("first", {"price": "".join(f"line {number}\n" for number in range(5000))})

    run = loop.state.active.runs[-1]
    whole = (loop.store.get_artifact(WORKFLOW, run.diff_artifacts[0]) or b"").decode()

    assert len(run.diff) <= 3000
    assert run.diff.endswith(" more lines")
    assert whole.endswith("+line 4999\n")
    assert whole.startswith(run.diff.rpartition("\n")[0])


def test_a_fix_that_changed_nothing_has_no_diff(loop: Loop) -> None:
    loop.fix("first", {"price": "wrong\n"})

    assert (loop.state.active.runs[-1].diff, loop.state.active.runs[-1].diff_artifacts) == ("", ())


def test_an_answer_that_declines_keeps_its_reason_and_shows_the_test_at_the_tip(loop: Loop) -> None:
    failed = RunFinished(
        step="validate",
        specialist="test-runner",
        iteration=1,
        outcome="failed",
        tree=loop.state.tree,
        failures=(Failure(name="a price", file="price"),),
    )
    loop.engine.apply(WORKFLOW, failed, operation="run-1")
    git = bring_work(loop.store, loop.state, loop.folder / "first").git

    declined = signalled(loop.state, git, by="fixer", text="12 is right", kind=Kind.TEST_IS_WRONG)

    assert (declined.text, declined.source) == ("12 is right", "price\nwrong")


def test_a_lost_cache_loses_no_fix(loop: Loop) -> None:
    loop.fix("first", {"price": "right\n"})
    remove_folder(loop.folder / "first")

    mirror = bring_work(loop.store, loop.state, loop.folder / "first")

    assert mirror.has(loop.state.tip)


def test_a_machine_takes_only_the_bundles_that_it_lacks(loop: Loop) -> None:
    loop.fix("first", {"price": "right\n"})
    second = loop.fix("first", {"stock": "right\n"})
    mirror = loop.mirror("second")

    bring_work(loop.store, loop.state, loop.folder / "second")
    before = sorted(path.name for path in mirror.path.glob("objects/pack/*.pack"))
    loop.fix("first", {"price": "dear\n"})
    bring_work(loop.store, loop.state, loop.folder / "second")

    assert second
    assert len(before) == 2
    assert len(list(mirror.path.glob("objects/pack/*.pack"))) == 3


def test_the_history_verifies_the_bundles(loop: Loop) -> None:
    bundle = loop.fix("first", {"price": "right\n"})

    named = [entry.body.get("artifacts", []) for entry in loop.store.history(WORKFLOW)]

    assert named[-1] == [bundle]
    assert loop.store.verify(WORKFLOW) == []


def test_a_fix_that_changed_nothing_needs_no_bundle(loop: Loop) -> None:
    assert keep_bundle(loop.store, loop.state, loop.mirror("first"), loop.state.tip) == ""


def test_a_fix_that_is_too_large_to_travel_is_refused(loop: Loop) -> None:
    loop.fix("first", {"price": "right\n"})
    state, mirror = loop.state, loop.mirror("first")
    began = state.model_copy(update={"tip": snapshot_in(state).commit})

    with pytest.raises(NotKept, match=r"the fix is 0\.000\d+ MB as a git bundle, the limit is 6\.\d+e-05 MB"):
        keep_bundle(loop.store, began, mirror, state.tip, limit_bytes=64)


def test_a_bundle_that_is_missing_from_the_store_is_named(loop: Loop) -> None:
    bundle = loop.fix("first", {"price": "right\n"})
    forgetful = MemoryStore(lambda: datetime.now(UTC))
    forgetful.history = loop.store.history  # type: ignore[method-assign]

    with pytest.raises(InfrastructureError, match=f"the bundle {bundle[:12]} of {WORKFLOW} is missing"):
        bring_work(forgetful, loop.state, loop.folder / "second")
