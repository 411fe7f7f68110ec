"""Keeps all workflows in memory: reads them once, then follows the store's changes and tells listeners about each."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

from fixloop.errors import Damaged, InfrastructureError, ProtocolError
from fixloop.serve.background import repeating
from fixloop.store.contract import Store
from fixloop.store.records import DAMAGED, Changes

log = logging.getLogger("fixloop.serve")

WAIT_SECONDS: Final = 0.5
"""The wait for the next change, and so the longest delay of a server's stop."""
AGAIN_SECONDS: Final = 1.0
"""The pause if Redis was away."""
RELOAD_SECONDS: Final = 60.0
"""How often the whole list is reread: a change is a hint, and workers of older versions send none."""
LOAD_SECONDS: Final = 2.5
"""How long a request waits for the first list."""
MOST_UNREAD: Final = 1000
"""For one listener; if there are more, it is told to start again."""


class News(NamedTuple):
    """An item for listeners."""

    kind: Literal["change", "reset", "away"]
    workflow: str = ""
    version: int = 0
    cursor: str = ""
    """The cursor to continue from after it; empty: the previous one."""


RESET: Final = News("reset")


class Follower:
    """One thread reads the store; any number of threads and loops may query and listen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, Mapping[str, str]] = {}
        self.cursor = ""
        """Everything up to here is known."""
        self._listed_at = 0.0
        self._lock = threading.Lock()
        self._loaded = threading.Event()
        self._stopping = threading.Event()
        self._away: InfrastructureError | None = None
        self._listeners: set[Callable[[News], None]] = set()

    @contextmanager
    def running(self) -> Iterator["Follower"]:
        """Follow the store until the end of the block."""
        with repeating("follower", self._follow, self._stopping):
            yield self

    def check(self) -> None:
        """InfrastructureError at once if Redis was away on the last access."""
        if self._away is not None:
            raise self._away

    def rows(self) -> Mapping[str, Mapping[str, str]]:
        """Workflow → its plain fields. InfrastructureError if they are not available."""
        if not self._loaded.wait(LOAD_SECONDS):
            self.check()
            raise InfrastructureError("the list of workflows is not read yet; try again")
        self.check()
        return self._rows

    def refresh(self, *workflows: str) -> None:
        """Read these workflows now, for example after changing one."""
        fields: dict[str, Mapping[str, str]] = {}
        for workflow in workflows:
            try:
                if (found := self._store.read(workflow)) is not None:
                    fields[workflow] = found.fields
            except ProtocolError as error:
                fields[workflow] = {DAMAGED: error.detail if isinstance(error, Damaged) else str(error)}
        with self._lock:
            # Readers keep their own mapping.
            self._rows = {name: known for name, known in self._rows.items() if name not in workflows} | fields

    def since(self, cursor: str) -> list[News]:
        """The changes after a cursor from any server, up to now."""
        told: list[News] = []
        while True:
            found = self._store.changes(cursor, wait_seconds=0.0)
            if found.gap:
                return [News("reset", cursor=found.cursor)]
            if not found.changes:
                return told
            cursor = found.cursor
            told += _news(found)

    @contextmanager
    def listening(self) -> Iterator["asyncio.Queue[News]"]:
        """A queue of changes from now on, for the running loop; it ends with `reset` if the listener is too slow."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[News](MOST_UNREAD)

        def put(news: News) -> None:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                news = RESET
            queue.put_nowait(news)

        def tell(news: News) -> None:
            loop.call_soon_threadsafe(put, news)

        with self._lock:
            self._listeners.add(tell)
        try:
            yield queue
        finally:
            with self._lock:
                self._listeners.discard(tell)

    def _follow(self) -> float:
        try:
            self._read_on(self.cursor)
            return 0.0
        except InfrastructureError as error:
            if self._away is None:
                log.warning("%s", error)
                self._tell(News("away"))
            self._away = error
        except Exception:
            # Otherwise outdated lists would be shown as if they were current.
            log.exception("the list of workflows cannot be followed; it is read again")
            self._away = InfrastructureError("the list of workflows cannot be followed; see the server's log")
            self.cursor = ""
        return AGAIN_SECONDS

    def _read_on(self, cursor: str) -> None:
        """Read the changes after `cursor`; empty: read everything."""
        found = self._store.changes(cursor, wait_seconds=WAIT_SECONDS if cursor else 0.0)
        is_new = not cursor or found.gap
        if is_new or time.monotonic() - self._listed_at > RELOAD_SECONDS:
            # Changes while the list is read are among those after it.
            self._listed_at = time.monotonic()
            rows = dict(self._store.workflows())
            with self._lock:
                is_new, self._rows = is_new or rows != self._rows, rows
        if is_new:
            self._tell(News("reset", cursor=found.cursor))
        if found.changes:
            self.refresh(*{change.workflow for change in found.changes})
        self.cursor = found.cursor
        for news in _news(found):
            self._tell(news)
        self._away = None
        self._loaded.set()

    def _tell(self, news: News) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for tell in listeners:
            tell(news)


def _news(found: Changes) -> list[News]:
    """One item per workflow; the last has the cursor, so that an interrupted listener gets all of them again."""
    latest = {change.workflow: change.version for change in found.changes}
    told = [News("change", workflow, version) for workflow, version in latest.items()]
    return [*told[:-1], *(news._replace(cursor=found.cursor) for news in told[-1:])]
