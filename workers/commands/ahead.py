"""Linters and scanners beside the first phase of a `run`, for the phases that come (docs/decisions/0051).

A worker for one workflow alone has one process for work, and this is that process' own: no message and no commit is
another one for it. Only what has passed is taken, on the same tree; all else is done when its phase comes.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from fixloop.configuration.model import Check, Configuration
from fixloop.errors import FixloopError
from fixloop.intake.recheck import READING
from fixloop.intake.trial import Asked, Tried, try_checks
from fixloop.outside.transfer import snapshot_in
from fixloop.protocol.checks import RunOutcome
from fixloop.servers.settings import load_settings
from workers.steps.step import Step

LOOK_SECONDS: Final = 0.25


class Ahead:
    """What a process has found out ahead of its phase; begun at most once."""

    def __init__(self) -> None:
        self._due: set[tuple[str, str]] | None = None
        self._commit = ""
        self._found: dict[tuple[str, str], Tried] = {}
        self._results: SimpleQueue[Tried | None] = SimpleQueue()

    def begin(self, work: Step, configuration: Configuration, cache: Path) -> None:
        """Begin with what has not run yet, where a processor is free and nothing has to be set up."""
        state, snapshot = work.holding.state, snapshot_in(work.holding.state)
        is_new = {entry.name for entry in state.specialists if not entry.runs} & READING
        later = [each for each in configuration.specialists if each.name in is_new - {state.active.name}]
        if self._due is not None or not later or not state.queue or state.tip != snapshot.commit:
            return
        if not load_settings().ahead or configuration.workspace.setup:
            return
        self._commit = snapshot.commit
        self._due = {(entry.name, check.name) for entry in later for check in entry.checks}
        chosen = configuration.model_copy(update={"specialists": tuple(later)})
        asked = Asked(snapshot=snapshot, configuration=chosen, cache=cache, with_evidence=True)

        def run() -> None:
            try:
                with suppress(FixloopError, OSError):
                    for each in try_checks(asked):
                        self._results.put(each)
            finally:
                self._results.put(None)

        threading.Thread(target=run, name="fixloop-ahead", daemon=True).start()

    def taken(self, work: Step, checks: Sequence[Check]) -> list[Tried]:
        """What came of a specialist's checks, where all have passed on the workflow's tree; else nothing: they have to
        run."""
        state, specialist = work.holding.state, work.holding.ticket.specialist
        if state.tip != self._commit or state.active.runs:
            return []
        keys = [(specialist, check.name) for check in checks]
        while self._due and not self._due.isdisjoint(keys) and not work.cancelled():
            try:
                each = self._results.get(timeout=LOOK_SECONDS)
            except Empty:
                continue
            if each is None:
                self._due = set()
            else:
                found = each.specialist, each.result.check
                self._due.discard(found)
                self._found[found] = each
        tried = [self._found[key] for key in keys if key in self._found]
        counts = len(tried) == len(keys) and all(
            each.result.outcome is RunOutcome.PASSED
            and not each.result.lists_tests
            and each.result.evidence.tree == state.tree
            for each in tried
        )
        return tried if counts else []
