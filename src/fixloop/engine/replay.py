"""Whether a history leads to the state it claims: the chain's digests, and every decision made once more.

Pure, apart from what it reads through the store. Only decisions of this version of `decide` can be replayed; from
the first of another version on, the chain alone vouches.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.engine.profile import AnyOutcome, Profile
from fixloop.engine.registry import PROFILES, profile_in
from fixloop.errors import Damaged, FixloopError, NewerVersion, ProtocolError
from fixloop.protocol.moment import Moment
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.entries import digest_of
from fixloop.store.records import Entry, Snapshot

ADDED: Final = frozenset({"escalated", "protocol"})
"""Plain fields that workflows of older versions do not have."""


class Audit(NamedTuple):
    """What was found in one workflow."""

    workflow: str
    entries: int
    replayed: int
    problems: tuple[str, ...]


def audit(store: Store, workflow: str) -> Audit:
    """Check a workflow's chain; where that holds, replay it. What cannot be checked is a problem of its own."""
    try:
        with reading(workflow):
            return _audited(store, workflow)
    except Damaged as damaged:
        return Audit(workflow, 0, 0, (damaged.detail,))
    except ProtocolError as error:
        return Audit(workflow, 0, 0, (str(error),))


def _audited(store: Store, workflow: str) -> Audit:
    broken = store.verify(workflow)
    # What is damaged may not be readable at all.
    found = store.read(workflow) if not broken else None
    if found is None:
        return Audit(workflow, 0, 0, tuple(broken))
    entries = store.history(workflow)
    try:
        profile = profile_in(found.snapshot)
        changed = (*_changed_fields(profile, found), *_misplaced(store, profile, found))
    except NewerVersion:
        # Its chain holds; what else there is to check, its own version knows.
        return Audit(workflow, len(entries), 0, ())
    if changed:
        return Audit(workflow, 0, 0, changed)
    replayed, problems = replay(entries, profile)
    return Audit(workflow, len(entries), replayed, tuple(problems))


def _changed_fields(profile: Profile[Any], found: Snapshot) -> Iterator[str]:
    """The plain fields beside the snapshot are what lists show, and no digest covers them."""
    for name, value in profile.fields(profile.load(found.snapshot)).items():
        shown = found.fields.get(name, "")
        if not _is_same(shown, value) and (name in found.fields or name not in ADDED):
            yield f"field {name} was changed: it says {shown!r}, the snapshot {value!r}"


def _misplaced(store: Store, profile: Profile[Any], found: Snapshot) -> Iterator[str]:
    """Who looks for what is live, or for a feature's workflow, asks lists beside the workflow."""
    is_live, ended = store.live(*_feature(found)) == found.workflow, profile.load(found.snapshot).ended
    if is_live and ended:
        yield "it has ended, and the list of live workflows has it"
    elif not is_live and not ended:
        yield "it is live, and the list of live workflows does not have it"


def _feature(found: Snapshot) -> tuple[str, int]:
    project, issue, _ = found.workflow.split("-")
    return project, int(issue)


def _is_same(shown: str, value: str) -> bool:
    """Older versions wrote times with `+00:00`, and what did not change since stays as it was written."""
    return shown.replace("+00:00", "Z") == value


def replay(entries: Iterable[Entry], profile: Profile[Any] | None = None) -> tuple[int, list[str]]:
    """
    Decide every entry's event again, from the first on.

    Returns:
        how many entries were replayed, and what differs; the first difference ends it, because all later
        ones would follow from it.
    """
    profile = profile or PROFILES["validation"]
    state: Any = None
    count = 0
    for entry in entries:
        if entry.body.get("decide") != profile.decide_version:
            return count, []
        try:
            made = _decided(profile, state, entry.body)
        # A damaged or forged entry can break decide in any way; each is a finding, none ends the audit.
        except (FixloopError, LookupError, TypeError, ValueError, AttributeError) as error:
            return count, [f"entry {entry.seq} cannot be replayed: {' '.join(str(error).split())[:200]}"]
        problems = list(_differences(profile, entry, made))
        if problems:
            return count, problems
        state = made.state
        count += 1
    return count, []


def _decided(profile: Profile[Any], state: Any, body: Mapping[str, Any]) -> AnyOutcome[Any]:
    now = Moment(datetime.fromisoformat(body["at"]), float(body["clock"]))
    return profile.decide(state, profile.read_event(json.dumps(body["event"])), now)


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
