"""A virtual-clock stage for the `validation` profile: scripted agents around the pure `decide`, no sleeps.

Holds what the store would hold (state, tickets, deadlines) and fires deadlines as a sweeper would, `latency_seconds`
after they fall due. Every event and state goes through JSON at each step, so a field that a snapshot forgets shows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

from fixloop.protocol import events as ev
from fixloop.protocol.checks import Counts, Evidence
from fixloop.protocol.messages import Decision, Escalation, Message
from fixloop.protocol.moment import Moment
from fixloop.protocol.outcome import Outcome, Transition
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.specialists import SPECIALISTS
from fixloop.protocol.state import Completion, Limits, OperationName, SpecialistState, State
from fixloop.protocol.statuses import Status
from fixloop.protocol.ticket import Ticket
from fixloop.protocol.validation import decide
from tests.scenarios.invariants import check_outcome, check_readable, check_said
from tests.scenarios.script import BadAnswer, Breaks, Fix, Result, Silent, passes

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ENDLESS = 1000
ORDER = [entry.name for entry in SPECIALISTS]

Runs = Iterable[Result | Silent]
Answers = Iterable[Fix | Breaks | BadAnswer | Silent]


@dataclass
class Script:
    """What the agents will do; a specialist without a further run passes, a fixer without a further answer mends."""

    runs: dict[str, list[Result | Silent]] = field(default_factory=dict)
    confirmations: dict[str, list[Result | Silent]] = field(default_factory=dict)
    answers: list[Fix | Breaks | BadAnswer | Silent] | None = None
    """None: nobody answers by itself; a test plays the main agent."""
    deliveries: list[str] = field(default_factory=list)
    """What is wrong with each delivery to a mailbox; empty: nothing."""


class Stage:
    """One workflow and everybody around it."""

    def __init__(
        self,
        runs: Mapping[str, Runs] | Runs = (),
        *,
        answers: Answers | None = (),
        confirmations: Mapping[str, Runs] | None = None,
        deliveries: Iterable[str] = (),
        latency_seconds: float = 0.5,
        **further: Any,
    ) -> None:
        by_name = runs if isinstance(runs, Mapping) else {"test-runner": runs}
        self.script = Script(
            {name: list(script) for name, script in by_name.items()},
            {name: list(script) for name, script in (confirmations or {}).items()},
            None if answers is None else list(answers),
            list(deliveries),
        )
        self.latency_seconds = latency_seconds
        self.clock = 0.0
        self.away_seconds = 0.0
        self.pending: list[Ticket] = []
        self.running: dict[str, Ticket] = {}
        self.deadlines: dict[str, float] = {}
        self.messages: list[Message] = []
        self.transitions: list[Transition] = []
        self.notes: list[str] = []
        self.executed: list[Ticket] = []
        self.applied: list[tuple[ev.Event, Moment]] = []
        self.snapshots: list[str] = []
        self._tickets: set[str] = set()
        self._trees = 0
        self._state: State | None = None
        self.apply(started(by_name, further))

    # What is there.

    @property
    def state(self) -> State:
        assert self._state is not None
        return self._state

    @property
    def active(self) -> SpecialistState:
        return self.state.active

    @property
    def now(self) -> Moment:
        return Moment(START + timedelta(seconds=self.clock + self.away_seconds), self.clock)

    @property
    def ids(self) -> list[str]:
        """The message ids of the lines, in order."""
        return [message.message_id for message in self.messages]

    def said(self, kind: str) -> list[Message]:
        """Every message with a body of `kind`, attached ones included."""
        return [message for message in self._everything() if message.body.kind == kind]

    def message(self, message_id: str) -> Message:
        """The one message with this id."""
        (found,) = (message for message in self._everything() if message.message_id == message_id)
        return found

    def _everything(self) -> list[Message]:
        return [*self.messages, *(m.attached for m in self.messages if m.attached is not None)]

    @property
    def escalation(self) -> Escalation:
        """The last escalation report."""
        body = self.said("escalation")[-1].body
        assert isinstance(body, Escalation)
        return body

    def path(self, specialist: str = "test-runner") -> list[Status]:
        """The statuses a specialist went through."""
        return [Status.PENDING, *(t.after for t in self.transitions if t.specialist == specialist)]

    # What happens.

    def apply(self, event: ev.Event) -> Outcome:
        """Decide and carry the outcome out; an event that is refused leaves no trace."""
        copied = ev.event_from_json(event.model_dump_json())
        assert copied == event
        outcome = decide(self._state, copied, self.now)
        check_outcome(self._state, outcome)
        self.applied.append((copied, self.now))
        self.snapshots.append(outcome.state.model_dump_json())
        self._state = State.model_validate_json(outcome.state.model_dump_json(exclude_defaults=True))
        assert self._state == outcome.state, "the snapshot is not complete"
        for message in outcome.messages:
            check_readable(message)
        self.messages += outcome.messages
        self.transitions += outcome.transitions
        self.notes += outcome.notes
        self._commit(outcome)
        check_said(self.messages)
        self._check_alive()
        return outcome

    def run(self) -> "Stage":
        """Carry out tickets, and let the scripted main agent answer, until everybody waits."""
        while not self.state.paused and not self.state.ended and self.state.held is None:
            assert len(self.applied) < ENDLESS, "the loop does not end"
            if self.pending:
                self.step()
            elif not self._outside_answers():
                break
        return self

    def step(self) -> None:
        """Carry out the oldest ticket."""
        ticket = self.pending[0]
        self.advance(ticket.delay_seconds)
        if ticket in self.pending:
            self.pending.remove(ticket)
            self._carry_out(ticket)

    def lose(self, ticket: Ticket) -> None:
        """Its owner died: it is offered again, the same attempt, without a message (K40)."""
        del self.running[ticket.id]
        self.pending.insert(0, ticket.model_copy(update={"delay_seconds": 0.0}))

    def advance(self, seconds: float) -> "Stage":
        """Let time pass; what falls due on the way is fired, in order."""
        target = self.clock + seconds
        while due := self._next_due(target):
            assert len(self.applied) < ENDLESS, "the deadlines do not end"
            self._fire(due)
        self.clock = max(self.clock, target)
        return self

    def advance_to(self, clock: float) -> "Stage":
        return self.advance(clock - self.clock)

    def away(self, seconds: float) -> "Stage":
        """The engine is away: the wall's clock goes on, its own stands still (K34)."""
        self.away_seconds += seconds
        return self

    # What people and outside agents say.

    def acknowledge(self) -> Outcome:
        return self.apply(
            ev.FixAcknowledged(specialist=self.active.name, iteration=self.active.iteration, by="agent")
        )

    def complete(
        self, fix: Fix | None = None, *, iteration: int | None = None, specialist: str = ""
    ) -> Outcome:
        """FIXDONE for the present run, or another."""
        number = self.active.iteration if iteration is None else iteration
        return self.apply(self.completed(fix or Fix(), number, specialist or self.active.name))

    def completed(self, fix: Fix, iteration: int, specialist: str) -> ev.FixCompleted:
        """The event of a fix; unless it names a tree there is a new one."""
        self._trees += 1
        tree = fix.tree if fix.tree is not None else f"tree-{self._trees}"
        completion = Completion(
            iteration=iteration,
            by="agent",
            summary=fix.summary,
            fixes=fix.fixes,
            files=fix.files,
            tip=f"commit-of-{tree}",
            tree=tree,
            marks=fix.marks,
            diff=fix.diff,
            said=fix.said,
        )
        return ev.FixCompleted(specialist=specialist, completion=completion)

    def decide(self, decision: str, **further: Any) -> Outcome:
        return self.apply(ev.DecisionMade(decision=Decision(decision), by="ann", **further))

    def pause(self, by: str = "ann", reason: str = "") -> Outcome:
        return self.apply(ev.Paused(by=by, reason=reason))

    def go_on(self) -> Outcome:
        return self.apply(ev.Continued(by="ann"))

    def done_by_hand(self, tree: str = "tree-by-hand") -> Outcome:
        """The person who chose manual-fix has finished."""
        event = ev.ManualFixDone(
            by="ann", summary="by hand", files=("src/app.py",), tip=f"c-{tree}", tree=tree
        )
        return self.apply(event)

    def refused(self, action: Callable[[], object]) -> str:
        """The sentence with which `action` is refused; it must leave the state untouched."""
        before, count = self.state, len(self.applied)
        try:
            action()
        except Unexpected as error:
            assert self.state == before
            assert len(self.applied) == count
            return str(error)
        raise AssertionError("it was not refused")

    # How it is carried out.

    def _commit(self, outcome: Outcome) -> None:
        if outcome.withdraws_tickets:
            self.pending.clear()
            self.running.clear()
            self.deadlines.clear()
        for name in outcome.cleared_deadlines:
            self.deadlines.pop(name, None)
        if outcome.holds is False:
            self.deadlines = {name: due + outcome.stood_seconds for name, due in self.deadlines.items()}
        self.deadlines |= outcome.deadlines
        for ticket in outcome.steps:
            assert ticket.id not in self._tickets, f"{ticket.id} is offered twice"
            self._tickets.add(ticket.id)
            self.pending.append(ticket)

    def _check_alive(self) -> None:
        """An agent that is not waited for has something to do, and a wait with a limit has an end (B16, B63)."""
        state = self.state
        if state.paused or state.ended or state.held is not None:
            return
        offered = state.fixer == "outside" and state.owner == "agent"
        assert self.pending or self.running or offered, "nothing is left to do and nobody to wait for"
        limited = state.operation is not None and state.operation.limit_seconds is not None
        if offered and limited and state.limits.reminder_window_seconds is not None:
            assert {OperationName.FIX.value, OperationName.FIX.reminder_deadline} & set(self.deadlines)

    def _carry_out(self, ticket: Ticket) -> None:
        self.running[ticket.id] = ticket
        self.executed.append(ticket)
        if ticket.limit_name and ticket.limit_seconds is not None:
            self.deadlines[ticket.limit_name] = self.clock + ticket.limit_seconds
        done = {
            "report": self._report,
            "deliver": self._deliver,
            "escalate": self._deliver,
            "notify": self._notify,
            "push": self._push,
            "fix": self._fix,
        }.get(ticket.step, self._check)
        event = done(ticket)
        if event is not None and self.running.pop(ticket.id, None) is not None:
            if ticket.limit_name:
                self.deadlines.pop(ticket.limit_name, None)
            self.apply(event)

    def _report(self, ticket: Ticket) -> ev.Event:
        return ev.ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)

    def _deliver(self, ticket: Ticket) -> ev.Event:
        """The mailbox takes the message, or does not."""
        kind = "failure-report" if ticket.step == "deliver" else "escalation"
        message_id = self.said(kind)[-1].message_id
        wrong = self.script.deliveries.pop(0) if self.script.deliveries else ""
        if wrong:
            return ev.DeliveryFailed(message_id=message_id, attempt=ticket.attempt, error=wrong)
        return ev.MessageStored(message_id=message_id, attempt=ticket.attempt)

    def _notify(self, ticket: Ticket) -> ev.Event:
        return ev.PersonNotified(detail="told")

    def _push(self, ticket: Ticket) -> ev.Event:
        """The server takes the branch, or does not."""
        wrong = self.script.deliveries.pop(0) if self.script.deliveries else ""
        return ev.BranchPushed(branch="" if wrong else "fixloop/1", attempt=ticket.attempt, error=wrong)

    def _check(self, ticket: Ticket) -> ev.Event | None:
        scripts = self.script.confirmations if ticket.step == "confirm" else self.script.runs
        script = scripts.get(ticket.specialist, [])
        result = script.pop(0) if script else passes()
        if isinstance(result, Silent):
            return None
        tree = self.state.tree
        self.advance(result.takes_seconds)
        return finished(ticket, result, tree)

    def _fix(self, ticket: Ticket) -> ev.Event | None:
        answers = self.script.answers
        answer = answers.pop(0) if answers else Fix()
        starts = not (isinstance(answer, Breaks) and answer.undelivered)
        if starts and self.active.status is Status.AWAITING_FIX:
            self.acknowledge()
        if isinstance(answer, Silent):
            return None
        self.advance(answer.takes_seconds)
        return self._answer(answer, ticket.specialist, ticket.iteration, ticket.attempt)

    def _answer(self, answer: Fix | Breaks | BadAnswer, name: str, iteration: int, attempt: int) -> ev.Event:
        if isinstance(answer, Fix):
            return self.completed(answer, iteration, name)
        if isinstance(answer, BadAnswer):
            return ev.AnswerRejected(specialist=name, iteration=iteration, violations=answer.violations)
        return ev.FixFailed(
            specialist=name,
            iteration=iteration,
            attempt=attempt,
            error=answer.error,
            output_tail=answer.output_tail,
            undelivered=answer.undelivered,
            fatal=answer.fatal,
        )

    def _outside_answers(self) -> bool:
        answers = self.script.answers
        if self.state.fixer != "outside" or answers is None or self.state.owner != "agent":
            return False
        answer = answers.pop(0) if answers else Fix()
        if isinstance(answer, Silent):
            self.script.answers = None
            return False
        if self.active.status is Status.AWAITING_FIX:
            self.acknowledge()
        name, iteration = self.active.name, self.active.iteration
        self.advance(answer.takes_seconds)
        self.apply(self._answer(answer, name, iteration, 1))
        return True

    def _next_due(self, target: float) -> tuple[float, str] | None:
        if self.state.held is not None:
            return None
        dues = [(due, name) for name, due in self.deadlines.items() if due + self.latency_seconds <= target]
        return min(dues, default=None)

    def _fire(self, entry: tuple[float, str]) -> None:
        due, name = entry
        self.clock = max(self.clock, due + self.latency_seconds)
        del self.deadlines[name]
        self.apply(ev.DeadlineReached(name=name, due=due))


def replayed(applied: Iterable[tuple[ev.Event, Moment]]) -> list[str]:
    """The states, as JSON, that the same events at the same moments lead to."""
    states: list[str] = []
    state: State | None = None
    for event, now in applied:
        state = decide(state, event, now).state
        states.append(state.model_dump_json())
    return states


def started(runs: Mapping[str, Runs], further: dict[str, Any]) -> ev.WorkflowStarted:
    """The first event: the specialists that `runs` names, and the fields in `further`."""
    issue = further.pop("issue", 101)
    told: dict[str, Any] = {
        "workflow": f"0f0f0f0f-{issue}-1",
        "issue": issue,
        "name": "a feature",
        "specialists": [name for name in ORDER if name in runs],
        "tip": "commit-0",
        "tree": "tree-0",
        "limits": Limits(),
    }
    return ev.WorkflowStarted(**{**told, **further})


def finished(ticket: Ticket, result: Result, tree: str) -> ev.RunFinished:
    """The event that a scripted run of `ticket` leads to."""
    on = tree if result.tree is None else result.tree
    found = len(result.failures)
    evidence = Evidence(
        check=ticket.specialist,
        command=f"check {ticket.specialist}",
        exit_code=0 if result.outcome == "passed" else 1,
        tree=on,
        counts=Counts(total=found + 1, passed=1, failed=found),
    )
    return ev.RunFinished(
        step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
        specialist=ticket.specialist,
        iteration=ticket.iteration,
        attempt=ticket.attempt,
        outcome=result.outcome,
        tree=on,
        failures=result.failures,
        passed=result.passed,
        lists_passes=result.lists_passes,
        evidence=() if result.outcome == "error" else (evidence,),
        skipped_checks=result.skipped_checks,
        coverage=result.coverage,
        error=result.error,
        stack_trace=result.stack_trace,
        is_final=result.is_final,
    )
