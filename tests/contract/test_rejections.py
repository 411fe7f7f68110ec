"""Broker messages that no worker could process: all are counted, the last are kept for inspection."""

from datetime import UTC, datetime

from fixloop.store.contract import Store
from fixloop.store.limits import MOST_REJECTED
from fixloop.store.records import RejectedMessage, Rejections

AT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def message(number: int) -> RejectedMessage:
    return RejectedMessage(AT, "fixloop.fix", f"reason {number}", '{"body": "\\u202e"}')


def test_a_new_store_has_no_rejections(store: Store) -> None:
    assert store.rejections() == Rejections(0, ())


def test_rejections_are_counted_and_the_latest_kept_newest_first(store: Store) -> None:
    store.reject([message(1), message(2)], 2)
    store.reject([message(number) for number in range(3, 103)], 200)

    found = store.rejections()

    assert found.total == 202
    assert found.kept == tuple(message(number) for number in range(102, 2, -1))
    assert len(found.kept) == MOST_REJECTED
    assert found.last == "202 messages, the last at 2026-03-01 09:00:00Z on fixloop.fix: reason 102"
