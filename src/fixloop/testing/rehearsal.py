"""Plays a scripted workflow undisturbed: only `decide`, in one thread, on a virtual clock.

A story is a workflow's history as a reader sees it; every disturbed run must have the same story as the undisturbed
one.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol.event import Moment
from fixloop.protocol.events import DeadlineReached, Event, FixCompleted, RunFinished
from fixloop.protocol.log import Statistics, statistics
from fixloop.protocol.messages import Message
from fixloop.protocol.specialists import Transition
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.protocol.validation import decide
from fixloop.store.entries import digest_of
from fixloop.testing.crew import RUN_FIELDS, ScriptedCrew

START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_STAMP: Final = re.compile(r"\d{8}T\d{6}Z(-\d+)?$")


class Answer(NamedTuple):
    """The answer of a person or an outside agent to a line of this kind, once it is the last one."""

    to: str
    """The beginning of that line's message id: `ESC`, `VFR`, `TIMEOUT`."""
    event: Event


class Line(NamedTuple):
    """One line of the log, without its text and times."""

    message_id: str
    """With `{ts}` for a timestamp."""
    sender: str
    recipient: str
    before: str
    after: str
    run: str
    attached: str


class Story(NamedTuple):
    """The part of a history that must not depend on disturbances."""

    lines: tuple[Line, ...]
    changes: tuple[tuple[str, str, str], ...]
    """Specialist, status before and after."""
    statuses: tuple[tuple[str, str, int], ...]
    outcome: str
    paused: bool
    tree: str
    counts: Statistics


class Rehearsal(NamedTuple):
    """A workflow played to its end."""

    story: Story
    tickets: tuple[Ticket, ...]
    """The executed tickets, in order."""
    fixes: tuple[tuple[str, int], ...]
    """The specialist and the run of each fix that was made."""


def told(messages: Sequence[Message], changes: Iterable[Transition], state: State) -> Story:
    """The story of a workflow."""
    outcome = state.outcome.value if state.outcome else None
    return Story(
        lines=tuple(
            Line(
                message_id=_STAMP.sub("{ts}", message.message_id),
                sender=message.sender,
                recipient=message.recipient,
                before=message.status_before,
                after=message.status_after,
                run=f"{message.iteration}/{message.max_iterations}",
                attached=message.attached.message_id if message.attached is not None else "",
            )
            for message in messages
        ),
        changes=tuple((change.specialist, change.before, change.after) for change in changes),
        statuses=tuple((entry.name, entry.status, entry.iteration) for entry in state.specialists),
        outcome=outcome or "",
        paused=state.paused,
        tree=state.tree,
        counts=statistics(messages, outcome=outcome),
    )


def undisturbed(started: Event, answers: Sequence[Answer] = ()) -> Story:
    """The story of a workflow that begins with `started`, with its answers from outside."""
    return rehearse(started, answers).story


def rehearse(started: Event, answers: Sequence[Answer] = ()) -> Rehearsal:
    """
    Play the workflow that begins with `started`, with its answers from outside, to its end.

    Raises:
        UsageError: an answer was never requested.
    """
    run = _Run()
    run.apply(started)
    waiting = list(answers)
    while True:
        if run.pending:
            run.carry_out(run.pending.pop(0))
        elif waiting and run.messages and run.messages[-1].message_id.startswith(waiting[0].to):
            run.apply(waiting.pop(0).event)
        elif run.deadlines:
            run.fire(min(run.deadlines, key=lambda name: run.deadlines[name]))
        else:
            if waiting:
                raise UsageError(f"nobody ever asked for an answer to {waiting[0].to}")
            story = told(run.messages, run.changes, run.state)
            return Rehearsal(story, tuple(run.carried_out), tuple(run.fixes))


class _Run:
    def __init__(self) -> None:
        self.clock = 0.0
        self.pending: list[Ticket] = []
        self.carried_out: list[Ticket] = []
        self.fixes: list[tuple[str, int]] = []
        self.held: set[str] = set()
        self.deadlines: dict[str, float] = {}
        self.messages: list[Message] = []
        self.changes: list[Transition] = []
        self._state: State | None = None
        self._crew = ScriptedCrew(pause=self.advance)

    @property
    def state(self) -> State:
        if self._state is None:
            raise UsageError("nothing has begun; apply a WorkflowStarted first")
        return self._state

    def apply(self, event: Event) -> None:
        now = Moment(START + timedelta(seconds=self.clock), self.clock)
        outcome = decide(self._state, event, now)
        self._state = outcome.state
        if isinstance(event, FixCompleted):
            self.fixes.append((event.specialist, event.completion.iteration))
        self.messages += outcome.messages
        self.changes += outcome.transitions
        if outcome.withdraws_tickets:
            self.pending.clear()
            self.held.clear()
            self.deadlines.clear()
        for name in outcome.cleared_deadlines:
            self.deadlines.pop(name, None)
        self.deadlines |= outcome.deadlines
        self.pending += outcome.steps

    def carry_out(self, ticket: Ticket) -> None:
        self.advance(ticket.delay_seconds)
        self.carried_out.append(ticket)
        self.held.add(ticket.id)
        if ticket.limit_name and ticket.limit_seconds is not None:
            self.deadlines[ticket.limit_name] = self.clock + ticket.limit_seconds

        def cancelled() -> bool:
            return ticket.id not in self.held

        def run(argv: Sequence[str], **_: object) -> SimpleNamespace | None:
            # No command runs, but its time passes.
            self.advance(float(argv[-1]))
            return None if cancelled() else SimpleNamespace(exit_code=0, output="")

        holding = SimpleNamespace(ticket=ticket, state=self.state, fence=1, deaths=0)
        store = SimpleNamespace(put_artifact=lambda workflow, data: digest_of(data))
        work = SimpleNamespace(holding=holding, store=store, cancelled=cancelled, run=run)
        try:
            event = self._crew.carried_out(work)
        except Exception as error:
            facts = {name: getattr(ticket, name) for name in RUN_FIELDS}
            event = RunFinished(**facts, outcome="error", tree=self.state.tree, error=str(error))
        if event is not None and not cancelled():
            self.held.discard(ticket.id)
            self.deadlines.pop(ticket.limit_name, None)
            self.apply(event)

    def fire(self, name: str) -> None:
        due = self.deadlines.pop(name)
        self.clock = max(self.clock, due + 0.01)
        self.apply(DeadlineReached(name=name, due=due))

    def advance(self, seconds: float) -> None:
        target = self.clock + seconds
        while due := [name for name, at in self.deadlines.items() if at < target]:
            self.fire(min(due, key=lambda name: self.deadlines[name]))
        self.clock = max(self.clock, target)
