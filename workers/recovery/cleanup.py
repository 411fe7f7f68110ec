"""Removes leftovers of dead attempts and ended workflows, in the supervisor's process.

Other workers may use the same cache, so only workflows that this worker's Redis or archive knows to have ended are
removed, and only once their verified tree is available elsewhere.
"""

import logging
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from fixloop.engine.profile import profile_in
from fixloop.errors import FixloopError
from fixloop.intake.trial import NOTE
from fixloop.machine.owner import identity
from fixloop.outside.transfer import snapshot_in
from fixloop.repository.git import Git
from fixloop.repository.mirror import Mirror
from fixloop.servers.settings import Settings, load_settings
from fixloop.store.archive.files import Archive, archive_at
from fixloop.store.archive.read_through import with_archive
from fixloop.store.archive.retention import archive_ended
from fixloop.store.contract import Store
from fixloop.store.keys import issue_of, number_of
from workers.process import process
from workers.workspaces.workspace import remove_folder, sweep_workspaces

log = logging.getLogger("fixloop.tidying")

GIVEN_UP: Final = ("aborted", "cancelled")
"""Outcomes, of any profile, whose tree is not needed."""
TIDY_SECONDS: Final = 60.0
PRUNE_SECONDS: Final = 3600.0
MOST_PER_ROUND: Final = 50
"""Per shard: 800 workflows a minute are a million a day, and a round does not delay the next cleanup of workspaces."""


def tidy_for_ever(stopped: threading.Event) -> None:
    tidy()
    while not stopped.wait(TIDY_SECONDS):
        tidy()
        try:
            prune_round(process().store, load_settings())
            archive_round(process().store, load_settings())
        except FixloopError as error:
            log.warning("%s", error)
        except Exception:
            log.exception("ended workflows could not be archived")


def tidy() -> None:
    """Remove the workspaces of dead attempts of all workers on this machine."""
    try:
        for name in sweep_workspaces(load_settings().cache_dir):
            log.warning("the workspace of %s was left behind by a dead process and is removed", name)
    except OSError as error:
        log.warning("workspaces cannot be tidied: %s", error)


def prune_round(store: Store, settings: Settings) -> None:
    """Remove workflows that ended long enough ago from this machine's cache, at most once an hour."""
    stamp = settings.cache_dir / "pruned"
    try:
        if time.time() - stamp.stat().st_mtime < PRUNE_SECONDS:
            return
    except FileNotFoundError:
        stamp.parent.mkdir(parents=True, exist_ok=True)
    # Before the work, so that no other worker of this machine does it within the hour.
    stamp.touch()
    both = with_archive(store, archive_at(settings.archive_dir))
    before = store.now(0).at - timedelta(days=settings.archive_after_days)
    for sentence in prune_cache(both, settings.cache_dir, before=before):
        log.info("%s", sentence)


def archive_round(store: Store, settings: Settings) -> None:
    """Move workflows that ended long enough ago to the archive, if there is one; several workers share the work."""
    if settings.archive_dir is None:
        return
    archive = Archive(settings.archive_dir)
    now = store.now(0).at
    days_of = settings.archive_after_days_of
    before_of = {project: now - timedelta(days=days) for project, days in days_of.items()}
    before = now - timedelta(days=settings.archive_after_days)
    for each in archive_ended(
        store, archive, before=before, before_of=before_of, owner=identity(), most=MOST_PER_ROUND
    ):
        level = logging.WARNING if each.status == "kept" else logging.INFO
        log.log(level, "%s is %s: %s", each.workflow, each.status, each.detail)


def prune_cache(store: Store, cache: Path, *, before: datetime) -> Iterator[str]:
    """Remove the cached files of workflows that ended before this time; yields a sentence for each removal."""
    for folder in sorted((cache / "offers").glob("[!.]*/")):
        if is_over(store, folder.name.partition(".")[0], before):
            remove_folder(folder)
            yield f"the directory {folder.name}, which was offered, is removed"
    for folder in sorted((cache / "mirrors").glob("*.git")):
        try:
            source = (folder / "description").read_text(errors="surrogateescape").removesuffix("\n")
            mirror = Mirror(cache, source)
        except OSError:
            continue
        if mirror.path.name != folder.name:
            continue
        old = (name for name, user in mirror.users().items() if user.noted_at < before.timestamp())
        over = [name for name in old if name.startswith(NOTE) or is_over(store, name, before)]
        if over:
            count = len(mirror.forget(over))
            yield f"{count} commits that nobody needs any more are forgotten in {mirror.path.name}"


def is_over(store: Store, workflow: str, before: datetime) -> bool:
    """Whether a workflow ended before this time and its cached files are not needed any more."""
    try:
        issue, project = issue_of(workflow), workflow.partition("-")[0]
        found = store.read(workflow)
        if found is None:
            retired = store.retired(project, issue)
            if retired is None or retired.how != "purged":
                return False
            return number_of(retired.workflow) >= number_of(workflow)
        state = profile_in(found.snapshot).load(found.snapshot)
        superseded = store.next_number(project, issue) > number_of(workflow) + 1
    except FixloopError:
        return False
    if not state.ended or (state.ended_at or state.last_at) >= before:
        return False
    return superseded or bool(state.outcome in GIVEN_UP) or _is_available_elsewhere(state)


def _is_available_elsewhere(state: Any) -> bool:
    """Whether the verified tree is available elsewhere: as a branch, at the URL, or because nothing was changed."""
    if not state.snapshot:
        return True
    snapshot = snapshot_in(state)
    if state.tip == snapshot.commit or getattr(state, "pushed", ""):
        return True
    if snapshot.is_url or not snapshot.is_git:
        return False
    try:
        name, tip = f"refs/fixloop/{state.issue}/tip", str(state.tip)
        return Git(Path(snapshot.source)).found("rev-parse", "-q", "--verify", name) == tip
    except (FixloopError, OSError):
        return False
