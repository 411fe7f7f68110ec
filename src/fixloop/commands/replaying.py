"""Whether a history leads to the state it claims: the chain's digests, and every decision made once more.

Pure, apart from what it reads through the store. Only decisions of this version of `decide` can be replayed; from
the first of another version on, the chain alone vouches.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fixloop.errors import FixloopError, NewerVersion
from fixloop.history import recorded
from fixloop.profiles.validation import plain_fields
from fixloop.protocol.events import event_from_json
from fixloop.protocol.messages import Message
from fixloop.protocol.moment import Moment
from fixloop.protocol.state import State
from fixloop.protocol.validation import DECIDE_VERSION, decide
from fixloop.snapshots import load_state
from fixloop.store.contract import Store
from fixloop.store.entries import digest_of
from fixloop.store.records import Entry

__all__ = ["Audit", "audit", "replay"]


class Audit(NamedTuple):
    """What was found in one workflow."""

    workflow: str
    entries: int
    replayed: int
    problems: tuple[str, ...]


class _Replayed(NamedTuple):
    state: State
    messages: tuple[Message, ...]


def audit(store: Store, workflow: str) -> Audit:
    """Check a workflow's chain; where that holds, replay it."""
    try:
        problems = store.verify(workflow) or list(_changed_fields(store, workflow))
    except NewerVersion:
        # Its chain holds; what else there is to check, its own version knows.
        return Audit(workflow, len(store.history(workflow)), 0, ())
    if problems:
        return Audit(workflow, 0, 0, tuple(problems))
    entries = store.history(workflow)
    replayed, found = replay(entries)
    return Audit(workflow, len(entries), replayed, tuple(found))


def _changed_fields(store: Store, workflow: str) -> Iterator[str]:
    """The plain fields beside the snapshot are what lists show, and no digest covers them."""
    found = store.read(workflow)
    if found is None:
        return
    for name, value in plain_fields(load_state(found.snapshot)).items():
        shown = found.fields.get(name, "")
        if shown != value:
            yield f"field {name} was changed: it says {shown!r}, the snapshot {value!r}"


def replay(entries: Iterable[Entry]) -> tuple[int, list[str]]:
    """
    Decide every entry's event again, from the first on.

    Returns:
        how many entries were replayed, and what differs; the first difference ends it, because all later
        ones would follow from it.
    """
    state: State | None = None
    count = 0
    for entry in entries:
        if entry.body.get("decide") != DECIDE_VERSION:
            return count, []
        try:
            made = _decided(state, entry.body)
        # A damaged or forged entry can break decide in any way; each is a finding, none ends the audit.
        except (FixloopError, LookupError, TypeError, ValueError, AttributeError) as error:
            return count, [f"entry {entry.seq} cannot be replayed: {' '.join(str(error).split())[:200]}"]
        problems = list(_differences(entry, made))
        if problems:
            return count, problems
        state = made.state
        count += 1
    return count, []


def _decided(state: State | None, body: Mapping[str, Any]) -> _Replayed:
    now = Moment(datetime.fromisoformat(body["at"]), float(body["clock"]))
    outcome = decide(state, event_from_json(json.dumps(body["event"])), now)
    return _Replayed(outcome.state, tuple(outcome.messages))


def _differences(entry: Entry, made: _Replayed) -> Iterator[str]:
    state = digest_of(made.state.model_dump_json(exclude_defaults=True).encode())
    if not state.startswith(entry.state):
        yield f"entry {entry.seq} leads to another state than the one that was recorded"
    said = list(entry.body.get("messages", ()))
    expected = [recorded(message) for message in made.messages]
    if _ids(said) != _ids(expected):
        yield f"entry {entry.seq} says {_ids(said)}, and its event leads to {_ids(expected)}"
    elif said != expected:
        wrong = next(one for one, two in zip(said, expected, strict=True) if one != two)
        yield f"entry {entry.seq}: {_ids([wrong])} is not what was said"


def _ids(messages: Iterable[Mapping[str, Any]]) -> str:
    both = ([one, one["attached"]] if one.get("attached") else [one] for one in messages)
    return ", ".join("+".join(str(part["message_id"]) for part in parts) for parts in both) or "nothing"
