"""What a decision about a handoff workflow comes to, and the draft it is written on."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from fixloop.profiles.handoff import records as rec
from fixloop.profiles.handoff.routes import HandoffStatus, check_move, check_route
from fixloop.profiles.handoff.state import Agent, Handoffs
from fixloop.protocol.closing import push_ticket
from fixloop.protocol.ids import message_uid
from fixloop.protocol.letters import About, Letter, letter_ticket, post
from fixloop.protocol.moment import Moment
from fixloop.protocol.notifying import notify_ticket
from fixloop.protocol.ticket import Ticket, run_ticket


class Said(BaseModel):
    """One line of the log: a message, or a handoff's move."""

    model_config = ConfigDict(frozen=True)

    number: int
    message: rec.Message


class Outcome(BaseModel):
    """The next state and what follows from it, committed in one piece."""

    model_config = ConfigDict(frozen=True)

    state: Handoffs
    messages: tuple[Said, ...] = ()
    transitions: tuple[BaseModel, ...] = ()
    steps: tuple[Ticket, ...] = ()
    dropped: tuple[str, ...] = ()
    deadlines: dict[str, float] = {}
    cleared_deadlines: tuple[str, ...] = ()
    withdraws_tickets: bool = False
    notes: tuple[str, ...] = ()
    """The audit log's part of what happened: takeovers, rejections, conflicts (G21)."""
    holds: bool | None = None
    stood_seconds: float = 0.0
    answer: str = ""
    """What the bringer of the event is told: `granted`, `forced`, `pending`, `lost` … (K10)."""
    commits: bool = True
    """False: nothing happened that anybody has to remember; the answer is all."""


class Draft:
    """An outcome in the making: each method keeps state, messages and tickets in step."""

    def __init__(self, state: Handoffs, now: Moment) -> None:
        self.at = max(state.last_at, now.at)
        self.clock = now.clock
        self._before = state
        self.state = state.with_(last_at=self.at)
        self.answer = ""
        self.commits = True
        self._messages: list[Said] = []
        self._steps: list[Ticket] = []
        self._asked: list[str] = []
        self._dropped: list[str] = []
        self._cleared: list[str] = []
        self._notes: list[str] = []
        self._deadlines: dict[str, float] = {}
        self._withdraws = False
        self._holds: bool | None = None
        self._stood = 0.0

    def outcome(self) -> Outcome:
        """The finished outcome."""
        self._post()
        return Outcome(
            state=self.state,
            messages=tuple(self._messages),
            steps=tuple(self._steps),
            dropped=tuple(self._dropped),
            deadlines=self._deadlines,
            cleared_deadlines=tuple(self._cleared),
            withdraws_tickets=self._withdraws,
            notes=tuple(self._notes),
            holds=self._holds,
            stood_seconds=self._stood,
            answer=self.answer,
            commits=self.commits,
        )

    def update(self, **changes: Any) -> None:
        """Change fields of the workflow."""
        self.state = self.state.with_(**changes)

    def agent(self, name: str, **changes: Any) -> Agent:
        """Change an agent; returns it as it is now."""
        after = self.state.agent(name).with_(**changes)
        self.update(agents=tuple(after if agent.name == name else agent for agent in self.state.agents))
        return after

    def note(self, text: str) -> None:
        """Something for the audit log that is none of the six events (G21)."""
        self._notes.append(text)

    def record(self, event: rec.EventName, agent: str, detail: str = "") -> None:
        """One of the six events, once for each occurrence (D48, D49)."""
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
        """
        Say one message; a handoff is kept, pending (D4, G20).

        Raises:
            ForbiddenRoute: these two may not say this to each other (D12).
        """
        checked = check_route(kind, sender, recipient)
        sequence = self.state.sequence + 1
        message = rec.Message(
            message_id=message_uid(self.state.workflow, sequence),
            timestamp=self.at,
            sender=sender,
            recipient=recipient,
            type=checked,
            priority=self.state.priority,
            payload=dict(payload or {}),
            context=rec.Context(
                workflow=self.state.kind, spec=self.state.spec, iteration=self.state.iteration
            ),
        )
        self.update(sequence=sequence, lines=self.state.lines + 1)
        self._messages.append(Said(number=self.state.lines, message=message))
        if checked.is_handoff:
            self.update(messages=(*self.state.messages, message))
            self.record("handoff_created", sender, message.message_id)
        return message

    def move(self, message: rec.Message, after: HandoffStatus, reason: str = "") -> None:
        """Give a handoff its next status, or refuse (D16)."""
        check_move(message.status, after)
        new = message.model_copy(update={"status": after, "reason": reason})
        kept = tuple(new if m.message_id == message.message_id else m for m in self.state.messages)
        self.update(messages=kept)

    def ask(self, name: str, *, delay_seconds: float = 0.0) -> None:
        """Ask an agent for one run: a ticket for its command, the task's clock for somebody outside (G15)."""
        agent = self.agent(name, asked=True, asked_at=self.at)
        limit = self.state.limits.seconds_of(name)
        if not agent.command:
            self._asked.append(name)
            if limit is not None:
                self.set_deadline(f"run/{name}", self.clock + limit)
            return
        ticket = work_ticket(self.state, agent)
        self._steps.append(ticket.model_copy(update={"delay_seconds": delay_seconds}))

    def push(self, attempt: int = 1, delay_seconds: float = 0.0) -> None:
        """Have the branch pushed."""
        priority = self.state.priority.broker
        self._steps.append(push_ticket(self.state, priority, attempt, delay_seconds))

    def drop(self, name: str) -> None:
        """What an agent was asked for is void."""
        agent = self.state.agent(name)
        if agent.asked and agent.command:
            self._dropped.append(work_id(self.state, agent))
        self.clear_deadline(f"run/{name}")
        self.agent(name, asked=False)

    def deliver(self, letter: Letter, delay_seconds: float = 0.0) -> None:
        """Have a letter brought to its agent's mailbox."""
        self._steps.append(letter_ticket(self.state, letter, self.state.priority.broker, delay_seconds))

    def notify(self) -> None:
        """Have a person told of what was said last, where there is a command for that."""
        if self.state.notify:
            self._steps.append(notify_ticket(self.state))

    def _post(self) -> None:
        """Letters for what was said to agents outside; those that an answer came before are void."""
        state, outside = self.state, {agent.name for agent in self.state.agents if not agent.command}
        said = [
            About(message.recipient, message.message_id, message.message_id, message.type.value)
            for message in (said.message for said in self._messages)
            if message.recipient in outside
        ]
        runs = {name: work_id(state, state.agent(name)) for name in self._asked}
        self._dropped.extend(post(self, self._before, said, runs))

    def set_deadline(self, name: str, due: float) -> None:
        """Have `DeadlineReached(name)` at `due` engine seconds."""
        self._deadlines[name] = due

    def clear_deadline(self, name: str) -> None:
        """It no longer matters."""
        self._deadlines.pop(name, None)
        self._cleared.append(name)

    def hold(self) -> None:
        """Nothing begins from now on, and no deadline falls due."""
        self._holds = True

    def release(self, stood_seconds: float) -> None:
        """What was held goes on; its deadlines are later by as much as they stood."""
        self._holds, self._stood = False, stood_seconds

    def end(self, status: str, outcome: str) -> None:
        """The workflow is over: nothing is left to do or to wait for."""
        self._stop()
        self.update(status=status, outcome=outcome, ended_at=self.at, closing="")

    def close(self, outcome: str) -> None:
        """It ends well; its branch is pushed before, where that was asked for."""
        if not self.state.push:
            self.end("completed", outcome)
            return
        self._stop()
        self.update(closing=outcome)
        self.push()

    def _stop(self) -> None:
        self._withdraws = True
        self._steps.clear()
        self._asked.clear()
        self._deadlines.clear()
        agents = tuple(agent.with_(asked=False) for agent in self.state.agents)
        self.update(agents=agents, questions=(), current_agent="")


def work_id(state: Handoffs, agent: Agent) -> str:
    """The ticket of an agent's present activation and attempt."""
    return f"{state.workflow}.{agent.name}.{agent.activations}.{agent.attempt}"


def work_ticket(state: Handoffs, agent: Agent) -> Ticket:
    """The right to do an agent's present activation and attempt."""
    return run_ticket(state, agent.name, work_id(state, agent), agent.attempt, state.priority.broker)
