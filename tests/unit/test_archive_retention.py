"""Moving ended workflows to the archive: none is ever in neither place, whenever a process dies."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.engine.replay import audit
from fixloop.errors import UsageError
from fixloop.protocol.events import Cancelled
from fixloop.servers.settings import Settings, load_settings
from fixloop.store.archive.files import Archive
from fixloop.store.archive.read_through import with_archive
from fixloop.store.archive.retention import Moved, archive_ended, purge_ended
from fixloop.store.contract import Store
from fixloop.store.keys import artifact_key
from tests.fixtures.command_stage import PROJECT, Agents
from tests.fixtures.memory_store import MemoryStore
from workers.recovery.cleanup import archive_round

pytestmark = pytest.mark.heavy

NOW: Final = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
FLOW: Final = f"{PROJECT}-47-1"


class Stage:
    """A store in memory, an archive and a clock."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self.store = MemoryStore(lambda: self.now)
        self.archive = Archive(folder, host="one")
        self.agents = Agents(self.store)

    def ended(self, issue: int = 47, **further: Any) -> str:
        """A workflow that passed after two fixes."""
        workflow = self.agents.start(issue, **further)
        assert self.agents.run(workflow).ended
        self.store.stay_awake()
        return workflow

    def later(self, **age: float) -> None:
        self.now += timedelta(**age)
        self.store.stay_awake()

    def moved(self, *, days: float = 0.0, owner: str = "one") -> list[Moved]:
        before = self.now - timedelta(days=days) + timedelta(seconds=1)
        return list(archive_ended(self.store, self.archive, before=before, owner=owner))

    def purged(self, *, days: float = 0.0, **more: Any) -> list[str]:
        before = self.now - timedelta(days=days) + timedelta(seconds=1)
        return [each.workflow for each in purge_ended(self.store, self.archive, before=before, **more)]

    @property
    def both(self) -> Store:
        return with_archive(self.store, self.archive)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.heavy
def test_single_projects_have_their_own_retention_and_delay_no_other(stage: Stage) -> None:
    longer = [stage.ended(issue, workflow=f"ffffffff-{issue}-1") for issue in range(1, 60)]
    sooner = stage.ended(workflow="eeeeeeee-1-1")
    usual = stage.ended()
    stage.later(days=8)

    def moved(days: float) -> list[str]:
        times = {project: stage.now - timedelta(days=each) for project, each in of.items()}
        before = stage.now - timedelta(days=days)
        told = archive_ended(stage.store, stage.archive, before=before, before_of=times, owner="one", most=1)
        return [each.workflow for each in told]

    of = {"ffffffff": 365.0, "eeeeeeee": 1.0}
    early = moved(30)
    late = moved(7)

    assert early == [sooner]
    assert late == [usual]
    assert all(stage.store.read(workflow) is not None for workflow in longer)


def test_days_of_projects_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIXLOOP_ARCHIVE_AFTER_DAYS_OF", "0a1b2c3d=7, 1b2c3d4e=0.5")
    found = load_settings().archive_after_days_of
    monkeypatch.setenv("FIXLOOP_ARCHIVE_AFTER_DAYS_OF", "shop=7")

    assert found == {"0a1b2c3d": 7.0, "1b2c3d4e": 0.5}
    with pytest.raises(UsageError, match="'shop=7' is not a project's eight hex digits and its days"):
        load_settings()


@pytest.mark.proves("G26", "B18")
def test_an_archived_workflow_reads_as_it_did_before(stage: Stage) -> None:
    workflow = stage.ended()
    before, history = stage.store.read(workflow), stage.store.history(workflow)
    assert before is not None
    entries = audit(stage.store, workflow).entries

    (moved,) = stage.moved()

    assert (moved.workflow, moved.status) == (workflow, "archived")
    assert stage.store.read(workflow) is None
    found = stage.both.read(workflow)
    assert found is not None
    assert (found.snapshot, found.fields, found.version) == (before.snapshot, before.fields, before.version)
    assert stage.both.history(workflow) == history
    assert stage.both.history(workflow, 3) == history[3:]
    told = audit(stage.both, workflow)
    assert (told.problems, told.entries, told.replayed) == ((), entries, entries)
    assert stage.both.latest(PROJECT, 47) == workflow
    assert (stage.both.search(47), stage.both.search(48)) == ([workflow], [])
    assert [name for name, _ in stage.both.workflows()] == [workflow]
    assert list(stage.both.workflows(live_only=True)) == []


@pytest.mark.proves("G26")
def test_only_workflows_that_ended_long_enough_ago_are_archived(stage: Stage) -> None:
    old = stage.ended(1)
    stage.later(days=20)
    young, live = stage.ended(2), stage.agents.start(3)
    stage.later(days=15)

    assert [moved.workflow for moved in stage.moved(days=30)] == [old]

    assert sorted(name for name, _ in stage.store.workflows()) == sorted([young, live])


@pytest.mark.proves("G26")
def test_the_next_workflow_of_the_issue_is_the_next_number(stage: Stage) -> None:
    stage.ended()
    stage.moved()

    assert stage.store.next_number(PROJECT, 47) == 2
    second = stage.ended(number=2)

    assert stage.both.latest(PROJECT, 47) == second
    assert stage.both.search(47) == [second]
    assert {name for name, _ in stage.both.workflows()} == {FLOW, second}


def test_an_emptied_redis_continues_with_the_numbers_after_the_archive(stage: Stage, tmp_path: Path) -> None:
    stage.ended()
    stage.moved()
    empty = with_archive(MemoryStore(lambda: NOW), Archive(tmp_path))

    assert empty.next_number(PROJECT, 47) == 2
    assert empty.next_numbers(PROJECT, [46, 47]) == [1, 2]
    assert audit(empty, FLOW).problems == ()


class Died(BaseException):
    """Raised where the process is killed."""


def dying(stage: Stage, place: str, *, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call of a store's or the archive's method kills: before or after it has done its work."""
    target: Any = stage.archive if place in ("append", "find") else stage.store
    real: Callable[..., Any] = getattr(target, place)

    def call(*args: Any, **further: Any) -> None:
        if after:
            real(*args, **further)
        raise Died

    monkeypatch.setattr(target, place, call)


@pytest.mark.proves("G26", "S30")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", ["stored", "append", "find", "remove"])
def test_a_writer_that_dies_halfway_loses_nothing_and_the_next_one_finishes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, place: str, after: bool
) -> None:
    workflow = stage.ended()
    history = stage.store.history(workflow)
    with monkeypatch.context() as patch:
        dying(stage, place, after=after, monkeypatch=patch)
        with pytest.raises(Died):
            stage.moved()

    assert stage.both.history(workflow) == history
    assert audit(stage.both, workflow).problems == ()
    # A dead process may hold its lease a little longer.
    stage.later(seconds=130)
    stage.moved(owner="two")

    assert stage.store.read(workflow) is None
    assert stage.both.history(workflow) == history
    assert [name for name, _ in stage.both.workflows()] == [workflow]


@pytest.mark.proves("G26")
def test_only_one_process_at_a_time_archives_a_workflow(stage: Stage) -> None:
    workflow = stage.ended()
    stage.store.locks.acquire(workflow, "archive", "another worker")

    assert stage.moved() == []

    assert stage.store.read(workflow) is not None


@pytest.mark.proves("G26", "B18")
def test_a_history_that_does_not_verify_is_not_archived(stage: Stage) -> None:
    workflow, good = stage.ended(47), stage.ended(48)
    stage.store._workflows[workflow].entries[1] = b"changed"

    told = {moved.workflow: moved for moved in stage.moved()}

    assert told[workflow].status == "kept"
    assert "entry 2 was changed" in told[workflow].detail
    assert stage.store.read(workflow) is not None
    assert told[good].status == "archived"


def test_a_workflow_with_a_missing_shared_artifact_is_not_archived(stage: Stage) -> None:
    digest = stage.store.put_artifact(FLOW, b"gates", shared=True)
    workflow = stage.ended(configuration=digest)
    del stage.store._artifacts[artifact_key(workflow, digest)]

    (told,) = stage.moved()

    assert (told.status, "is missing" in told.detail) == ("kept", True)


def test_a_shared_configuration_is_archived_and_kept_for_the_others(stage: Stage) -> None:
    digest = stage.store.put_artifact(FLOW, b"gates", shared=True)
    workflow = stage.ended(configuration=digest)

    stage.moved()

    stored = stage.archive.find(workflow)
    assert stored is not None
    assert stored.artifacts[digest] == b"gates"
    assert stage.store.get_artifact(workflow, digest) == b"gates"


def test_a_workflow_with_an_open_step_is_not_archived(stage: Stage) -> None:
    workflow = stage.ended()
    stage.store._workflows[workflow].tickets.update(open_ticket(stage))

    (told,) = stage.moved()

    assert (told.status, told.detail) == ("kept", "step validate is still to be done")


def open_ticket(stage: Stage) -> dict[str, Any]:
    live = stage.agents.start(99)
    return dict(stage.store._workflows[live].tickets)


@pytest.mark.proves("G26")
def test_purging_deletes_from_both_places_but_no_live_workflow(stage: Stage) -> None:
    archived = stage.ended(1)
    stage.moved()
    ended, live = stage.ended(2), stage.agents.start(3)

    assert stage.purged(dry=True) == [ended, archived]
    assert stage.purged() == [ended, archived]

    assert [name for name, _ in stage.both.workflows()] == [live]
    assert stage.store.next_number(PROJECT, 1) == 2
    retired = stage.store.retired(PROJECT, 1)
    assert retired is not None
    assert retired.how == "purged"
    assert stage.purged() == []


def test_purging_keeps_younger_workflows_and_those_of_other_projects(stage: Stage) -> None:
    old, of_prefix = stage.ended(4), stage.ended(47)
    stage.moved()
    stage.later(days=10)
    young = stage.ended(5)

    assert stage.purged(days=5, project=f"{PROJECT}-4-") == [old]
    assert stage.purged(days=5, project="ffffffff-") == []

    assert {name for name, _ in stage.both.workflows()} == {of_prefix, young}


@pytest.mark.proves("G26")
def test_a_worker_archives_old_workflows_only_with_an_archive(stage: Stage, tmp_path: Path) -> None:
    workflow = stage.ended()
    stage.later(days=31)

    archive_round(stage.store, Settings(archive_dir=None))
    assert stage.store.read(workflow) is not None
    archive_round(stage.store, Settings(archive_dir=tmp_path, archive_after_days=32))
    assert stage.store.read(workflow) is not None
    archive_round(stage.store, Settings(archive_dir=tmp_path))

    assert stage.store.read(workflow) is None
    assert Archive(tmp_path).find(workflow) is not None


@pytest.mark.proves("G26")
def test_a_cancelled_workflow_is_archived_too(stage: Stage) -> None:
    workflow = stage.agents.start(script="3 1 0")
    stage.agents.apply(workflow, Cancelled(reason="no longer wanted"))

    assert [moved.status for moved in stage.moved()] == ["archived"]
    assert stage.both.read(workflow) is not None
