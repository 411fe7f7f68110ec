"""What a decision about a cycle comes to, and the draft it is written on."""

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from fixloop.profiles.cycle import records as rec
from fixloop.profiles.cycle.messages import Body, Message, check_route
from fixloop.profiles.cycle.state import Agent, Cycle
from fixloop.profiles.cycle.statuses import AgentStatus
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.closing import push_ticket
from fixloop.protocol.ids import message_uid
from fixloop.protocol.letters import About, Letter, letter_ticket, post
from fixloop.protocol.moment import Moment
from fixloop.protocol.notifying import notify_ticket
from fixloop.protocol.ticket import Ticket, run_ticket

URGENCY: Final = 3
"""Of all steps and messages of a cycle, as the broker has it: high."""


class Transition(BaseModel):
    """One change of an agent's status."""

    model_config = ConfigDict(frozen=True)

    agent: str
    before: AgentStatus
    after: AgentStatus


class Outcome(BaseModel):
    """The next state and what follows from it, committed in one piece."""

    model_config = ConfigDict(frozen=True)

    state: Cycle
    messages: tuple[Message, ...] = ()
    transitions: tuple[Transition, ...] = ()
    steps: tuple[Ticket, ...] = ()
    dropped: tuple[str, ...] = ()
    """Tickets that are void now."""
    deadlines: dict[str, float] = {}
    cleared_deadlines: tuple[str, ...] = ()
    withdraws_tickets: bool = False
    notes: tuple[str, ...] = ()
    holds: bool | None = None
    stood_seconds: float = 0.0
    commits: bool = True
    """False: nothing happened that anybody has to remember; the answer is all."""


class Draft:
    """An outcome in the making: each method keeps state, messages and tickets in step."""

    def __init__(self, state: Cycle, now: Moment) -> None:
        self.at = max(state.last_at, now.at)
        self.clock = now.clock
        self._before = state
        self.state = state.with_(last_at=self.at)
        self._collected: dict[str, list[Any]] = {
            name: [] for name in ("messages", "transitions", "steps", "dropped", "cleared_deadlines", "notes")
        }
        self._asked: list[str] = []
        self._deadlines: dict[str, float] = {}
        self._holds: bool | None = None
        self._stood = 0.0
        self._withdraws = False

    def outcome(self) -> Outcome:
        """The finished outcome."""
        self._post()
        collected: dict[str, Any] = {name: tuple(values) for name, values in self._collected.items()}
        return Outcome(
            state=self.state,
            deadlines=self._deadlines,
            withdraws_tickets=self._withdraws,
            holds=self._holds,
            stood_seconds=self._stood,
            **collected,
        )

    def update(self, **changes: Any) -> None:
        """Change fields of the cycle."""
        self.state = self.state.with_(**changes)

    def append(self, **records: Any) -> None:
        """Add one record each to lists of the cycle; nothing is ever taken out of them (C9)."""
        self.update(**{name: (*getattr(self.state, name), record) for name, record in records.items()})

    def replace(self, name: str, records: Iterable[Any]) -> None:
        """Give the records of one list their present form, found by their ids."""
        new = {record.id: record for record in records}
        self.update(**{name: tuple(new.get(old.id, old) for old in getattr(self.state, name))})

    def agent(self, key: str, **changes: Any) -> Agent:
        """Change an agent; returns it as it is now."""
        before = self.state.agent(key)
        after = before.with_(**changes)
        if after.status is not before.status:
            change = Transition(agent=key, before=before.status, after=after.status)
            self._collected["transitions"].append(change)
        self.update(agents=tuple(after if agent.key == key else agent for agent in self.state.agents))
        return after

    def note(self, text: str) -> None:
        """Something the log should know that nobody said to anybody."""
        self._collected["notes"].append(text)

    def tell(self, actor: str, text: str) -> None:
        """One line of the coordination log's timeline (C26)."""
        self.append(timeline=rec.TimelineEntry(at=self.at, actor=actor, text=text))

    def say(self, body: Body, *, sender: str = ORCHESTRATOR, recipient: str, summary: str) -> Message:
        """
        Say one line.

        Raises:
            ProtocolError: there is no such route (C3); nothing was said.
        """
        check_route(body.kind, sender, recipient)
        sequence = self.state.sequence + 1
        said = Message(
            uid=message_uid(self.state.workflow, sequence),
            message_id=f"{body.kind.removeprefix('cycle.').upper()}-{self.state.cycle_id}-{sequence}",
            sender=sender,
            recipient=recipient,
            at=self.at,
            issue=self.state.issue,
            iteration=self.state.iteration,
            max_iterations=self.state.max_iterations,
            number=self.state.lines + 1,
            summary=summary,
            body=body,
        )
        self.update(sequence=sequence, lines=said.number)
        self._collected["messages"].append(said)
        return said

    def ask(self, key: str, *, delay_seconds: float = 0.0) -> None:
        """Ask an agent for one run: a ticket for its command, the run's clock for somebody outside."""
        agent = self.agent(key, asked=True, asked_at=self.at)
        limit = self.state.limits.seconds_of(key)
        if not agent.command:
            self._asked.append(key)
            if limit is not None:
                self.set_deadline(f"run/{key}", self.clock + limit)
            return
        ticket = work_ticket(self.state, agent)
        self._collected["steps"].append(ticket.model_copy(update={"delay_seconds": delay_seconds}))

    def ask_to_finish(self) -> None:
        """Have the orchestrator complete the cycle in a step of its own (C50)."""
        self._collected["steps"].append(finish_ticket(self.state))

    def push(self, attempt: int = 1, delay_seconds: float = 0.0) -> None:
        """Have the branch pushed."""
        self._collected["steps"].append(push_ticket(self.state, URGENCY, attempt, delay_seconds))

    def drop(self, key: str) -> None:
        """What an agent was asked for is void."""
        agent = self.state.agent(key)
        if agent.asked and agent.command:
            self._collected["dropped"].append(work_id(self.state, agent))
        self.stop_clock(key)
        self.agent(key, asked=False, converging=False)

    def deliver(self, letter: Letter, delay_seconds: float = 0.0) -> None:
        """Have a letter brought to its agent's mailbox."""
        self._collected["steps"].append(letter_ticket(self.state, letter, URGENCY, delay_seconds))

    def notify(self) -> None:
        """Have a person told of what was said last, where there is a command for that."""
        if self.state.notify:
            self._collected["steps"].append(notify_ticket(self.state))

    def _post(self) -> None:
        """Letters for what was said to agents outside; those that an answer came before are void."""
        state, outside = self.state, {agent.key for agent in self.state.agents if not agent.command}
        said = [
            About(message.recipient, message.message_id, message.uid, message.body.kind)
            for message in self._collected["messages"]
            if message.recipient in outside
        ]
        runs = {key: work_id(state, state.agent(key)) for key in self._asked}
        self._collected["dropped"].extend(post(self, self._before, said, runs))

    def set_deadline(self, name: str, due: float) -> None:
        """Have `DeadlineReached(name)` at `due` engine seconds."""
        self._deadlines[name] = due

    def stop_clock(self, key: str) -> None:
        """An agent's run is not late any more."""
        for name in (f"run/{key}", f"converge/{key}"):
            self._deadlines.pop(name, None)
            self._collected["cleared_deadlines"].append(name)

    def hold(self) -> None:
        """Nothing begins from now on, and no deadline falls due."""
        self._holds = True

    def release(self, stood_seconds: float) -> None:
        """What was held goes on; its deadlines are later by as much as they stood."""
        self._holds, self._stood = False, stood_seconds

    def withdraw(self) -> None:
        """Void every ticket and deadline."""
        self._withdraws = True
        self._collected["steps"].clear()
        self._asked.clear()
        self._deadlines.clear()


def work_id(state: Cycle, agent: Agent) -> str:
    """The ticket of an agent's present run and attempt."""
    return f"{state.workflow}.{agent.key}.{agent.runs}.{agent.attempt}"


def work_ticket(state: Cycle, agent: Agent) -> Ticket:
    """The right to do an agent's present run and attempt."""
    return run_ticket(state, agent.key, work_id(state, agent), agent.attempt, URGENCY)


def finish_ticket(state: Cycle) -> Ticket:
    """The right to complete the cycle in its present iteration."""
    return Ticket(
        id=f"{state.workflow}.finish.{state.iteration}",
        workflow=state.workflow,
        step="finish",
        queue=f"{state.queue or 'fixloop'}.control",
        priority=URGENCY,
        iteration=state.iteration,
    )
