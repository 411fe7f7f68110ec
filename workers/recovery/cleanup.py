"""What a supervisor does beside its processes: workspaces of dead attempts go away, ended workflows to the archive."""

import logging
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from fixloop.archive.files import Archive, archive_at
from fixloop.archive.moving import archive_ended
from fixloop.archive.reading import with_archive
from fixloop.errors import FixloopError
from fixloop.machine.owner import identity
from fixloop.servers.settings import Settings, load_settings
from fixloop.store.contract import Store
from workers.process import process
from workers.recovery.pruning import prune_cache
from workers.workspaces.workspace import sweep_workspaces

log = logging.getLogger("fixloop.tidying")

TIDY_SECONDS: Final = 60.0
PRUNE_SECONDS: Final = 3600.0
MOST_PER_ROUND: Final = 50
"""Of each shard: 800 workflows a minute are a million a day, and no round keeps the next from the workspaces."""


def tidy_for_ever(stopped: threading.Event) -> None:
    """Tidy at once and then every minute."""
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
    """Remove the workspaces of attempts that died, whichever worker of this machine they were of."""
    try:
        for name in sweep_workspaces(load_settings().cache_dir):
            log.warning("the workspace of %s was left behind by a dead process and is removed", name)
    except OSError as error:
        log.warning("workspaces cannot be tidied: %s", error)


def prune_round(store: Store, settings: Settings) -> None:
    """
    Remove from this machine's cache what ended long enough ago, an hour after the last time.

    Raises:
        InfrastructureError: Redis, the archive or the cache cannot be used.
    """
    if not _is_due(settings.cache_dir / "pruned"):
        return
    both = with_archive(store, archive_at(settings.archive_dir))
    for sentence in prune_cache(both, settings.cache_dir, before=_cutoff(store, settings)):
        log.info("%s", sentence)


def _is_due(stamp: Path) -> bool:
    """Whether nobody on this machine did it within the hour; says that it is done now."""
    try:
        if time.time() - stamp.stat().st_mtime < PRUNE_SECONDS:
            return False
    except FileNotFoundError:
        stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    return True


def _cutoff(store: Store, settings: Settings) -> datetime:
    return store.now(0).at - timedelta(days=settings.archive_after_days)


def archive_round(store: Store, settings: Settings) -> None:
    """
    Move what ended long enough ago to the archive, where there is one; of many workers each takes others.

    Raises:
        InfrastructureError: Redis or the archive cannot be used.
    """
    if settings.archive_dir is None:
        return
    archive = Archive(settings.archive_dir)
    for each in archive_ended(
        store, archive, before=_cutoff(store, settings), owner=identity(), most=MOST_PER_ROUND
    ):
        level = logging.WARNING if each.status == "kept" else logging.INFO
        log.log(level, "%s is %s: %s", each.workflow, each.status, each.detail)
