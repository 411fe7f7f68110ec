"""Agents' own writes into the shared state: the last wins, but for what the workflow rests on (D19, D44-D46, G10)."""

from collections.abc import Mapping
from typing import Any, Final

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.records import HeldWrite, Question
from fixloop.profiles.handoff.routes import HandoffType, Kind, check_agent
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.ids import called
from fixloop.protocol.refusals import Unexpected

MOST_OF_A_FIELD: Final = 200
MOST_OF_A_VALUE: Final = 16_000
"""Characters: every snapshot of the workflow carries it."""

CRITICAL: Final = ("current_workflow", "iteration", "locks", "last_handoff")
"""Held until a person has looked (G10)."""
RESOURCE: Final = "state.json"
"""What has to be locked before it is written (K10)."""
_ENGINES: Final = ("schema_version", "current_agent", "agents", "status", "waiting_for")


def write(draft: Draft, event: ev.StateWritten) -> None:
    """
    Answers `written`, or `held` for a critical field.

    Raises Unexpected: the writer has not the state's lock, and cannot have it at once; or the field is the engine's.
    """
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
            raise Unexpected(
                f"{event.sender} writes {event.field} while {held.agent} has the lock of {RESOURCE}"
            )
    top = event.field.split(".", 1)[0]
    if top in CRITICAL:
        _hold(draft, event)
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


def _hold(draft: Draft, event: ev.StateWritten) -> None:
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
    held = HeldWrite(question=question.id, agent=event.sender, field=event.field, value=event.value)
    payload = {
        "reason": question.reason,
        "details": question.details,
        "options": ["apply", "drop"],
        "blocking": False,
    }
    draft.send(HandoffType.ESCALATION, event.sender, ORCHESTRATOR, payload)
    draft.record("escalation_triggered", event.sender, question.reason)
    draft.update(questions=(*draft.state.questions, question), held_writes=(*draft.state.held_writes, held))
    draft.answer = "held"


def settle(draft: Draft, question: Question, answer: str) -> None:
    """Apply a held write, or drop it, as the user chose."""
    held = next(write for write in draft.state.held_writes if write.question == question.id)
    rest = tuple(write for write in draft.state.held_writes if write is not held)
    draft.update(held_writes=rest)
    changed = applied(draft.state, held) if answer == "apply" else {}
    draft.update(**changed)
    nothing = "" if changed or answer != "apply" else ", from which nothing follows"
    draft.note(f"the user chose to {answer} {held.agent}'s write of {held.field}{nothing}")


def applied(state: Handoffs, held: HeldWrite) -> dict[str, Any]:
    """
    The fields of the state that a held write changes (D46, G10).

    Empty where the value cannot be what the field is, or the field follows from what happened: the last handoff.
    """
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
        # Locks that are left out are given back, no matter whose; nobody gets one by writing it.
        gone = {below} if below and value is None else set[str]()
        if not below and isinstance(value, Mapping):
            gone = set(state.locks) - set(value)
        changed["locks"] = {name: lock for name, lock in state.locks.items() if name not in gone}
    return {name: new for name, new in changed.items() if new != getattr(state, name)}
