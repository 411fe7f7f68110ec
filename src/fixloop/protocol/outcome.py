"""The draft of the `validation` profile; only it builds the messages, tickets and transitions of that profile."""

from typing import Any, Final, TypeAlias

from fixloop.protocol import draft, ids, state as states
from fixloop.protocol.event import Moment
from fixloop.protocol.messages import ORCHESTRATOR, Body, Message, priority_of
from fixloop.protocol.roles import check_route
from fixloop.protocol.specialists import Role, Status, Transition, check_transition, specialist as slot
from fixloop.protocol.ticket import Priority, Ticket

CONTROL_STEPS: Final = frozenset({"report", "deliver", "escalate"})
TO_THE_MAIN_AGENT: Final = frozenset({"report", "deliver", "fix"})
"""Steps that deliver the failure report, with the report's priority."""
Outcome: TypeAlias = draft.Outcome[states.State, Message]


class Draft(draft.Draft[states.State, Message]):
    """An outcome in the making; each method keeps state, messages and transitions consistent."""

    def __init__(self, state: states.State, now: Moment) -> None:
        super().__init__(state, now)
        self.now = now
        self.update(last_at=self.at, schema_version=states.SCHEMA_VERSION)

    def update_specialist(self, name: str, **changes: Any) -> states.SpecialistState:
        """Change fields of a specialist; returns the changed specialist."""
        new = self.state.specialist(name).with_(**changes)
        entries = tuple(new if entry.name == name else entry for entry in self.state.specialists)
        self.update(specialists=entries)
        return new

    def move(self, after: Status, role: Role, reason: str) -> None:
        """Change the active specialist's status, or refuse (A51, A52, A54)."""
        name, before = self.state.current, self.state.active.status
        check_transition(before, after, role)
        self.update_specialist(name, status=after)
        change = Transition(specialist=name, before=before, after=after, role=role, reason=reason, at=self.at)
        self._made.transitions += (change,)

    def say(
        self,
        body: Body,
        message_id: str,
        *,
        summary: str,
        sender: str = ORCHESTRATOR,
        recipient: str,
        priority: Priority = Priority.HIGH,
        before: Status | None = None,
        attached: Message | None = None,
    ) -> Message:
        """Say a message, which is one line of the log (A84). `before` is the earlier status if the message reports a
        change that was already made; the later status is the active specialist's current one. ForbiddenRoute if the
        profile has no such route (A3, K26)."""
        changes: dict[str, Any] = {"number": self.state.lines + 1, "attached": attached}
        if before is not None:
            changes["status_before"] = before
        said = self._message(body, message_id, summary, (sender, recipient), priority, **changes)
        self.update(lines=said.number)
        self._made.messages += (said,)
        return said

    def attachment(self, body: Body, message_id: str, *, summary: str, recipient: str) -> Message:
        """A message that is attached to another and has no line in the log (K9)."""
        return self._message(body, message_id, summary, (ORCHESTRATOR, recipient), Priority.HIGH)

    def _message(
        self,
        body: Body,
        message_id: str,
        summary: str,
        ends: tuple[str, str],
        priority: Priority,
        **further: Any,
    ) -> Message:
        active = self.state.active
        check_route(self.state.profile, body.kind, *ends)
        self.update(sequence=self.state.sequence + 1)
        facts = {
            "uid": ids.message_uid(self.state.workflow, self.state.sequence),
            "message_id": message_id,
            "sender": ends[0],
            "recipient": ends[1],
            "at": self.at,
            "priority": priority,
            "issue": self.state.issue,
            "specialist": active.name,
            "iteration": active.iteration,
            "max_iterations": active.max_iterations,
            "summary": summary,
            "status_before": active.status,
            "status_after": active.status,
            "body": body,
        }
        # Validated here, so that a message with an empty header reaches neither the store nor the broker (A21).
        return Message.model_validate(facts | further)

    def stamped_id(self, prefix: str, subject: str) -> str:
        """A time-stamped id that is unique in the workflow (G4)."""
        stamp = f"{self.at:%Y%m%dT%H%M%SZ}"
        recent = tuple(taken for taken in self.state.stamped if stamp in taken)
        fresh = ids.stamped_id(prefix, self.state.issue, subject, self.at, recent)
        self.update(stamped=(*recent, fresh))
        return fresh

    def ask(
        self,
        step: str,
        *,
        operation: states.OperationName | None = None,
        attempt: int = 1,
        limit_seconds: float | None = None,
        delay_seconds: float = 0.0,
    ) -> None:
        """Ask for a step of the active specialist: makes a ticket, and the operation it belongs to."""
        active = self.state.active
        limit = limit_seconds
        # A step has the priority of its message (K13); a re-validation and all other steps are High.
        priority = priority_of(self.state.severity) if step in TO_THE_MAIN_AGENT else Priority.HIGH
        if operation is not None:
            if limit is None:
                limit = self.state.limits.of(operation, active.name)
            self._expect(operation, limit)
        kind = "fix" if step in ("fix", "notify", "push") else slot(active.name).name
        queue = self.state.queue or f"fixloop.{kind}"
        if step in CONTROL_STEPS:
            queue = f"{self.state.queue or 'fixloop'}.control"
        self._made.steps += (
            Ticket(
                id=ids.ticket_id(
                    self.state.workflow, active.name, step, active.iteration, attempt, self.state.epoch
                ),
                workflow=self.state.workflow,
                step=step,
                queue=queue,
                priority=(Priority.CRITICAL if self.state.paused else priority).broker,
                specialist=active.name,
                iteration=active.iteration,
                attempt=attempt,
                delay_seconds=delay_seconds,
                limit_name=operation.value if operation is not None and limit is not None else "",
                limit_seconds=self._first_deadline(limit) if operation is not None else None,
            ),
        )

    def expect_fix(self, limit_seconds: float | None) -> None:
        """An outside agent was offered the work: start its clock (K34)."""
        self._expect(states.OperationName.FIX, limit_seconds, started_clock=self.clock)
        first = self._first_deadline(limit_seconds)
        if first is not None:
            self.set_deadline(states.OperationName.FIX.value, self.clock + first)

    def _first_deadline(self, limit_seconds: float | None) -> float | None:
        """An operation's first deadline is its reminder (K29)."""
        return None if limit_seconds is None else self.state.limits.reminds_after(limit_seconds)

    def _expect(
        self, name: states.OperationName, limit: float | None, started_clock: float | None = None
    ) -> None:
        active, previous = self.state.active, self.state.operation
        same = previous is not None and (previous.name, previous.specialist, previous.iteration) == (
            name,
            active.name,
            active.iteration,
        )
        self.update(
            operation=states.Operation(
                name=name,
                specialist=active.name,
                iteration=active.iteration,
                started_clock=started_clock,
                asked_at=self.at if started_clock is not None else None,
                limit_seconds=limit,
                reminded_clock=previous.reminded_clock if same and previous is not None else None,
                escalates_clock=previous.escalates_clock if same and previous is not None else None,
            )
        )

    def start_iteration(self, seconds: float | None) -> None:
        """Restart the iteration's clock; None: without a cap (K6)."""
        due = self.clock + seconds if seconds is not None else None
        self.update(iteration_clock=self.clock)
        self.cap_iteration(due)

    def cap_iteration(self, due: float | None) -> None:
        """Move the running iteration's cap to `due` engine seconds."""
        self.update(iteration_due=due)
        if due is not None:
            self.set_deadline(states.OperationName.ITERATION.value, due)
        else:
            self.clear_deadlines(states.OperationName.ITERATION.value)

    def stop_iteration(self) -> None:
        """Stop the iteration's clock, because there is a result (K6)."""
        self.update(iteration_clock=None, iteration_due=None, reported_clock=None)
        self.clear_deadlines(states.OperationName.ITERATION.value)

    def finish_operation(self) -> None:
        """End the operation: neither its reminder nor its escalation may fire (A64)."""
        operation = self.state.operation
        if operation is not None:
            self.clear_deadlines(operation.name.value, operation.name.reminder_deadline)
            self.update(operation=None)

    def end(self, outcome: states.WorkflowOutcome) -> None:
        """End the workflow: no work and no deadline is left."""
        self.withdraw()
        if self.state.held is not None:
            self.release(0.0)
        self.update(paused=False, escalation=None, held=None, outcome=outcome, ended_at=self.at)

    def withdraw(self) -> None:
        """Void every ticket and deadline made so far (a pause or an end)."""
        super().withdraw()
        self._made.cleared_deadlines = ()
        self.update(operation=None, iteration_clock=None, iteration_due=None)
