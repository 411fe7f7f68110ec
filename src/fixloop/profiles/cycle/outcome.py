"""The outcome of a decision about a cycle, and the draft that collects it."""

from typing import Any, TypeAlias

from fixloop.profiles.cycle import records as rec
from fixloop.profiles.cycle.messages import Body, Message, check_route
from fixloop.profiles.cycle.state import Agent, Cycle
from fixloop.protocol import draft
from fixloop.protocol.agent_events import Continued, Paused
from fixloop.protocol.event import ORCHESTRATOR, Value
from fixloop.protocol.ids import message_uid
from fixloop.protocol.ticket import About, Ticket, agent_ticket


class Transition(Value):
    """One change of an agent's status."""

    agent: str
    before: rec.AgentStatus
    after: rec.AgentStatus


Outcome: TypeAlias = draft.Outcome[Cycle, Message]


class Draft(draft.AgentDraft[Cycle, Message]):
    """An outcome in the making; each method keeps state, messages and tickets consistent."""

    def append(self, **records: Any) -> None:
        """Add one record each to lists of the cycle; nothing is ever removed from them (C9)."""
        self.update(**{name: (*getattr(self.state, name), record) for name, record in records.items()})

    def replace(self, name: str, record: Any) -> None:
        """Replace a record of a list, found by its id."""
        kept = (record if old.id == record.id else old for old in getattr(self.state, name))
        self.update(**{name: tuple(kept)})

    def agent(self, name: str, **changes: Any) -> Agent:
        """Change an agent; returns the changed agent."""
        before = self.state.agent(name)
        after: Agent = super().agent(name, **changes)
        if after.status is not before.status:
            self._made.transitions += (Transition(agent=name, before=before.status, after=after.status),)
        return after

    def add_remaining(self, *issues: str) -> None:
        """Record issues that are known and not fixed (G11)."""
        self.update(remaining_issues=tuple(dict.fromkeys((*self.state.remaining_issues, *issues))))

    def record_feedback(self, source: str, target: str, content: str, *, is_blocking: bool) -> None:
        """Record what was reported, whether or not it re-opens work (C47)."""
        entry = rec.FeedbackEntry(
            at=self.at,
            source=source,
            target=target,
            content=content,
            type="bug_report",
            iteration=self.state.iteration,
            blocking=is_blocking,
        )
        self.append(feedback_log=entry)

    def resolve(
        self, blocker: rec.Blocker, resolution: str, status: rec.BlockerStatus = rec.BlockerStatus.RESOLVED
    ) -> None:
        """Mark a blocker as resolved (C28)."""
        self.replace("blockers", blocker.with_(status=status, resolution=resolution, resolved_at=self.at))

    def record_decision(self, by: str, question: str, chosen: str, *, rationale: str, impact: str) -> None:
        """Record a decision with its reason (C27, C65)."""
        decision = rec.DecisionRecord(
            id=f"DEC-{len(self.state.decisions) + 1:03}",
            at=self.at,
            made_by=by,
            description=question,
            chosen_option=chosen,
            rationale=rationale,
            impact=impact,
            status=rec.DecisionStatus.IMPLEMENTED,
        )
        self.append(decisions=decision)

    def tell(self, actor: str, text: str) -> None:
        """Add a line to the coordination log's timeline (C26)."""
        self.append(timeline=rec.TimelineEntry(at=self.at, actor=actor, text=text))

    def say(self, body: Body, *, sender: str = ORCHESTRATOR, recipient: str, summary: str) -> Message:
        """Say a message, one line of the log. ProtocolError: there is no such route (C3), and nothing was said."""
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
        self._made.messages += (said,)
        return said

    def about(self, message: Message) -> About:
        """The subject of a letter about a message."""
        return About(message.recipient, message.message_id, message.uid, message.body.kind)

    def ask_to_finish(self) -> None:
        """Have the orchestrator complete the cycle in a separate step (C50)."""
        self._made.steps += (finish_ticket(self.state),)

    def drop(self, name: str) -> None:
        """Void what an agent was asked for."""
        super().drop(name)
        self.agent(name, converging=False)

    def pause(self, event: Paused) -> None:
        """Pause the cycle for a person."""
        super().pause(event)
        self.update(status=rec.CycleStatus.PAUSED, paused_at=self.at)
        self.tell(event.sender.capitalize(), f"Paused the cycle: {event.reason}".rstrip(": "))

    def go_on(self, event: Continued) -> None:
        """Continue the cycle for a person."""
        super().go_on(event)
        self.update(status=rec.CycleStatus.RUNNING, paused_at=None)
        self.tell(event.sender.capitalize(), "Continued the cycle")

    def withdraw(self) -> None:
        """Void every ticket, deadline, request to an agent and question to a person."""
        super().withdraw()
        self.update(escalations=())

    def stop_clock(self, name: str) -> None:
        """Clear the deadline of an agent's run."""
        self.clear_deadlines(f"run/{name}", f"converge/{name}")


def finish_ticket(state: Cycle) -> Ticket:
    """The ticket to complete the cycle in its current iteration."""
    id, queue = f"{state.workflow}.finish.{state.iteration}", f"{state.queue or 'fixloop'}.control"
    return agent_ticket(state, id, "finish", queue=queue)
