"""Writes named files after each commit; the next check completes an interrupted write (K23, R13).

A workflow with files on this machine has a mark in the cache until its last ones are written (docs/decisions/0025).
"""

import logging
import os
import time
from bisect import bisect_right
from pathlib import Path
from typing import Final

from fixloop.errors import Damaged, FixloopError
from fixloop.servers.settings import load_settings
from fixloop.statefiles.sync import project
from fixloop.store.contract import Store
from workers.log_once import say_once

log = logging.getLogger("fixloop.files")

LOOK_SECONDS: Final = 2.0
MOST_PER_LOOK: Final = 50
"""Workflows per check; with more of them on a machine, the next check continues where this one ended."""


def draw(store: Store, workflow: str, *, ended: bool) -> None:
    """Write a workflow's files after a commit; logs one sentence for each file that was edited or is in the way."""
    mark = _marks() / workflow
    if not ended and not mark.exists():
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError as error:
            log.warning("cannot mark that the files of %s are drawn here: %s", workflow, error)
    if _is_written(store, workflow) and ended:
        mark.unlink(missing_ok=True)


def _is_written(store: Store, workflow: str) -> bool:
    projected = project(store, workflow)
    for sentence in (projected.problem, *projected.edits):
        if sentence:
            say_once(log, sentence)
    return not projected.problem


class Redrawing:
    """Checks the files of this machine's workflows and writes those that are missing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due = 0.0
        self._last = ""

    def look(self) -> None:
        """At most every LOOK_SECONDS: one read for each marked workflow, and no more if its files are in place."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + LOOK_SECONDS
        try:
            marked = sorted(os.listdir(_marks()))
            begin = bisect_right(marked, self._last)
            turn = (marked[begin:] + marked[:begin])[:MOST_PER_LOOK]
            self._last = turn[-1] if turn else ""
            for name in turn:
                try:
                    found = self._store.read(name)
                    if found is None or (_is_written(self._store, name) and found.fields.get("outcome")):
                        (_marks() / name).unlink(missing_ok=True)
                except Damaged as damaged:
                    say_once(log, str(damaged))
        except FileNotFoundError:
            return
        except (FixloopError, OSError) as error:
            log.warning("named files cannot be looked after: %s", error)


def _marks() -> Path:
    return load_settings().cache_dir / "drawn"
