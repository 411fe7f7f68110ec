"""Waivers: specialists that are skipped until a date, and who is responsible for them.

A waiver is part of its workflow's state; this list finds it again, even after the workflow is archived. It is written
before the decision, so that none is missing; an entry whose decision never came is dropped.
"""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from fixloop.protocol.durations import iso_stamp
from fixloop.store import keys
from fixloop.store.connection import Connection
from fixloop.store.contract import Store

REMIND_DAYS: Final = 7
"""How many days before its last day the inbox shows a waiver."""
_SETTLE: Final = timedelta(hours=1)
"""The age after which an entry without a decision is dropped."""


class Waiver(NamedTuple):
    """One skipped specialist."""

    workflow: str
    specialist: str
    until: str
    """Its last day, `YYYY-MM-DD`."""
    owner: str
    name: str
    """The feature's name."""
    at: str = ""

    @property
    def notice(self) -> dict[str, str]:
        """The waiver's entry in the inbox."""
        issue = keys.issue_of(self.workflow)
        ends = "ran out on" if self.until < f"{datetime.now(UTC):%Y-%m-%d}" else "runs out on"
        what = f"the waiver of {self.specialist} in #{issue} {self.name}"
        text = f"{what} {ends} {self.until}; {self.owner} looks after it"
        return {"text": text, "since": self.at, "command": f"fixloop run --issue {issue}"}


def keep_waiver(connection: Connection, waiver: Waiver) -> None:
    """Add a waiver to the list; call this before its decision is made."""
    text = json.dumps(waiver._replace(at=iso_stamp(datetime.now(UTC)))._asdict())
    field = f"{waiver.workflow} {waiver.specialist}"
    connection.call(lambda client: client.hset(keys.WAIVERS, field, text))


def due_waivers(
    store: Store, connection: Connection, prefix: str = "", today: date | None = None
) -> list[Waiver]:
    """Waivers that run out within REMIND_DAYS or have run out, unless their feature was started again since; only
    workflows that begin with `prefix`. The first to run out comes first."""
    stored: Mapping[bytes, bytes] = connection.call(lambda client: client.hgetall(keys.WAIVERS))
    last = f"{(today or datetime.now(UTC).date()) + timedelta(days=REMIND_DAYS):%Y-%m-%d}"
    found, forgotten = [], []
    for field, text in stored.items():
        record: dict[str, Any] = json.loads(text)
        waiver = Waiver(**{name: record[name] for name in Waiver._fields})
        if waiver.until > last or not waiver.workflow.startswith(prefix):
            continue
        if _is_current(store, waiver):
            found.append(waiver)
        elif datetime.fromisoformat(waiver.at) < datetime.now(UTC) - _SETTLE:
            forgotten.append(field)
    if forgotten:
        connection.call(lambda client: client.hdel(keys.WAIVERS, *forgotten))
    return sorted(found, key=lambda each: each.until)


def _is_current(store: Store, waiver: Waiver) -> bool:
    feature = waiver.workflow[:8], keys.issue_of(waiver.workflow)
    newest, retired = store.latest(*feature), store.retired(*feature)
    if newest is None:
        return retired is not None and retired.workflow == waiver.workflow and retired.how == "archived"
    if newest != waiver.workflow:
        return False
    kept = store.read(newest)
    return kept is not None and bool(kept.fields.get("waiver"))
