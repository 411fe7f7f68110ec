"""The lists of workflows, waiting items and holds, in display order; cached for unchanged workflows."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from fixloop.commands.integrity import Hold, holds_in
from fixloop.commands.status import summary
from fixloop.errors import Damaged, NewerVersion
from fixloop.serve.follower import Follower
from fixloop.store.records import DAMAGED, Entry

Item = Mapping[str, Any]
Fields = Mapping[str, str]


class Filter(BaseModel):
    """Which workflows are listed, and from where on; empty fields exclude none."""

    state: Literal["", "live", "waits", "ended", "damaged"] = ""
    project: str = Field(default="", pattern=r"^([0-9a-f]{8})?$")
    profile: str = Field(default="", max_length=40)
    cursor: str = Field(default="", max_length=100)


class Row(NamedTuple):
    workflow: str
    cursor: str
    """The sort key: latest change first."""
    kind: str
    """`live`, `ended` or `damaged`."""
    state: str
    """`paused`, or who has to act; for an ended workflow its outcome."""
    document: Mapping[str, Any]
    """The document of `status --json`."""


class Held(NamedTuple):
    """A run that passed and was held."""

    workflow: str
    name: str
    rules: Sequence[str]
    decision: str
    """Empty: it is open."""


class Holds(NamedTuple):
    """The holds in the workflows read so far, latest workflow first."""

    holds: Sequence[Held]
    left: int
    """Workflows whose histories have not been read yet."""


class Lists:
    """The follower's workflows as lists. Safe to share between threads."""

    def __init__(
        self,
        follower: Follower,
        items_in: Callable[[str, Fields], Sequence[Item]],
        history: Callable[[str], Sequence[Entry]],
    ) -> None:
        """`items_in` reads a workflow's items that wait for somebody outside."""
        self._follower = follower
        self._items_in, self._history = items_in, history
        self._lock = threading.Lock()
        self._made_of: Mapping[str, Fields] = {}
        self._rows: dict[str, tuple[Fields, Row]] = {}
        self._items: dict[str, tuple[Fields, Sequence[Item]]] = {}
        self._listed: dict[str, list[Row]] = {}
        self._waiting: Sequence[Item] = ()
        self._held: dict[str, tuple[Fields, Sequence[Hold]]] = {}

    def workflows(self, state: str = "") -> Sequence[Row]:
        """All workflows, or those that are `live`, `ended` or `damaged`, or that wait for a person (`waits`), latest
        change first. Raises InfrastructureError."""
        self._make()
        return self._listed.get(state, ())

    def waiting(self) -> Sequence[Item]:
        """Items that wait for somebody outside, the longest first. Raises InfrastructureError."""
        self._make()
        return self._waiting

    def holds(self, is_seen: Callable[[str], bool], seconds: float) -> Holds:
        """What integrity rules held in these workflows, and what people decided. Many histories are read in parts: each
        call continues for `seconds` where the previous one stopped."""
        ends, found, left = time.monotonic() + seconds, [], 0
        seen = [(workflow, fields) for workflow, fields in self._follower.rows().items() if is_seen(workflow)]
        for workflow, fields in sorted(seen, key=lambda each: each[1].get("updated_at", ""), reverse=True):
            kept = self._held.get(workflow)
            if kept is None or kept[0] != fields:
                if time.monotonic() > ends:
                    left += 1
                    continue
                held: Sequence[Hold] = ()
                with suppress(Damaged, NewerVersion):
                    held = list(holds_in(self._history(workflow)))
                kept = self._held[workflow] = fields, held
            found += [Held(workflow, fields.get("name", ""), *hold) for hold in kept[1]]
        return Holds(found, left)

    def _make(self) -> None:
        known = self._follower.rows()
        with self._lock:
            if known is self._made_of:
                return
            self._rows = {workflow: self._row(workflow, fields) for workflow, fields in known.items()}
            rows = sorted((row for _, row in self._rows.values()), key=lambda row: row.cursor, reverse=True)
            self._listed = {"": rows}
            for row in rows:
                self._listed.setdefault(row.kind, []).append(row)
                if row.kind == "live" and row.document["owner"] == "person":
                    self._listed.setdefault("waits", []).append(row)
            before = self._items
            self._items = {
                workflow: before[workflow]
                if workflow in before and before[workflow][0] == fields
                else (fields, self._items_in(workflow, fields))
                for workflow, fields in known.items()
                if not fields.get("outcome")
                and (fields.get("owner") in ("person", "agent") or "held" in fields)
            }
            found = [item for _, items in self._items.values() for item in items]
            self._waiting = sorted(found, key=place_of)
            self._made_of = known

    def _row(self, workflow: str, fields: Fields) -> tuple[Fields, Row]:
        kept = self._rows.get(workflow)
        return kept if kept is not None and kept[0] == fields else (fields, _row(workflow, fields))


def place_of(item: Item) -> str:
    """The sort key of a waiting item: the longest first."""
    return f"{item['since']} {item['workflow_id']} {item['escalation_id'] or ''}"


def _row(workflow: str, fields: Fields) -> Row:
    found = summary(workflow, fields)
    kind = "damaged" if found["damaged"] else "ended" if found["outcome"] else "live"
    state = found["outcome"] or ("paused" if fields.get("held") else str(found["owner"]))
    cursor = f"{found['updated_at']} {workflow}"
    return Row(workflow, cursor, kind, DAMAGED if kind == DAMAGED else state, found)
