"""The outcome of a decision about a handoff workflow, and the draft that collects it."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from fixloop.errors import RefusedError
from fixloop.profiles.handoff import events as ev, records as rec
from fixloop.profiles.handoff.routes import HandoffStatus, check_route
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol import draft
from fixloop.protocol.agent_decisions import close
from fixloop.protocol.agent_events import Continued
from fixloop.protocol.event import Value
from fixloop.protocol.ids import message_uid
from fixloop.protocol.ticket import About

_KINDS: Final[dict[str, Literal["spec", "code", "report"]]] = {
    "planner": "spec",
    "builder": "code",
    "reviewer": "report",
    "fixer": "code",
}
_NEXT: Final = {
    HandoffStatus.PENDING: (HandoffStatus.ACCEPTED, HandoffStatus.REJECTED),
    HandoffStatus.ACCEPTED: (HandoffStatus.COMPLETED, HandoffStatus.REJECTED),
}


class Said(Value):
    """One line of the log: a message, or a handoff's change of status."""

    number: int
    message: rec.Message


Outcome: TypeAlias = draft.Outcome[Handoffs, Said]


class Draft(draft.AgentDraft[Handoffs, Said]):
    """An outcome in the making; each method keeps state, messages and tickets consistent."""

    def record(self, event: rec.EventName, agent: str, detail: str = "") -> None:
        """Record one of the six events, once per occurrence (D48, D49)."""
        made = rec.EventRecord(
            event=event,
            agent=agent,
            timestamp=self.at,
            workflow=self.state.kind,
            spec=self.state.spec,
            detail=detail,
        )
        self.update(events=(*self.state.events, made))

    def send(
        self, kind: str, sender: str, recipient: str, payload: Mapping[str, Any] | None = None
    ) -> rec.Message:
        """Say a message; a handoff is stored as pending (D4, G20). Raises ForbiddenRoute (D12)."""
        checked = check_route(kind, sender, recipient)
        sequence, state = self.state.sequence + 1, self.state
        message = rec.Message(
            message_id=message_uid(self.state.workflow, sequence),
            timestamp=self.at,
            sender=sender,
            recipient=recipient,
            type=checked,
            priority=self.state.priority,
            payload=dict(payload or {}),
            context=rec.Context(workflow=state.kind, spec=state.spec, iteration=state.iteration),
        )
        self.update(sequence=sequence, lines=self.state.lines + 1)
        self._made.messages += (Said(number=self.state.lines, message=message),)
        if checked.is_handoff:
            self.update(messages=(*self.state.messages, message))
            self.record("handoff_created", sender, message.message_id)
        return message

    def about(self, message: Said) -> About:
        """The subject of a letter about a message."""
        told = message.message
        return About(told.recipient, told.message_id, told.message_id, told.type.value)

    def move(self, message: rec.Message, after: HandoffStatus, reason: str = "") -> None:
        """Change a handoff's status: pending → accepted → completed, or a rejection. RefusedError (D16, G9)."""
        if after not in _NEXT.get(message.status, ()):
            raise RefusedError(f"a handoff that is {message.status} cannot become {after}")
        new = message.with_(status=after, reason=reason)
        kept = tuple(new if m.message_id == message.message_id else m for m in self.state.messages)
        self.update(messages=kept)

    def activate(self, name: str, *, started: bool = False, **changes: Any) -> None:
        """Ask an agent for a further run; it starts when it is activated, unless it has `started` already."""
        runs = self.state.agent(name).activations + 1
        self.agent(name, activations=runs, attempt=1, started=started, **changes)
        self.ask(name)

    def keep_files(self, event: ev.AgentReturned | ev.AgentEscalated) -> None:
        """Record the sender's changes to the repository in its current run; nothing if it changed no file (D34)."""
        if event.file_count:
            made = rec.Made(
                agent=event.sender,
                run=self.state.agent(event.sender).activations,
                kind=_KINDS[event.sender],
                files=event.files,
                count=event.file_count,
            )
            self.update(made=(*self.state.made, made))

    def go_on(self, event: Continued) -> None:
        """Release what a person's pause held; a blocking question still blocks."""
        super().go_on(event)
        if self.state.blocking() is not None:
            self.update(status="paused")

    def end(self, status: str, outcome: str) -> None:
        """End the workflow: no work and no deadline is left."""
        self.withdraw()
        self.update(status=status, outcome=outcome, ended_at=self.at, closing="")

    def close(self, outcome: str) -> None:
        """End successfully; push the branch before, if that was requested."""
        close(self, outcome, lambda how: self.end("completed", how))

    def withdraw(self) -> None:
        """Void every ticket, deadline and question."""
        super().withdraw()
        self.update(questions=(), current_agent="")
