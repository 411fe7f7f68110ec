"""Pruning a machine's cache: only what is known to have ended, and whose verified tree is stored elsewhere."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.intake.trial import NOTE
from fixloop.outside.transfer import bring_work, snapshot_in
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.protocol.events import Cancelled, RunFinished
from fixloop.repository.publication import publish
from fixloop.repository.tree import commit_tree, tree_id
from fixloop.servers.settings import Settings
from fixloop.store.archive.files import Archive
from fixloop.store.archive.read_through import with_archive
from fixloop.store.archive.retention import archive_ended
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import SCRIPTS
from tests.fixtures.repositories import git
from tests.integration.test_transfer import WORKFLOW, Loop
from workers.recovery.cleanup import is_over, prune_cache, prune_round

pytestmark = pytest.mark.slow

SOON: Final = timedelta(days=1)


class Site(Loop):
    """A workflow with one fix, made on this machine, and an offer that was made for it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fix("first", {"price": "right\n"})
        self.cache = folder / "first"
        self.offer = self.cache / "offers" / f"{WORKFLOW}.test-runner.1.0"
        (self.offer / "work").mkdir(parents=True)
        bring_work(self.store, self.state, self.cache)

    def end(self, *, published: bool = True) -> None:
        passed = RunFinished(
            step="recheck", specialist="test-runner", iteration=2, outcome="passed", tree=self.state.tree
        )
        self.engine.apply(WORKFLOW, passed, operation="passed")
        assert self.state.ended
        if published:
            publish(snapshot_in(self.state), issue=47, tip=self.state.tip, mirror=self.mirror("first"))

    def pruned(self, *, later: timedelta = SOON) -> list[str]:
        """What is pruned when everything that ended by then is old enough, including notes of this machine."""
        for note in self.cache.glob("mirrors/*.used/*"):
            os.utime(note, (time.time() - 60, time.time() - 60))
        return list(prune_cache(self.store, self.cache, before=datetime.now(UTC) + later))

    @property
    def has_all(self) -> bool:
        mirror = self.mirror("first")
        return (
            self.offer.is_dir() and mirror.has(self.state.tip) and mirror.has(snapshot_in(self.state).commit)
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_leftovers_of_an_ended_and_published_workflow_are_pruned(site: Site) -> None:
    site.end()
    tip, base = site.state.tip, snapshot_in(site.state).commit

    said = site.pruned()

    assert [sentence.partition(" ")[0] for sentence in said] == ["the", "2"]
    assert not site.offer.exists()
    assert not site.mirror("first").has(tip)
    assert not site.mirror("first").has(base)
    assert git(site.folder / "shop", "rev-parse", "fixloop/47") == tip
    assert site.pruned() == []


def test_pruned_data_is_fetched_again_on_demand(site: Site) -> None:
    site.end()
    site.pruned()

    mirror = bring_work(site.store, site.state, site.cache)

    assert mirror.has(site.state.tip)


def test_a_live_workflow_keeps_everything(site: Site) -> None:
    assert site.pruned() == []

    assert site.has_all


@pytest.mark.parametrize("later", [timedelta(0), -SOON])
def test_a_workflow_that_has_just_ended_keeps_everything(site: Site, later: timedelta) -> None:
    site.end()

    assert site.pruned(later=later - timedelta(seconds=30)) == []

    assert site.has_all


def test_a_verified_tree_without_another_copy_is_kept(site: Site) -> None:
    site.end(published=False)
    assert site.pruned() == []
    git(site.folder / "shop", "update-ref", "-d", "refs/fixloop/47/tip")

    assert site.pruned() == []

    assert site.has_all


def test_the_data_of_a_workflow_unknown_to_this_redis_is_kept(site: Site) -> None:
    site.end()
    site.store._workflows.clear()

    assert site.pruned() == []


def test_an_archived_workflow_is_pruned_only_with_its_archive_at_hand(site: Site, tmp_path: Path) -> None:
    site.end()
    archive = Archive(tmp_path / "archive")
    (moved,) = archive_ended(site.store, archive, before=datetime.now(UTC) + SOON, owner="me")
    assert moved.status == "archived"
    assert site.pruned() == []

    said = list(prune_cache(with_archive(site.store, archive), site.cache, before=datetime.now(UTC) + SOON))

    assert len(said) == 2


def test_an_archived_workflow_s_fix_reaches_a_machine_that_never_had_it(site: Site, tmp_path: Path) -> None:
    site.end()
    state, archive = site.state, Archive(tmp_path / "archive")
    (moved,) = archive_ended(site.store, archive, before=datetime.now(UTC) + SOON, owner="me")
    assert moved.status == "archived"

    mirror = bring_work(with_archive(site.store, archive), state, tmp_path / "third")

    assert mirror.git.text("cat-file", "blob", f"{state.tip}:price") == "right"


def test_a_purged_workflow_keeps_nothing(site: Site) -> None:
    site.end(published=False)
    found = site.store.read(WORKFLOW)
    assert found is not None
    site.store.remove(WORKFLOW, found.head, "purged")

    assert len(site.pruned()) == 2
    assert not site.offer.exists()


def test_a_cancelled_workflow_has_no_verified_tree(site: Site) -> None:
    site.engine.apply(WORKFLOW, Cancelled(by="ann"), operation="cancel")

    assert len(site.pruned()) == 2


def test_commits_that_another_workflow_needs_are_kept(site: Site) -> None:
    site.end()
    base = snapshot_in(site.state).commit
    site.mirror("first").use("0a1b2c3d-48-1", base, base)

    site.pruned()

    assert site.mirror("first").has(base)
    assert not site.mirror("first").has(site.state.tip)


def test_files_that_are_not_fixloop_s_are_not_touched(site: Site) -> None:
    site.end()
    strange = [site.cache / "offers" / "notes", site.cache / "mirrors" / "other.git"]
    for folder in strange:
        folder.mkdir()

    site.pruned()

    assert all(folder.is_dir() for folder in strange)


def test_a_machine_prunes_once_an_hour(site: Site) -> None:
    site.end()
    settings = Settings(cache_dir=site.cache, archive_after_days=0)
    prune_round(site.store, settings)
    assert not site.offer.exists()
    site.offer.mkdir()

    prune_round(site.store, settings)
    assert site.offer.exists()
    os.utime(site.cache / "pruned", (0, 0))
    prune_round(site.store, settings)

    assert not site.offer.exists()


@pytest.mark.parametrize("profile", [CYCLE, HANDOFF], ids=lambda profile: profile.name)
def test_a_cycle_and_handoffs_are_pruned_too(tmp_path: Path, profile: Any) -> None:
    store, workflow = MemoryStore(lambda: datetime.now(UTC)), "0a1b2c3d-7-1"
    engine = ProfileEngine(store, profile)
    begin: Any = SCRIPTS[profile.name].begin
    engine.start(begin.model_copy(update={"workflow": workflow}))
    soon = datetime.now(UTC) + SOON
    assert not is_over(store, workflow, soon)

    cancelled = profile.read_event('{"kind": "cancelled", "sender": "user"}')
    engine.apply(workflow, cancelled, operation="cancel")

    assert is_over(store, workflow, soon)
    assert not is_over(store, workflow, datetime.now(UTC) - SOON)


def test_the_commits_of_a_trial_are_pruned(site: Site) -> None:
    mirror = site.mirror("first")
    tree = tree_id(mirror.git, snapshot_in(site.state).commit)
    tried = commit_tree(mirror.git, tree, [], "tried", dated="2000-01-01T00:00:00+0000")
    mirror.keep(tried)
    mirror.use(f"{NOTE}{tried}", tried, tried)

    assert site.pruned(later=-SOON) == []
    assert mirror.has(tried)
    assert len(site.pruned()) == 1
    assert not mirror.has(tried)
    assert site.has_all
