"""S20, S21, S25 and S27 on a real Redis: what outside agents and other senders may and may not do."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid1

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.errors import UsageError
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.workers import DEFAULT_GRAPH
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.returns import InvalidReturn, Returned
from fixloop.profiles.handoff.state import Limits
from fixloop.protocol.event import Event, Unexpected
from fixloop.store.redis_store import RedisStore
from tests.fixtures.crews import AGENTS, Crews, refused
from tests.fixtures.cycle_stage import reported
from tests.fixtures.deployment import Deployment, fresh_database
from tests.fixtures.handoff_stage import SPEC

pytestmark = pytest.mark.slow

AUTH = "src/auth.ts"
RACERS = 20
GRAPH = {"ra": (), "ep": (), "cd": ("ra", "ep"), "vas": ("cd",)}
ENDLESS = Limits(lease_seconds=1.0, agent_seconds=dict.fromkeys(AGENTS["handoff"]))
"""Locks that expire soon, and agents without a limit."""


@pytest.fixture
def deployment(redis_url: str, tmp_path: Path) -> Iterator[Deployment]:
    """No worker runs agents there: all agents are outside."""
    made = Deployment(fresh_database(redis_url), tmp_path)
    yield made
    made.end()


@pytest.mark.proves("S21", "R7", "K17")
def test_s21_two_agents_outside_report_at_the_very_same_moment(deployment: Deployment) -> None:
    cycles, together = Crews(deployment, "cycle"), Barrier(2)

    def report(workflow: str, key: str) -> str:
        store = RedisStore(deployment.url)
        try:
            engine: ProfileEngine[Any] = ProfileEngine(store, cycles.profile)
            together.wait(90)
            return engine.apply(workflow, reported(key), operation=key).status
        finally:
            store.close()

    for issue in range(201, 206):
        workflow = cycles.begin("", issue, graph=GRAPH, commands={})
        before = deployment.store.read(workflow)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(report, [workflow] * 2, ("ra", "ep")))
        after = deployment.store.read(workflow)

        assert answers == ["ok", "ok"]
        assert before is not None
        assert after is not None
        assert after.version == before.version + 2
        assert cycles.state(workflow).agent("cd").asked


@pytest.mark.proves("S20", "C22", "C51", "C5")
def test_s20_illegal_actions_on_a_cycle_are_refused_and_change_nothing(deployment: Deployment) -> None:
    cycles = Crews(deployment, "cycle")
    workflow = cycles.begin("", 211, commands={})
    facts: dict[str, Any] = {"recipient": "ra", "input": InputKind.FEEDBACK, "actions": ("do it",)}
    first = cyc.InputRequested(summary="two tests fail", **facts)
    cycles.tell(workflow, first)

    second = refused(cycles, workflow, first.model_copy(update={"summary": "a third fails"}))
    by_vas = refused(cycles, workflow, cyc.InputRequested(sender="vas", summary="x", **facts))
    by_hand = refused(cycles, workflow, cyc.StateWritten(sender="cd", field="agents.cd.status"))
    too_early = refused(cycles, workflow, cyc.CycleFinished())

    assert "ra has had its feedback for iteration 1" in second
    assert by_vas == "send_input is the orchestrator's; vas reports to it with a PHASE_RESULT"
    assert "cd may read it (it changed agents.cd.status)" in by_hand
    assert "ra, ep, cd, vas is not completed" in too_early
    assert cycles.kinds(workflow) == ["cycle-started", "input-requested", *["event-refused"] * 4]
    with pytest.raises(UsageError, match="wait for each other"):
        cycles.begin("", 212, graph={**DEFAULT_GRAPH, "ra": ("vas",)})
    assert deployment.store.search(212) == []


@pytest.mark.proves("S25", "D26", "D28", "K10")
def test_s25_an_expired_lock_is_taken_over_visibly_and_released_by_its_owner_only(
    deployment: Deployment,
) -> None:
    handoffs = Crews(deployment, "handoff")
    workflow = handoffs.begin("", 221, commands={}, limits=ENDLESS)
    operations = count(1)

    def tell(event: Event) -> str:
        applied = handoffs.engine.apply(workflow, event, operation=f"lock-{next(operations)}")
        return str(getattr(applied.outcome, "answer", applied.status))

    assert tell(hnd.LockAcquired(sender="builder", resource=AUTH)) == "granted"
    first = handoffs.state(workflow)
    assert tell(hnd.LockAcquired(sender="fixer", resource=AUTH)) == "pending"
    assert handoffs.state(workflow) == first
    deployment.until(lambda: tell(hnd.LockAcquired(sender="fixer", resource=AUTH)) == "forced")

    taken = handoffs.state(workflow)
    assert [(take.before, take.after) for take in taken.takeovers] == [("builder", "fixer")]
    assert taken.locks[AUTH].acquired > first.locks[AUTH].expires
    assert tell(hnd.LockReleased(sender="builder", resource=AUTH, token=first.locks[AUTH].token)) == "lost"
    assert handoffs.state(workflow).locks[AUTH].agent == "fixer"
    assert tell(hnd.LockReleased(sender="fixer", resource=AUTH)) == "released"
    assert handoffs.state(workflow).locks == {}


@pytest.mark.proves("S25", "D31", "K10")
def test_s25_one_of_twenty_simultaneous_agents_gets_a_free_resource(deployment: Deployment) -> None:
    handoffs, together = Crews(deployment, "handoff"), Barrier(RACERS)
    workflow = handoffs.begin("", 222, commands={}, limits=ENDLESS.with_(lease_seconds=60.0))

    def acquire(number: int) -> str:
        name = AGENTS["handoff"][number % 4]
        together.wait(90)
        # The same agent asks five times at once; the first one gets it.
        event = hnd.LockAcquired(sender=name, resource=AUTH)
        applied = handoffs.engine.apply(workflow, event, operation=f"acquire-{number}")
        return f"{name} {getattr(applied.outcome, 'answer', applied.status)}"

    with ThreadPoolExecutor(RACERS) as pool:
        answers = Counter(pool.map(acquire, range(RACERS)))

    holder = handoffs.state(workflow).locks[AUTH].agent
    assert answers == {
        f"{name} {'granted' if name == holder else 'pending'}": RACERS // 4 for name in AGENTS["handoff"]
    }
    assert handoffs.kinds(workflow).count("lock-acquired") == 1


@pytest.mark.proves("S27", "D12", "D17", "D18")
def test_s27_a_handoff_is_taken_by_one_and_by_its_addressee_only(deployment: Deployment) -> None:
    handoffs, together = Crews(deployment, "handoff"), Barrier(2)
    workflow = handoffs.begin("", 231, commands={})
    handoffs.tell(workflow, hnd.AgentActivated(agent="planner"))
    _return(handoffs, workflow, "planner", status="completed", spec=SPEC)
    (task,) = handoffs.state(workflow).messages

    by_planner = hnd.HandoffAccepted(sender="planner", message_id=task.message_id)
    assert "is for builder; planner cannot accept it" in refused(handoffs, workflow, by_planner)
    unknown = hnd.HandoffAccepted(sender="builder", message_id=str(uuid1()))
    assert "there is no handoff" in refused(handoffs, workflow, unknown)
    handoffs.tell(workflow, hnd.AgentActivated(agent="builder"))
    detour = hnd.HandoffSent(sender="builder", to="fixer", type="fix_request")
    assert "goes from reviewer to fixer" in refused(handoffs, workflow, detour)
    _return(handoffs, workflow, "builder", status="completed", commit="abc123")
    review = handoffs.state(workflow).messages[-1]

    def accept(number: int) -> str:
        together.wait(90)
        event = hnd.HandoffAccepted(sender="reviewer", message_id=review.message_id)
        try:
            return handoffs.engine.apply(workflow, event, operation=f"reviewer-{number}").status
        except Unexpected as late:
            return str(late)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(accept, range(2))) == [
            f"handoff {review.message_id} is accepted already",
            "ok",
        ]
    ok = hnd.AgentReturned(sender="reviewer", result=Returned(status="ok"))
    with pytest.raises(InvalidReturn, match="reviewer returned status 'ok'"):
        handoffs.tell(workflow, ok)
    assert handoffs.state(workflow).agent("reviewer").status == "active"


def _return(handoffs: Crews, workflow: str, name: str, **facts: Any) -> None:
    handoffs.tell(workflow, hnd.AgentReturned(sender=name, result=Returned(**facts)))
