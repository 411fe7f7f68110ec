"""Converts script replies to records, and a commit to its script's argument."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import to_json

from fixloop.errors import Damaged
from fixloop.protocol.event import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store import records
from fixloop.store.entries import Texts, Written, digest_of
from fixloop.store.keys import feature_of, issue_of, workflow_id
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.packing import NOTHING, Context, context_of, unpack

T = TypeVar("T")
ticket: Final = Ticket.model_validate_json
_KINDS: Mapping[str, Literal["pending", "claimed", "delayed"]] = {
    "p": "pending",
    "c": "claimed",
    "d": "delayed",
}


def moment(wall: bytes, clock: bytes) -> Moment:
    return Moment(datetime.fromtimestamp(float(wall), UTC), float(clock))


def head(stored: bytes | None) -> str:
    """A head in hex; older versions stored it as hex."""
    found = stored or b""
    return found.hex() if len(found) == sha256().digest_size else found.decode()


def live_id(feature: bytes, stored: bytes) -> bytes:
    """A feature's live workflow, of which only the number is stored; older versions stored the whole id."""
    return stored if b"-" in stored else feature + b"-" + stored


def state_of(stored: bytes, leant_on: Sequence[bytes], workflow: str) -> tuple[bytes, Context]:
    """Unpack a snapshot with the entries it was packed with; also returns the context for the next commit."""
    texts = Texts(leant_on)
    data = unpack(stored, texts)
    if data is None:
        raise Damaged(workflow, "its snapshot cannot be read")
    return data, context_of(stored, texts)


def change_text(commit: records.Commit) -> bytes:
    """The JSON argument of commit.lua; binary values are passed separately."""
    return to_json(
        {
            "workflow": commit.workflow,
            "feature": feature_of(commit.workflow),
            "issue": issue_of(commit.workflow),
            "expected": commit.expected_version,
            "ticket": commit.ticket,
            "owner": commit.owner,
            "fence": str(commit.fence),
            "operation": commit.operation,
            "fields": dict(commit.fields),
            # Leave out None values: cjson would make them `null`.
            "tickets": [offered.model_dump_json(exclude_none=True) for offered in commit.new_tickets],
            "claim": commit.claim,
            "token": commit.token,
            "lease": LEASE_SECONDS,
            "past_waiting": commit.past_waiting,
            "drop": commit.drop_tickets,
            "drop_all": commit.drop_all_tickets,
            "set": dict(commit.set_deadlines),
            "clear": commit.clear_deadlines,
            "clear_all": commit.clear_all_deadlines,
            "hold": {True: "begin", False: "end", None: ""}[commit.hold],
            "stood": commit.stood_seconds,
            "live": {True: "begin", False: "end", None: ""}[commit.live],
        }
    )


def committed(reply: Sequence[Any], commit: records.Commit, new: Written) -> records.Committed:
    """The reply of commit.lua as a record."""
    status, version, at_head, payload, other, leant_on, claimed = reply
    kind, found = status.decode(), None
    if claimed:
        fence, wall, clock, away = claimed
        ticket = next(made for made in commit.new_tickets if made.id == commit.claim)
        known = int(version), commit.snapshot, new.head, ticket
        found = records.Claim("ok", moment(wall, clock), float(away), int(fence), *known, context=new.context)
    if kind == "dup":
        return records.Committed("dup", version, digest_of(payload), claim=found)
    data, context = state_of(payload, leant_on, commit.workflow) if payload else (None, NOTHING)
    return records.Committed(kind, int(version), at_head.hex(), data, other.decode(), context, found)


def claim(reply: Sequence[Any], workflow: str, ticket_id: str) -> records.Claim:
    """The reply of claim.lua as a record."""
    status, now, away = reply[0].decode(), moment(reply[1], reply[2]), float(reply[3])
    if status != "ok":
        return records.Claim(status, now, away)
    fence, version, stored, at_head, text, deaths, leant_on = reply[4:]
    data, context = state_of(stored, leant_on, workflow)
    return records.Claim(
        status="ok",
        moment=now,
        away_seconds=away,
        fence=int(fence),
        version=int(version),
        snapshot=data,
        head=at_head.hex(),
        ticket=_named(ticket_id, text),
        deaths=int(deaths),
        context=context,
    )


def snapshot(reply: Sequence[Any], workflow: str) -> records.Snapshot | None:
    """The reply of read.lua as a record; Damaged if the state is missing or cannot be read."""
    wall, clock, away, version, at_head, stored, stale, plain, tickets, deadlines, leant_on, is_known = reply
    if not version and is_known:
        raise Damaged(workflow, "its state is gone, or has no version")
    if not version:
        return None
    data, context = state_of(stored, leant_on, workflow)
    held = []
    for name, text, state, deaths in tickets:
        kind, fence, owner, _limit, _rest = state.decode().split("\n", 4)
        held.append(records.Held(_named(name.decode(), text), _KINDS[kind], owner, int(fence), int(deaths)))
    return records.Snapshot(
        workflow=workflow,
        version=int(version),
        snapshot=data,
        head=at_head.hex(),
        fields=json.loads(plain),
        moment=moment(wall, clock),
        away_seconds=float(away),
        tickets=tuple(sorted(held, key=lambda each: each.ticket.id)),
        deadlines={name.decode(): _finite(due) for name, due in sorted(deadlines)},
        stale=int(stale),
        context=context,
    )


def queues(shards: Iterable[Sequence[Any]]) -> list[records.QueueLoad]:
    """The replies of queues.lua, merged by queue."""
    found: dict[str, records.QueueLoad] = {}
    for lanes, claimed in shards:
        for text, ready, age in lanes:
            queue = records.Lane.parse(text.decode()).queue
            known = found.get(queue, records.QueueLoad(queue))
            oldest = max(known.oldest_seconds, float(age))
            found[queue] = known._replace(ready=known.ready + ready, oldest_seconds=oldest)
        for name in claimed:
            known = found.get(name.decode(), records.QueueLoad(name.decode()))
            found[known.queue] = known._replace(claimed=known.claimed + 1)
    return sorted(found.values())


def swept(reply: Sequence[Any]) -> records.Swept:
    """The reply of sweep.lua as a record, without items that cannot be read."""
    mine, wall, clock, away, gap, due, lapsed, ready, unheard, lanes, damaged = reply
    return records.Swept(
        bool(mine),
        moment(wall, clock),
        float(away),
        float(gap),
        _readable(lambda found: records.Due(found[0].decode(), found[1].decode(), _finite(found[2])), due),
        _readable(ticket, lapsed),
        _readable(ticket, ready),
        _readable(ticket, unheard),
        tuple(sorted(_readable(lambda lane: records.Lane.parse(lane.decode()), lanes))),
        tuple(dict.fromkeys(name.decode("ascii", "replace") for name in damaged)),
    )


def _readable(read: Callable[[Any], T], found: Iterable[Any]) -> tuple[T, ...]:
    made = []
    for each in found:
        with suppress(ValueError):
            made.append(read(each))
    return tuple(made)


def rejected_text(message: records.RejectedMessage) -> str:
    """The stored form of a rejected broker message."""
    return json.dumps(message._asdict() | {"at": message.at.isoformat()})


def rejected(texts: Iterable[bytes]) -> tuple[records.RejectedMessage, ...]:
    """The stored rejected messages that can be read."""
    return _readable(TypeAdapter(records.RejectedMessage).validate_json, texts)


def retired_text(how: records.Retirement, at: datetime) -> str:
    """The stored form of how and when a workflow was removed; it follows the number."""
    return f"{how} {at.isoformat()}"


def retired(text: bytes, project: str, issue: int) -> records.Retired:
    """A feature's newest removed workflow, from its stored form; ValueError if it is malformed."""
    number, how, at = text.decode().split(" ")
    return records.Retired(
        workflow_id(project, issue, int(number)), cast(records.Retirement, how), datetime.fromisoformat(at)
    )


def _named(name: str, text: bytes) -> Ticket:
    found = ticket(text)
    if found.id != name:
        raise ValueError(f"ticket {name} is stored as {found.id}")
    return found


def _finite(due: bytes) -> float:
    found = float(due)
    if not math.isfinite(found):
        raise ValueError(f"{found} is no time")
    return found
