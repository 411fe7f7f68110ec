"""Only the store in memory can let time pass as if the engine had been active."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.fixtures.memory_store import MemoryStore


@pytest.mark.proves("K34")
def test_every_clock_advances_while_the_store_is_active() -> None:
    now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    store = MemoryStore(lambda: now)
    store.sweep(3, owner="me")
    before = store.now(3)

    now += timedelta(minutes=30)
    store.stay_awake()
    swept = store.sweep(3, owner="me")

    assert (swept.gap_seconds, swept.away_seconds) == (0.0, 0.0)
    assert store.now(3).clock - before.clock == 1800
    assert store.now(3).at - before.at == timedelta(minutes=30)
