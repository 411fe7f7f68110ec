"""A cycle whose VAS is the validation loop: the child works for a ticket that no worker holds, over both stores."""

import os
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.engine.bridging import attended, bridge, child_of, has_word_of, is_given_up
from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import Profile, profile_in
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.cycle.agent_output import phase_answer
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.phase_result import read_result
from fixloop.profiles.validation.engine import VALIDATION
from fixloop.protocol.agent_events import Cancelled, Continued, Paused
from fixloop.protocol.event import Event, Repeated, Unexpected
from fixloop.protocol.events import DecisionMade, ReportDelivered, WorkflowStarted
from fixloop.protocol.messages import Decision
from fixloop.protocol.ticket import ATTEND, LOOK_AGAIN_SECONDS, Ticket
from fixloop.store.contract import Store
from fixloop.testing import ScriptedCrew
from fixloop.testing.crew import scripted_workflow
from tests.fixtures.cycle_stage import COMMANDS, reported
from tests.fixtures.store_samples import ME, sweep
from tests.fixtures.store_world import World

FLOW = "0a1b2c3d-7-1"
VAS = f"{FLOW}.vas.1.1"


class Bridge:
    """Workers of one process: hints are received in order, unless a test loses them."""

    def __init__(self, store: Store, script: str, fixer: str = "command") -> None:
        self.store = store
        self.hints: list[Ticket] = []
        self.deaf = False
        """Whether words from one workflow to another are lost."""
        self._script, self._fixer = script, fixer
        begin = cyc.CycleStarted(
            workflow=FLOW,
            issue=7,
            name="OAuth",
            cycle_id="cycle-v1-x",
            commands=COMMANDS | {"vas": "fixloop:validation"},
        )
        self.engine_of(CYCLE).start(begin)

    def engine_of(self, profile: Profile[Any]) -> ProfileEngine[Any]:
        return ProfileEngine(self.store, profile, lambda ticket, _: self.hints.append(ticket), self._announce)

    def _announce(self, outcome: Any) -> None:
        if not self.deaf:
            bridge(self.store, self.engine_of, outcome, self.hints.append)

    def state(self, workflow: str) -> Any:
        found = self.store.read(workflow)
        assert found is not None
        return profile_in(found.snapshot).load(found.snapshot)

    def work(self, most: int = 100) -> "Bridge":
        """Follow every hint, up to a limit."""
        for _ in range(most):
            if not self.hints:
                break
            self.follow(self.hints.pop(0))
        return self

    def follow(self, ticket: Ticket) -> None:
        claim = self.store.claim(ticket.id, ME, os.urandom(8).hex())
        if claim.status != "ok" or claim.ticket is None:
            return
        profile = profile_in(claim.snapshot)
        engine = self.engine_of(profile)
        held = engine.held(profile, claim.ticket, claim, ME)
        if is_given_up(self.store, self.engine_of, held.state):
            return
        event = self._cycle(held) if profile is CYCLE else self._loop(held)
        if event is None:
            self.store.release(ticket.id, ME, claim.fence, delay_seconds=LOOK_AGAIN_SECONDS)
            return
        applied = engine.finish(held, event, held.moment)
        assert applied.outcome is not None
        self.hints += applied.steps
        self._announce(applied.outcome)

    def _cycle(self, held: Any) -> Event | None:
        ticket = held.ticket
        if ticket.step == "finish":
            return cyc.CycleFinished()
        with suppress(Repeated):
            begun = cyc.AgentStarted(agent=ticket.specialist)
            self.engine_of(CYCLE).apply(FLOW, begun, operation=f"{ticket.id}/started")
        if ticket.specialist != "vas":
            return reported(ticket.specialist, "success", f"{_DOCUMENTS[ticket.specialist]}={ticket.id}")
        loop = attended(self.store, self.engine_of, ticket, VALIDATION, self._begin)
        if loop is None:
            return None
        result = read_result(phase_answer(loop, "vas", "cycle-v1-x"))
        return cyc.PhaseReported(sender="vas", result=result.model_copy(update={"files_written": ()}))

    def _begin(self, child: str) -> WorkflowStarted:
        [ticket] = [kept.ticket for kept in self._tickets(FLOW) if kept.ticket.specialist == "vas"]
        fixer, most = ("command", 5) if self._fixer == "command" else ("outside", 1)
        told = {"workflow": child, "fixer": fixer, "max_iterations": most, "parent": ticket.id}
        return scripted_workflow("0a1b2c3d", 7, self._script, **told)

    def _tickets(self, workflow: str) -> Any:
        found = self.store.read(workflow)
        assert found is not None
        return found.tickets

    def _loop(self, held: Any) -> Event | None:
        ticket, crew = held.ticket, ScriptedCrew()
        if ticket.step == ATTEND:
            return None
        work = SimpleNamespace(holding=held, store=self.store, cancelled=lambda: False)
        if ticket.step == "report":
            return ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
        return crew.fix(work) if ticket.step == "fix" else crew.check(work)


_DOCUMENTS = {"ra": "requirements.md", "ep": "exploration.md", "cd": "implementation.md"}


def started(store: Store, script: str = "a -", fixer: str = "command") -> Bridge:
    """A cycle whose VAS has started its child, which has not started to work."""
    workers = Bridge(store, script, fixer)
    first = workers.hints.pop()
    while store.read(child_of(VAS)) is None:
        workers.hints += [first] if not workers.hints else []
        workers.follow(workers.hints.pop(0))
    return workers


@pytest.mark.proves("C31", "C50")
def test_a_cycle_ends_in_the_validation_loop_and_holds_no_process_meanwhile(store: Store) -> None:
    workers = started(store)

    assert store.owners() == {}
    assert workers.state(FLOW).agent("vas").status == "running"
    workers.work()

    assert (workers.state(child_of(VAS)).verdict, workers.state(FLOW).outcome) == ("passed", "success")
    assert workers.state(child_of(VAS)).parent == VAS


def test_a_phase_failed_by_a_loop_without_a_fixer_returns_to_development(store: Store) -> None:
    workers = started(store, "a", "outside")

    while workers.hints and workers.state(FLOW).iteration == 1:
        workers.work(1)

    state = workers.state(FLOW)
    assert state.iteration == 2
    assert "test-runner: a" in state.feedback_log[0].content
    assert workers.state(child_of(VAS)).ended


@pytest.mark.proves("R8", "S30")
def test_one_run_never_starts_two_children(store: Store) -> None:
    workers = started(store)
    before = workers.state(child_of(VAS))
    [ticket] = [kept.ticket for kept in workers._tickets(FLOW)]

    store.wake(VAS)
    workers.follow(ticket)

    assert workers.state(child_of(VAS)) == before
    assert sum(name != FLOW for name, _ in store.workflows()) == 1


@pytest.mark.proves("S30", "R14")
def test_a_returning_ticket_finds_a_child_s_end_whose_notice_was_lost(store: Store, world: World) -> None:
    workers = started(store)
    workers.deaf = True
    workers.work()
    assert workers.state(child_of(VAS)).ended
    assert not workers.state(FLOW).ended
    sweep(store, FLOW)

    for _ in range(int(LOOK_AGAIN_SECONDS / 4) + 1):
        world.elapse(4.0)
        workers.hints += sweep(store, FLOW).ready
    workers.work()

    assert workers.state(FLOW).outcome == "success"


def test_a_notice_that_arrives_before_its_ticket_is_delayed_is_not_missed(store: Store) -> None:
    workers = started(store)
    assert not has_word_of(store, VAS)

    workers.deaf = True
    workers.work()

    assert has_word_of(store, VAS)


@pytest.mark.proves("K21", "A14")
def test_a_pause_holds_the_child_too_and_both_continue_together(store: Store) -> None:
    workers = started(store)

    workers.engine_of(CYCLE).apply(FLOW, Paused(), operation="pause")
    assert workers.state(child_of(VAS)).held is not None
    workers.work()
    assert not workers.state(child_of(VAS)).ended
    workers.engine_of(CYCLE).apply(FLOW, Continued(), operation="continue")
    assert workers.state(child_of(VAS)).held is None
    workers.work()

    assert workers.state(FLOW).outcome == "success"


@pytest.mark.proves("K20")
def test_a_cancelled_cycle_takes_its_child_with_it(store: Store) -> None:
    workers = started(store)

    workers.engine_of(CYCLE).apply(FLOW, Cancelled(), operation="cancel")

    assert workers.state(child_of(VAS)).outcome == "cancelled"
    with pytest.raises(Unexpected):
        workers.engine_of(CYCLE).apply(FLOW, cyc.CycleFinished(), operation="late")


@pytest.mark.proves("S30")
def test_a_child_whose_parent_ended_without_notice_is_cancelled_before_its_next_step(store: Store) -> None:
    workers = started(store)
    child = workers.state(child_of(VAS))
    assert not is_given_up(store, workers.engine_of, child)
    workers.deaf = True
    workers.engine_of(CYCLE).apply(FLOW, Cancelled(), operation="cancel")
    assert not workers.state(child_of(VAS)).ended

    assert is_given_up(store, workers.engine_of, child)

    assert workers.state(child_of(VAS)).outcome == "cancelled"
    assert not is_given_up(store, workers.engine_of, workers.state(FLOW))


def a_minute(workers: Bridge, world: World, workflow: str) -> None:
    """Sweepers run, and their hints are followed."""
    for _ in range(int(LOOK_AGAIN_SECONDS / 4) + 1):
        world.elapse(4.0)
        workers.hints += sweep(workers.store, workflow).ready
    workers.work()


@pytest.mark.proves("S30", "R7")
def test_a_child_that_waits_for_a_person_notices_that_its_parent_ended(store: Store, world: World) -> None:
    workers = started(store, "a; fix: blocked").work()
    child = child_of(VAS)
    versions = [len(store.history(child))]
    a_minute(workers, world, child)
    versions.append(len(store.history(child)))
    assert workers.state(child).paused
    workers.deaf = True
    workers.engine_of(CYCLE).apply(FLOW, Cancelled(), operation="cancel")

    a_minute(workers, world, child)

    assert workers.state(child).outcome == "cancelled"
    # Reading is no event.
    assert versions[0] == versions[1]


@pytest.mark.proves("K20", "R7")
def test_a_child_still_checks_its_parent_after_a_decision_withdrew_its_tickets(
    store: Store, world: World
) -> None:
    workers = started(store, "a; fix: blocked").work()
    child = child_of(VAS)
    again = DecisionMade(decision=Decision.EXTEND)

    workers.engine_of(VALIDATION).apply(child, again, operation="extend")
    workers.work()
    assert workers.state(child).paused
    workers.deaf = True
    workers.engine_of(CYCLE).apply(FLOW, Cancelled(), operation="cancel")
    a_minute(workers, world, child)

    assert workers.state(child).outcome == "cancelled"


def test_a_child_started_for_a_withdrawn_ticket_is_cancelled_at_once(store: Store) -> None:
    workers = Bridge(store, "-")
    ticket = Ticket(id=f"{FLOW}.vas.9.1", workflow=FLOW, step="work", queue="fixloop.cycle", specialist="vas")

    def begin(child: str) -> WorkflowStarted:
        return WorkflowStarted(
            workflow=child, issue=7, name="-", specialists=("test-runner",), parent=ticket.id
        )

    found = attended(store, workers.engine_of, ticket, VALIDATION, begin)

    assert found.outcome == "cancelled"


def test_a_child_escalates_to_a_person_and_its_end_wakes_the_cycle(store: Store) -> None:
    workers = started(store, "a; fix: blocked")

    workers.work()

    assert workers.state(child_of(VAS)).paused
    assert not workers.state(FLOW).ended
    assert dict(store.workflows())[child_of(VAS)]["parent"] == VAS
