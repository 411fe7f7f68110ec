"""Audits a history: verifies the chain's digests and repeats every decision.

Pure, apart from what it reads through the store. Only decisions of this version of `decide` can be replayed; from the
first entry of another version on, only the chain is checked.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.engine.profile import AnyOutcome, Profile, profile_in, profile_named
from fixloop.errors import Damaged, FixloopError, NewerVersion, ProtocolError
from fixloop.protocol.event import Moment
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.entries import digest_of
from fixloop.store.records import Entry, Snapshot

ADDED: Final = frozenset({"escalated", "protocol"})
"""Plain fields that workflows of older versions lack."""


class Audit(NamedTuple):
    """The result of auditing one workflow."""

    workflow: str
    entries: int
    replayed: int
    problems: tuple[str, ...]


def audit(store: Store, workflow: str) -> Audit:
    """Verify a workflow's chain and, if it holds, replay it. What cannot be checked is reported as a problem."""
    try:
        with reading(workflow):
            broken = store.verify(workflow)
            # A damaged workflow may be unreadable.
            found = store.read(workflow) if not broken else None
            if found is None:
                return Audit(workflow, 0, 0, tuple(broken))
            entries = store.history(workflow)
            try:
                profile = profile_in(found.snapshot)
                contradictions = tuple(_contradictions(store, profile, found))
            except NewerVersion:
                # The chain holds; only the workflow's own version can replay it.
                return Audit(workflow, len(entries), 0, ())
            if contradictions:
                return Audit(workflow, 0, 0, contradictions)
            replayed, problems = replay(entries, profile)
            return Audit(workflow, len(entries), replayed, tuple(problems))
    except Damaged as damaged:
        return Audit(workflow, 0, 0, (damaged.detail,))
    except ProtocolError as error:
        return Audit(workflow, 0, 0, (str(error),))


def _contradictions(store: Store, profile: Profile[Any], found: Snapshot) -> Iterator[str]:
    """Compare the plain fields and the list of live workflows, which no digest covers, with the snapshot."""
    state = profile.load(found.snapshot)
    for name, value in profile.fields(state).items():
        shown = found.fields.get(name, "")
        # Older versions wrote times with `+00:00`; fields that have not changed since still have it.
        is_same = shown.replace("+00:00", "Z") == value
        if not is_same and (name in found.fields or name not in ADDED):
            yield f"field {name} was changed: it says {shown!r}, the snapshot {value!r}"
    project, issue, _ = found.workflow.split("-")
    is_live = store.live(project, int(issue)) == found.workflow
    if is_live and state.ended:
        yield "it has ended, and the list of live workflows has it"
    elif not is_live and not state.ended:
        yield "it is live, and the list of live workflows does not have it"


def replay(entries: Iterable[Entry], profile: Profile[Any] | None = None) -> tuple[int, list[str]]:
    """Repeat the decision of every entry; returns how many were replayed, and the differences. Stops at the first
    difference, because all later ones would follow from it."""
    profile = profile or profile_named("validation")
    state: Any = None
    count = 0
    for entry in entries:
        if entry.body.get("decide") != profile.decide_version:
            return count, []
        try:
            now = Moment(datetime.fromisoformat(entry.body["at"]), float(entry.body["clock"]))
            made = profile.decide(state, profile.read_event(json.dumps(entry.body["event"])), now)
        # A damaged or forged entry can make `decide` raise anything; that is a finding, and the audit goes on.
        except (FixloopError, LookupError, TypeError, ValueError, AttributeError) as error:
            return count, [f"entry {entry.seq} cannot be replayed: {' '.join(str(error).split())[:200]}"]
        problems = list(_differences(profile, entry, made))
        if problems:
            return count, problems
        state = made.state
        count += 1
    return count, []


def _differences(profile: Profile[Any], entry: Entry, made: AnyOutcome[Any]) -> Iterator[str]:
    state = digest_of(made.state.model_dump_json(exclude_defaults=True).encode())
    if not state.startswith(entry.state):
        yield f"entry {entry.seq} leads to another state than the one that was recorded"
    said = list(entry.body.get("messages", ()))
    expected = [profile.recorded(message) for message in made.messages]
    if _ids(said) != _ids(expected):
        yield f"entry {entry.seq} says {_ids(said)}, and its event leads to {_ids(expected)}"
    elif said != expected:
        wrong = next(one for one, two in zip(said, expected, strict=True) if one != two)
        yield f"entry {entry.seq}: {_ids([wrong])} is not what was said"


def _ids(messages: Iterable[Mapping[str, Any]]) -> str:
    both = ([one, one["attached"]] if one.get("attached") else [one] for one in messages)
    return ", ".join("+".join(str(part["message_id"]) for part in parts) for parts in both) or "nothing"
