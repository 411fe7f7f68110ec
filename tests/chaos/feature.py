"""The state machine: everything that can happen to one feature, in any order, on the real engine."""

from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fixloop.engine.replay import audit
from fixloop.protocol import events as ev
from fixloop.protocol.answers import InvalidAnswer, parse_answer
from fixloop.protocol.messages import MAIN_AGENT, ON_A_HOLD, ORCHESTRATOR, USER, Decision
from fixloop.protocol.state import Completion, State
from fixloop.protocol.ticket import Ticket
from tests.chaos.simulation import Simulation
from tests.fixtures.holdings import Holding
from tests.fixtures.script import BadAnswer, Breaks, Fix, Silent, passes
from tests.fixtures.strategies import ANSWERS, FAILING, RESULTS, TREES, WILD, WORKFLOWS, near
from tests.fixtures.validation_stage import finished, started

INDEX = st.integers(min_value=0, max_value=20)
SEVERAL = st.one_of(
    FAILING.map(lambda failing: [failing] * 3),
    # A later fix breaks an earlier phase, perhaps repeatedly (K37).
    FAILING.map(lambda failing: [passes(), failing, passes(), failing, passes(), failing, passes(), failing]),
    st.lists(FAILING, min_size=2, max_size=6),
    st.lists(st.one_of(FAILING, RESULTS), min_size=1, max_size=4),
)
MOODS = st.one_of(ANSWERS.map(lambda answer: [answer] * 3), st.lists(ANSWERS, max_size=3))
GARBAGE = st.one_of(
    st.sampled_from(
        [
            "done!",
            "",
            "## Fix Completion\n\n**Message ID**: FIXDONE-101-99\n",
            '{"message_id": "FIXDONE-101-1"}',
            "## Escalation: Unresolvable Issue\n\n---\n\n````\n## Fix Completion",
            "\x00\x1b[2J" + "#" * 5000,
        ]
    ),
    st.text(max_size=40),
)
LATE = ["main-agent-fix", "main-agent-fix.escalation", "total-iteration", "re-validation"]
SENDERS = st.sampled_from(["", "", MAIN_AGENT, USER, ORCHESTRATOR, "@security-specialist", "@nobody"])
CHECKS = ("validate", "recheck", "confirm")
ENDLESS = 30


class Feature(RuleBasedStateMachine):
    """
    One feature under everything that can happen to it; `HistoryChecker` holds each entry to the protocol.

    Few rules with many choices: hypothesis switches whole rules off at random, and without work nothing happens.
    """

    seen: ClassVar[Counter[str]] = Counter()
    """What all sequences have reached so far."""

    @initialize(told=WORKFLOWS)
    def start(self, told: dict[str, Any]) -> None:
        further = dict(told)
        self.simulation = Simulation(started(further.pop("runs"), further))
        self.trees = 0

    @property
    def state(self) -> State:
        return self.simulation.state

    @precondition(lambda self: self.state.ended)
    @rule(told=WORKFLOWS, late=WILD)
    def another_one_begins(self, told: dict[str, Any], late: ev.Event) -> None:
        """Everything that still comes for the one that ended is refused (K20), but that what has passed was pushed, and
        what a CI says of it."""
        is_pushed = isinstance(late, ev.BranchPushed) and bool(late.branch)
        is_taken = isinstance(late, ev.ResultNoted) or (is_pushed and self.state.verdict != "not_passed")
        assert self.simulation.tell(near(late, self.state)) == is_taken
        self.simulation.advance(4000.0)
        self.teardown()
        self.start(told)

    # Workers.

    @precondition(lambda self: not self.state.ended and not self.state.paused)
    @rule(results=SEVERAL, answers=MOODS)
    def work_goes_on(self, results: list[Any], answers: list[Any]) -> None:
        """Steps without a disturbance, until the scripted results are used up."""
        results, answers = list(results), list(answers)
        for _ in range(ENDLESS):
            if not results or self.simulation.look().paused or self.state.ended or self.state.held:
                return
            if self.state.owner == "agent" and self.state.fixer == "outside":
                self.the_agent_answers(answers.pop(0) if answers else Fix())
            elif not self._everybody_works(results, answers):
                self.simulation.advance(10.0)

    def _everybody_works(self, results: list[Any], answers: list[Any]) -> bool:
        simulation = self.simulation
        while simulation.broker:
            simulation.deliver(0)
        ended = False
        for holding in list(simulation.working):
            told = results if holding.ticket.step in CHECKS else answers
            event = self.event_of(holding.ticket, told.pop(0) if told else None)
            if event is not None and holding in simulation.working:
                simulation.finish(holding, event)
                ended = True
        return ended

    @precondition(lambda self: self.simulation.working or self.simulation.broker)
    @rule(index=INDEX, result=RESULTS, answer=ANSWERS, again=st.booleans(), hinted=st.booleans())
    def one_step_is_done(self, index: int, result: Any, answer: Any, again: bool, hinted: bool) -> None:
        """One hint arrives, perhaps not for the last time; its worker may end before it sends the next one."""
        simulation = self.simulation
        if simulation.broker:
            simulation.deliver(index, again=again)
        if simulation.working:
            holding = simulation.working[index % len(simulation.working)]
            event = self.event_of(holding.ticket, result if holding.ticket.step in CHECKS else answer)
            if event is not None:
                simulation.finish(holding, event, hinted=hinted)

    @rule(
        what=st.sampled_from(["hint lost", "dies", "seems dead", "late", "twice"]),
        index=INDEX,
        result=RESULTS,
    )
    def something_goes_wrong(self, what: str, index: int, result: Any) -> None:
        """Lost hints, dead workers, workers thought dead, results that come twice."""
        simulation = self.simulation
        if simulation.broker and what == "hint lost":
            simulation.broker.pop(index % len(simulation.broker))
        elif simulation.broker and not simulation.working:
            simulation.deliver(index)
        elif simulation.working and what in ("dies", "seems dead"):
            simulation.die(simulation.working[index % len(simulation.working)], seen=what == "dies")
        elif simulation.lost and what == "late":
            holding = simulation.lost.pop(index % len(simulation.lost))
            told = result if holding.ticket.step in CHECKS else None
            self._commits_again(holding, self.event_of(holding.ticket, told))
        elif simulation.done:
            self._commits_again(*simulation.done[-1 - index % len(simulation.done)])

    def _commits_again(self, holding: Holding, event: ev.Event | None) -> None:
        before = self.simulation.found
        if event is not None and self.simulation.finish(holding, event).outcome is None:
            self.simulation.is_untouched(before)

    # Time.

    @precondition(lambda self: not self.state.ended)
    @rule(seconds=st.sampled_from([1801.0, 301.0, 4000.0, 1.0, 8.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.simulation.advance(seconds)

    @precondition(lambda self: not self.state.ended)
    @rule(
        seconds=st.sampled_from([-100.0, 4.0, 12.0, 3600.0, 50000.0]),
        name=st.sampled_from(LATE),
        due=st.floats(min_value=0.0, max_value=9000.0),
    )
    def the_engine_was_away(self, seconds: float, name: str, due: float) -> None:
        """Then an old deadline fires."""
        self.simulation.away(seconds)
        before = self.simulation.found
        if self.simulation.reach(name, due) != "ok":
            self.simulation.is_untouched(before)

    # The main agent and people.

    @precondition(lambda self: self.state.owner == "agent")
    @rule(answer=ANSWERS, number=st.sampled_from([0, 0, 0, 1, -1]), garbage=GARBAGE)
    def the_agent_answers(self, answer: Any, number: int = 0, garbage: str = "done!") -> None:
        """A completion for this iteration or another, an invalid text, a receipt or a blocker."""
        name, iteration = self.state.active.name, self.state.active.iteration
        if isinstance(answer, Fix):
            self.simulation.tell(self.completed(self.state, answer.tree, number))
        elif isinstance(answer, BadAnswer):
            self.simulation.tell(self.misread(name, iteration + number, garbage))
        elif isinstance(answer, Silent):
            self.simulation.tell(ev.FixAcknowledged(specialist=name, iteration=iteration, by="agent"))
        else:
            self.simulation.tell(ev.BlockerSignalled(by="agent", text=answer.error))

    @precondition(lambda self: self.state.paused)
    @rule(
        decision=st.sampled_from([*Decision, Decision.EXTEND, Decision.EXTEND, None]),
        iterations=st.sampled_from([None, None, 1, 2, 0, -1]),
        minutes=st.sampled_from([None, 5.0, 0.0]),
        escalation=st.sampled_from(["", "", "", "ESC-1-other"]),
        on_a_hold=st.sampled_from([*ON_A_HOLD, None]),
        tree=TREES,
    )
    def a_person_decides(
        self,
        decision: Decision | None,
        iterations: int | None,
        minutes: float | None,
        escalation: str,
        on_a_hold: Decision | None,
        tree: Any,
    ) -> None:
        """One of those there are; None: a completion arrives meanwhile. A manual fix is done at once, or twice."""
        opened = self.state.escalation
        if on_a_hold is not None and opened is not None and opened.findings:
            # Holds are rare, and what only they have is to be reached all the same.
            decision, iterations, minutes, escalation = on_a_hold, None, None, ""
        if decision is None:
            self.simulation.tell(self.completed(self.state, tree, 0))
            return
        self.simulation.tell(
            ev.DecisionMade(
                decision=decision, by="ann", iterations=iterations, minutes=minutes, escalation=escalation
            )
        )
        if decision is Decision.MANUAL_FIX and tree is not None:
            self.simulation.tell(ev.ManualFixDone(by="ann", tip=f"c-{tree}", tree=tree))

    @precondition(lambda self: not self.state.ended)
    @rule(event=WILD, is_near=st.booleans(), index=INDEX, sender=SENDERS)
    def anything_happens(self, event: ev.Event, is_near: bool, index: int, sender: str) -> None:
        """Invented, or close to what is expected, in any name, or repeated."""
        simulation = self.simulation
        event = (near(event, self.state) if is_near else event).model_copy(update={"sender": sender})
        if simulation.tell(event):
            assert sender != "@nobody"
            assert not (sender == MAIN_AGENT and isinstance(event, ev.RunFinished)), (
                "a result of its own (A51)"
            )
        if simulation.told:
            simulation.tell_again(simulation.told[index % len(simulation.told)])

    @precondition(lambda self: not self.state.ended)
    @rule(goes_on=st.booleans(), seconds=st.sampled_from([0.0, 1801.0]))
    def a_person_pauses(self, goes_on: bool, seconds: float) -> None:
        """For a while, perhaps twice, and perhaps for longer than other things take to happen."""
        self.simulation.tell(ev.Paused(by="ann"))
        self.simulation.advance(seconds)
        if goes_on:
            self.simulation.tell(ev.Continued(by="ann"))

    @precondition(lambda self: self.state.held is not None)
    @rule()
    def it_goes_on(self) -> None:
        assert self.simulation.tell(ev.Continued(by="ann"))

    @precondition(lambda self: self.simulation.checker.version > 25 and not self.state.ended)
    @rule()
    def a_person_cancels(self) -> None:
        self.simulation.tell(ev.Cancelled(by="ann"))

    # What must hold.

    @invariant()
    def the_history_keeps_the_rules(self) -> None:
        before = self.simulation.checker.version
        state = self.simulation.look()
        if self.simulation.checker.version > before:
            self.has_ended_or_continues(state)

    def has_ended_or_continues(self, state: State) -> None:
        """Before the end there is a step to do, or a person or an outside agent is awaited."""
        found = self.simulation.found
        if state.ended:
            assert not found.tickets
            assert not found.deadlines
        elif (
            not state.paused and not state.held and not (state.fixer == "outside" and state.owner == "agent")
        ):
            assert found.tickets, "nothing is left to do and nobody to wait for"
        live = self.simulation.store.live(state.workflow.partition("-")[0], state.issue)
        assert live == (None if state.ended else state.workflow)

    def teardown(self) -> None:
        """Without further disturbances it must end, and every decision is replayed."""
        if not hasattr(self, "simulation"):
            return
        simulation = self.simulation
        simulation.drain(lambda ticket: self.event_of(ticket, None) or _no_event(ticket), self.way_out)
        self.has_ended_or_continues(self.state)
        found = audit(simulation.store, simulation.workflow)
        assert not found.problems
        assert found.replayed == found.entries == simulation.checker.version
        type(self).seen += simulation.checker.seen

    # What they do.

    def way_out(self, state: State) -> ev.Event:
        """End a pause, skip what waits for a person, complete what waits for the agent."""
        opened = state.escalation
        if state.held is not None:
            return ev.Continued(by="ann")
        if opened is None:
            return self.completed(state, None, 0)
        if opened.decision is Decision.MANUAL_FIX:
            return ev.ManualFixDone(by="ann", tip="c-z", tree="tree-z")
        return ev.DecisionMade(decision=Decision.SKIP, by="ann")

    def misread(self, name: str, number: int, garbage: str) -> ev.AnswerRejected:
        """The result of an invalid answer, as the reading of an agent's answers gives it."""
        with pytest.raises(InvalidAnswer) as caught:
            parse_answer(garbage, issue=self.state.issue, iteration=number, specialist=name)
        return ev.AnswerRejected(
            specialist=name, iteration=number, violations=caught.value.violations, offending=garbage
        )

    def completed(self, state: State, tree: str | None, number: int) -> ev.FixCompleted:
        self.trees += 1
        where = tree or f"tree-{self.trees}"
        completion = Completion(
            iteration=state.active.iteration + number,
            by="agent",
            fixes=("mended it",),
            files=("src/app.py",),
            tip=f"commit-of-{where}",
            tree=where,
        )
        return ev.FixCompleted(specialist=state.active.name, completion=completion)

    def event_of(self, ticket: Ticket, told: Any) -> ev.Event | None:
        """A worker's event at the end of a step; None before that."""
        if isinstance(told, Silent):
            return None
        if ticket.step == "report":
            return ev.ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
        if ticket.step == "notify":
            return ev.PersonNotified(detail="told")
        if ticket.step == "push":
            return ev.BranchPushed(branch="fixloop/1", attempt=ticket.attempt)
        if ticket.step in ("deliver", "escalate"):
            return self._delivered(ticket, told)
        if ticket.step == "fix":
            return self._answered(ticket, told or Fix())
        return finished(ticket, told or passes(), self.simulation.look().tree)

    def _delivered(self, ticket: Ticket, told: Any) -> ev.Event:
        kind = "failure-report" if ticket.step == "deliver" else "escalation"
        message_id = [line.message_id for line in self.simulation.checker.lines if line.body.kind == kind][-1]
        if isinstance(told, Breaks):
            return ev.DeliveryFailed(message_id=message_id, attempt=ticket.attempt, error=told.error)
        return ev.MessageStored(message_id=message_id, attempt=ticket.attempt)

    def _answered(self, ticket: Ticket, answer: Fix | Breaks | BadAnswer) -> ev.Event:
        name, number = ticket.specialist, ticket.iteration
        if isinstance(answer, Fix):
            event = self.completed(self.state, answer.tree, 0)
            completion = event.completion.model_copy(update={"iteration": number})
            return event.model_copy(update={"specialist": name, "completion": completion})
        if isinstance(answer, BadAnswer):
            return ev.AnswerRejected(specialist=name, iteration=number, violations=answer.violations)
        return ev.FixFailed(
            specialist=name,
            iteration=number,
            attempt=ticket.attempt,
            error=answer.error,
            undelivered=answer.undelivered,
            fatal=answer.fatal,
        )


def _no_event(ticket: Ticket) -> ev.Event:
    raise AssertionError(f"nobody ends {ticket.id}")
