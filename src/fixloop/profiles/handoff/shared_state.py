"""Locks on shared resources, and agents' writes to the shared state (D19, D24-D31, D44-D46, G10, K10).

A lock has one owner; taking over an expired lock is recorded, and a late release has no effect. The last write wins,
except for critical fields.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.records import HeldWrite, Lock, Question, Takeover
from fixloop.profiles.handoff.routes import HandoffType, Kind, check_agent
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.event import ORCHESTRATOR, Unexpected
from fixloop.protocol.ids import called

MOST_OF_A_FIELD: Final = 200
MOST_OF_A_VALUE: Final = 16_000
"""Characters, because every snapshot of the workflow contains the value."""

CRITICAL: Final = ("current_workflow", "iteration", "locks", "last_handoff")
"""Writes to these are held until a person decides (G10)."""
RESOURCE: Final = "state.json"
"""The resource to lock before writing the state (K10)."""
_ENGINES: Final = ("schema_version", "current_agent", "agents", "status", "waiting_for")


def acquire(draft: Draft, event: ev.LockAcquired) -> None:
    """Answers `granted`, `forced` (the previous lock had expired), or `pending`: another agent has it (D26, D28).
    Asking again for a lock that the agent holds changes nothing."""
    check_agent(event.sender)
    present = draft.state.locks.get(event.resource)
    if present is not None and present.expires >= draft.at:
        draft.answer = "granted" if present.agent == event.sender else "pending"
        draft.commits = False
        return
    forced_from = present.agent if present is not None else ""
    token = draft.state.tokens + 1
    lock = Lock(
        agent=event.sender,
        acquired=draft.at,
        expires=draft.at + timedelta(seconds=draft.state.limits.lease_seconds),
        token=token,
        forced_from=forced_from,
    )
    draft.update(tokens=token, locks={**draft.state.locks, event.resource: lock})
    draft.answer = "forced" if forced_from else "granted"
    if forced_from:
        taken = Takeover(resource=event.resource, before=forced_from, after=event.sender, at=draft.at)
        draft.update(takeovers=(*draft.state.takeovers, taken))
        told = f"{event.sender} took the lock of {event.resource} over from {forced_from}: it had expired"
        draft.note(told)


def release(draft: Draft, event: ev.LockReleased) -> None:
    """Answers `released`, or `lost` with no effect: it was taken over (D27). Unexpected: it is not this agent's."""
    if _owned(draft, event.sender, event.resource, event.token) is None:
        draft.answer = "lost"
        return
    draft.update(locks={name: kept for name, kept in draft.state.locks.items() if name != event.resource})
    draft.answer = "released"


def extend(draft: Draft, event: ev.LockExtended) -> None:
    """Answers `extended`, or `lost` (G18)."""
    lock = _owned(draft, event.sender, event.resource, event.token)
    if lock is None or lock.expires < draft.at:
        draft.answer = "lost"
        return
    new = lock.with_(expires=draft.at + timedelta(seconds=draft.state.limits.lease_seconds))
    draft.update(locks={**draft.state.locks, event.resource: new})
    draft.answer = "extended"


def _owned(draft: Draft, agent: str, resource: str, token: int | None) -> Lock | None:
    """The agent's own lock; None if it was taken over or has another token. Unexpected: the agent has none."""
    check_agent(agent)
    lock = draft.state.locks.get(resource)
    if lock is not None and lock.agent == agent:
        return lock if token in (None, lock.token) else None
    if not any((t.resource, t.before) == (resource, agent) for t in draft.state.takeovers):
        holder = f"it is {lock.agent}'s" if lock is not None else "nobody has it"
        raise Unexpected(f"{agent} does not hold the lock of {resource}; {holder}")
    return None


def wait_seconds(attempt: int) -> float:
    """The pause before asking for a lock again: 1, 2, 4 … 30 s (G17)."""
    return float(min(30, 2 ** (attempt - 1)))


def write(draft: Draft, event: ev.StateWritten) -> None:
    """Answers `written`, or `held` for a critical field. Unexpected: the writer does not have the state's lock and
    cannot get it at once, or the field is the engine's."""
    check_agent(event.sender)
    lock = draft.state.locks.get(RESOURCE)
    held = lock if lock is not None and lock.expires >= draft.at else None
    if held is None or held.agent != event.sender:
        if not event.at_once:
            raise Unexpected(
                f"{event.sender} writes {event.field} without the lock of {RESOURCE}; take it with"
                f" `fixloop lock {called(draft.state)} {RESOURCE} --agent {event.sender}`"
            )
        if held is not None:
            told = f"{event.sender} writes {event.field} while {held.agent} has the lock of {RESOURCE}"
            raise Unexpected(told)
    top = event.field.split(".", 1)[0]
    if top in CRITICAL:
        question = Question(
            id=draft.state.question_id,
            agent=event.sender,
            reason="state_conflict",
            details=f"{event.sender} wants to write {event.field}",
            options=("apply", "drop"),
            blocking=False,
            at=draft.at,
            field=event.field,
        )
        kept = HeldWrite(question=question.id, agent=event.sender, field=event.field, value=event.value)
        payload = question.model_dump(mode="json", include={"reason", "details", "options", "blocking"})
        draft.send(HandoffType.ESCALATION, event.sender, ORCHESTRATOR, payload)
        draft.record("escalation_triggered", event.sender, question.reason)
        draft.update(
            questions=(*draft.state.questions, question), held_writes=(*draft.state.held_writes, kept)
        )
        draft.answer = "held"
        return
    if top in _ENGINES:
        raise Unexpected(f"{event.field} is written by the orchestrator only")
    times = draft.state.written.get(event.field, 0)
    if event.seen < times:
        draft.note(f"{event.sender} wrote {event.field} over a newer value; the last write wins")
    draft.update(
        metadata={**draft.state.metadata, event.field: event.value},
        written={**draft.state.written, event.field: times + 1},
    )
    draft.agent(event.sender, last_active=draft.at)
    draft.answer = "written"


def settle(draft: Draft, question: Question, answer: str) -> None:
    """Apply or drop a held write, as the user decided."""
    held = next(write for write in draft.state.held_writes if write.question == question.id)
    draft.update(held_writes=tuple(write for write in draft.state.held_writes if write is not held))
    changed = applied(draft.state, held) if answer == "apply" else {}
    draft.update(**changed)
    nothing = "" if changed or answer != "apply" else ", from which nothing follows"
    draft.note(f"the user chose to {answer} {held.agent}'s write of {held.field}{nothing}")


def applied(state: Handoffs, held: HeldWrite) -> dict[str, Any]:
    """The state fields that a held write changes (D46, G10); empty if the value is invalid for the field, or if the
    field is derived: the last handoff."""
    top, _, below = held.field.partition(".")
    value, changed = held.value, dict[str, Any]()
    if top == "iteration":
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return {"iteration": value} if is_number and value >= 1 and not below else {}
    if top == "current_workflow":
        wanted = {below: value} if below else value
        if isinstance(wanted, Mapping):
            spec, kind = wanted.get("spec"), wanted.get("type")
            if isinstance(spec, str) and not spec.startswith("/") and ".." not in spec.split("/"):
                changed["spec"] = spec
            if isinstance(kind, str) and kind in list(Kind):
                changed["kind"] = Kind(kind)
    elif top == "locks":
        # Locks that are left out are released, even those of other agents; writing a lock grants none.
        gone = {below} if below and value is None else set[str]()
        if not below and isinstance(value, Mapping):
            gone = set(state.locks) - set(value)
        changed["locks"] = {name: lock for name, lock in state.locks.items() if name not in gone}
    return {name: new for name, new in changed.items() if new != getattr(state, name)}
