"""What `serve` knows of all workflows: updated by changes, and read again in case one was missed."""

import asyncio
from datetime import UTC, datetime

import pytest

from fixloop.serve import follower as module
from fixloop.serve.follower import MOST_UNREAD, Follower, News
from fixloop.testing.processes import comes
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.patience import slack
from tests.fixtures.store_samples import FLOW, change

PATIENCE_SECONDS = 20.0


class Untold(MemoryStore):
    """A store whose workers are of a version that reports no commits."""

    def _announce(self, workflow: str, version: int) -> None:
        pass


def now() -> datetime:
    return datetime.now(UTC)


def test_changes_are_applied_at_once_and_removed_workflows_disappear() -> None:
    store = MemoryStore(now)
    store.create(change(0, fields={"status": "A"}))
    with Follower(store).running() as following:
        assert following.rows() == {FLOW: {"status": "A"}}

        made = store.commit(change(1, fields={"status": "B"}, live=False))
        assert comes(lambda: following.rows() == {FLOW: {"status": "B"}}, slack(20))
        store.remove(FLOW, made.head, "purged")

        assert comes(lambda: following.rows() == {}, slack(20))


def test_a_change_without_an_event_is_found_by_the_next_full_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.05)
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    store = Untold(now)
    with Follower(store).running() as following:
        assert following.rows() == {}

        store.create(change(0, fields={"status": "A"}))

        assert comes(lambda: following.rows() == {FLOW: {"status": "A"}}, slack(20))


def test_listeners_get_events_and_slow_ones_restart() -> None:
    store = MemoryStore(now)

    async def listen(following: Follower) -> tuple[News, News]:
        with following.listening() as queue:
            store.create(change(0))
            first = await asyncio.wait_for(queue.get(), PATIENCE_SECONDS)
            for version in range(1, MOST_UNREAD + 50):
                following._tell(News("change", FLOW, version))
            await asyncio.sleep(0)
            assert comes(lambda: following.cursor != "", slack(20))
            return first, await _last(queue)

    async def _last(queue: asyncio.Queue[News]) -> News:
        found = [await asyncio.wait_for(queue.get(), PATIENCE_SECONDS)]
        while not queue.empty():
            found.append(queue.get_nowait())
        return next((news for news in found if news.kind == "reset"), found[-1])

    with Follower(store).running() as following:
        following.rows()
        first, later = asyncio.run(listen(following))

    assert (first.kind, first.workflow, first.version) == ("change", FLOW, 1)
    assert later.kind == "reset"
