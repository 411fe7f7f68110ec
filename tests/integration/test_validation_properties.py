"""Any events, in any order: the loop's invariants hold, and a replay gives the same states.

Events are legal ones from scripted agents, and wild ones: late, doubled, made up. A wild event is either taken, and
then everything still holds, or refused, and then nothing has changed.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fixloop.errors import UsageError
from fixloop.protocol import events as ev
from fixloop.protocol.event import Unexpected
from fixloop.protocol.messages import Decision, Reason
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import SILENT, Fix
from tests.fixtures.strategies import ANSWERS, FAILING, RESULTS, SPECIALISTS, TREES, WILD, WORKFLOWS, near
from tests.fixtures.validation_stage import Stage, replayed

pytestmark = pytest.mark.slow

ROUNDS = st.lists(st.one_of(FAILING, FAILING, FAILING, RESULTS), min_size=1, max_size=6)
CONFIRMATIONS = st.lists(st.one_of(FAILING, RESULTS), max_size=3)


class Loop(RuleBasedStateMachine):
    """One workflow under everything that can happen to it."""

    @initialize(told=WORKFLOWS)
    def start(self, told: dict[str, Any]) -> None:
        self.stage = Stage(answers=None, **told)
        self.allowed = dict.fromkeys(SPECIALISTS, told["max_iterations"])

    @precondition(lambda self: self.stage.state.ended)
    @rule(told=WORKFLOWS)
    def another_one_begins(self, told: dict[str, Any]) -> None:
        self.teardown()
        self.start(told)

    def tell(self, event: ev.Event) -> bool:
        """Apply `event`; False when it was refused, which must not leave a trace."""
        before = self.stage.state
        untouched = before.model_dump_json()
        try:
            self.stage.apply(event)
        except UsageError:
            assert self.stage.state is before
            assert before.model_dump_json() == untouched
            return False
        return True

    @property
    def is_over(self) -> bool:
        return self.stage.state.ended

    @precondition(lambda self: self.stage.pending)
    @rule(result=RESULTS, answer=ANSWERS)
    def do_the_next_step(self, result: Any, answer: Any) -> None:
        """The oldest ticket; if a wild event came before its result, that is refused."""
        stage = self.stage
        name = stage.pending[0].specialist
        stage.script.runs[name] = [result]
        stage.script.confirmations[name] = [result]
        stage.script.answers = [answer]
        with suppress(Unexpected):
            stage.step()
        stage.script.answers = None

    @precondition(lambda self: not self.stage.state.paused and not self.stage.state.ended)
    @rule(
        results=ROUNDS, confirmations=CONFIRMATIONS, answers=st.lists(ANSWERS, max_size=3), then=st.booleans()
    )
    def it_goes_on_for_a_while(
        self, results: list[Any], confirmations: list[Any], answers: list[Any], then: bool
    ) -> None:
        """Several rounds without a disturbance; then one party is silent, or all succeed."""
        stage, name = self.stage, self.stage.state.current
        stage.script.runs = {name: [*results, *([SILENT] if then else [])]}
        stage.script.confirmations = {name: list(confirmations) for name in SPECIALISTS[:2]}
        stage.script.answers = [*answers, *([SILENT] if then else [])]
        with suppress(Unexpected):
            stage.run()
        stage.script.answers = None

    @precondition(lambda self: self.stage.running)
    @rule()
    def a_worker_dies(self) -> None:
        self.stage.lose(next(iter(self.stage.running.values())))

    @precondition(lambda self: self.stage.state.owner == "agent")
    @rule(tree=TREES)
    def the_agent_completes(self, tree: str | None) -> None:
        self.tell(self.stage.completed(Fix(tree=tree), self.stage.active.iteration, self.stage.active.name))

    @precondition(lambda self: self.stage.state.paused)
    @rule(tree=TREES)
    def the_agent_completes_late(self, tree: str | None) -> None:
        self.tell(self.stage.completed(Fix(tree=tree), self.stage.active.iteration, self.stage.active.name))

    @precondition(lambda self: self.stage.state.paused)
    @rule(
        decision=st.sampled_from(list(Decision)),
        iterations=st.sampled_from([None, None, 1, 2, 0, -1]),
        minutes=st.sampled_from([None, 5.0, 0.0]),
    )
    def a_person_decides(self, decision: Decision, iterations: int | None, minutes: float | None) -> None:
        opened, name = self.stage.state.escalation, self.stage.state.current
        assert opened is not None
        kept = self.stage.state.kept is not None
        event = ev.DecisionMade(decision=decision, by="ann", iterations=iterations, minutes=minutes)
        if not self.tell(event):
            return
        if decision is Decision.EXTEND and opened.reason in (Reason.MAX_ITERATIONS, Reason.DEADLOCK):
            self.allowed[name] += iterations if iterations is not None else 3
        if decision is Decision.MANUAL_FIX and kept:
            self.allowed[name] += 1

    @precondition(lambda self: self.stage.state.paused)
    @rule(tree=st.sampled_from(["tree-y", "tree-z"]))
    def a_person_is_done(self, tree: str) -> None:
        name = self.stage.state.current
        if self.tell(ev.ManualFixDone(by="ann", tip=f"c-{tree}", tree=tree)):
            self.allowed[name] += 1

    @rule(seconds=st.sampled_from([1.0, 60.0, 301.0, 1801.0, 4000.0]))
    def time_passes(self, seconds: float) -> None:
        self.stage.advance(seconds)

    @rule(seconds=st.sampled_from([-100.0, 3600.0]))
    def the_engine_was_away(self, seconds: float) -> None:
        self.stage.away(seconds)

    @rule(event=WILD, is_near=st.booleans())
    def anything_happens(self, event: ev.Event, is_near: bool) -> None:
        """Invented, or close to what is expected."""
        name = self.stage.state.current
        event = near(event, self.stage.state) if is_near else event
        if self.tell(event) and isinstance(event, ev.ManualFixDone):
            self.allowed[name] += 1

    @rule(index=st.integers(min_value=0, max_value=100))
    def something_happens_again(self, index: int) -> None:
        event = self.stage.applied[index % len(self.stage.applied)][0]
        if not isinstance(event, ev.DecisionMade | ev.ManualFixDone | ev.Cancelled):
            self.tell(event)

    @precondition(lambda self: len(self.stage.applied) > 30)
    @rule()
    def a_person_cancels(self) -> None:
        self.tell(ev.Cancelled(by="ann"))

    @invariant()
    def no_run_exceeds_its_limit(self) -> None:
        for entry in self.stage.state.specialists:
            if entry.name in SPECIALISTS:
                assert entry.max_iterations == self.allowed[entry.name]
                assert len(entry.runs) <= self.allowed[entry.name]

    @invariant()
    def success_means_evidence_on_the_final_tree(self) -> None:
        state = self.stage.state
        if state.outcome is not WorkflowOutcome.SUCCESS:
            return
        for entry in state.specialists:
            if entry.applicable:
                assert not entry.skipped
                assert entry.passed_tree == state.tree
                assert {evidence.tree for evidence in entry.evidence} <= {state.tree}
        assert any(entry.applicable for entry in state.specialists)

    @invariant()
    def nothing_is_pending_after_the_end(self) -> None:
        if self.is_over:
            assert not self.stage.pending
            assert not self.stage.deadlines

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            assert replayed(self.stage.applied) == self.stage.snapshots


@pytest.mark.proves("K37", "A92", "R4", "A69")
def test_the_invariants_hold_for_any_events() -> None:
    run_state_machine_as_test(
        Loop, settings=settings(max_examples=100, stateful_step_count=40, deadline=None, derandomize=True)
    )
