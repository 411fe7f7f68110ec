"""What a decision about a cycle comes to, and the draft it is written on."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

from fixloop.profiles.cycle import records as rec
from fixloop.profiles.cycle.messages import Body, Message, check_route
from fixloop.profiles.cycle.state import Agent, Cycle
from fixloop.profiles.cycle.statuses import AgentStatus
from fixloop.protocol import draft
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.ids import message_uid
from fixloop.protocol.letters import About
from fixloop.protocol.ticket import Ticket


class Transition(BaseModel):
    """One change of an agent's status."""

    model_config = ConfigDict(frozen=True)

    agent: str
    before: AgentStatus
    after: AgentStatus


Outcome: TypeAlias = draft.Outcome[Cycle, Message]


class Draft(draft.AgentDraft[Cycle, Message]):
    """An outcome in the making: each method keeps state, messages and tickets in step."""

    def append(self, **records: Any) -> None:
        """Add one record each to lists of the cycle; nothing is ever taken out of them (C9)."""
        self.update(**{name: (*getattr(self.state, name), record) for name, record in records.items()})

    def replace(self, name: str, records: Iterable[Any]) -> None:
        """Give the records of one list their present form, found by their ids."""
        new = {record.id: record for record in records}
        self.update(**{name: tuple(new.get(old.id, old) for old in getattr(self.state, name))})

    def agent(self, name: str, **changes: Any) -> Agent:
        """Change an agent; returns it as it is now."""
        before = self.state.agent(name)
        after: Agent = super().agent(name, **changes)
        if after.status is not before.status:
            self._transitions.append(Transition(agent=name, before=before.status, after=after.status))
        return after

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
        self._messages.append(said)
        return said

    def about(self, message: Message) -> About:
        """What a letter about a message is to say."""
        return About(message.recipient, message.message_id, message.uid, message.body.kind)

    def ask_to_finish(self) -> None:
        """Have the orchestrator complete the cycle in a step of its own (C50)."""
        self._steps.append(finish_ticket(self.state))

    def drop(self, name: str) -> None:
        """What an agent was asked for is void."""
        super().drop(name)
        self.agent(name, converging=False)

    def withdraw(self) -> None:
        """Void every ticket and deadline, and whatever is asked of anybody."""
        super().withdraw()
        self.update(escalations=())

    def stop_clock(self, name: str) -> None:
        """An agent's run is not late any more."""
        self.clear_deadlines(f"run/{name}", f"converge/{name}")


def finish_ticket(state: Cycle) -> Ticket:
    """The right to complete the cycle in its present iteration."""
    return Ticket(
        id=f"{state.workflow}.finish.{state.iteration}",
        workflow=state.workflow,
        step="finish",
        queue=f"{state.queue or 'fixloop'}.control",
        priority=state.urgency,
        iteration=state.iteration,
    )
