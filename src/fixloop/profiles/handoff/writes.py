"""Agents' own writes into the shared state: the last wins, but for what the workflow rests on (D19, D44-D46, G10)."""

from typing import Final

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.records import HeldWrite, Question
from fixloop.profiles.handoff.routes import HandoffType, check_agent
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

    Raises:
        Unexpected: the writer does not hold the state's lock, and cannot have it at once; or the field is the engine's.
    """
    check_agent(event.sender)
    _check_lock(draft, event)
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


def _check_lock(draft: Draft, event: ev.StateWritten) -> None:
    lock = draft.state.locks.get(RESOURCE)
    is_free = lock is None or lock.expires < draft.at
    if lock is not None and not is_free and lock.agent == event.sender:
        return
    if not event.at_once:
        raise Unexpected(
            f"{event.sender} writes {event.field} without the lock of {RESOURCE}; take it with"
            f" `fixloop lock {called(draft.state)} {RESOURCE} --agent {event.sender}`"
        )
    if lock is not None and not is_free:
        raise Unexpected(f"{event.sender} writes {event.field} while {lock.agent} has the lock of {RESOURCE}")


def _hold(draft: Draft, event: ev.StateWritten) -> None:
    question = Question(
        id=f"ESC-{draft.state.issue}-{draft.state.sequence + 1}",
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


def heartbeat(draft: Draft, event: ev.Heartbeat) -> None:
    """An agent is still at it; no lock lasts longer for it (D34, G18)."""
    agent = draft.state.agent(event.sender)
    if agent.status != "active":
        raise Unexpected(f"{event.sender} is {agent.status}; only who is active has a heartbeat")
    draft.agent(event.sender, last_active=draft.at)
