"""What counts as lost, doubled, stuck and unexplained: each check of a chaos run fails where it should."""

from typing import Any

import pytest

from fixloop.protocol.events import WorkflowStarted
from fixloop.store.contract import Store
from fixloop.testing import Rehearsal, rehearse
from fixloop.testing.executions import Execution, executions_in
from fixloop.testing.injuries import AppliedInjury, Takeover, check_clock_shifts
from fixloop.testing.plan import Boundary, Injury
from fixloop.testing.report import judged, resumptions, unexplained
from tests.fixtures.command_stage import Agents
from tests.fixtures.store_world import MemoryWorld

TICKET = "0a1b2c3d-47-1.test-runner.fix.1.1"
HOSTS = {10: "host-1", 20: "host-2"}


def played(script: str = "a -", steps: int = 100) -> tuple[MemoryWorld, str, Rehearsal]:
    """A workflow that ran, and its expected result."""
    world = MemoryWorld()
    agents = Agents(world.store)
    workflow = agents.start(script=script)
    agents.run(workflow, steps)
    return world, workflow, rehearse(started(world.store, workflow))


def started(store: Store, workflow: str) -> WorkflowStarted:
    return WorkflowStarted.model_validate(store.history(workflow)[0].body["event"])


def test_a_workflow_that_matches_its_rehearsal_is_correct() -> None:
    world, workflow, rehearsal = played()

    found = judged(world.store, workflow, rehearsal)

    assert found.is_well
    assert (found.steps, found.fixes) == (4, 1)


def test_a_missing_workflow_is_lost() -> None:
    _, workflow, rehearsal = played()

    assert judged(MemoryWorld().store, workflow, rehearsal).lost == "it is not there"


def test_a_workflow_that_ended_differently_is_lost() -> None:
    world, workflow, _ = played("a -")
    other = started(world.store, workflow).model_copy(update={"name": "a b -"})

    found = judged(world.store, workflow, rehearse(other))

    assert found.lost.startswith("other lines, changes, statuses")
    assert not found.is_well


def test_a_workflow_that_has_not_ended_is_stuck() -> None:
    world, workflow, rehearsal = played(steps=2)

    found = judged(world.store, workflow, rehearsal)

    assert found.stuck
    assert not found.is_well


def test_a_history_that_was_changed_does_not_verify() -> None:
    world, workflow, rehearsal = played()
    world.put_entries(workflow, world.entries(workflow)[:-1])

    found = judged(world.store, workflow, rehearsal)

    assert found.problems
    assert not found.is_well


def test_a_fix_made_more_often_than_rehearsed_is_doubled() -> None:
    world, workflow, rehearsal = played()

    found = judged(world.store, workflow, rehearsal._replace(fixes=()))

    assert found.doubled == ("fix of test-runner run 1 made 1 times",)


def execution(pid: int, at: float, fence: int) -> Execution:
    return Execution(TICKET, fence, "fix", "tree-0", pid, at)


def applied(injury: Injury = Injury.KILL_WORKER, **more: Any) -> AppliedInjury:
    told: dict[str, Any] = {"hosts": (), "pids": frozenset(), "began": 5.0, "ended": 5.0}
    return AppliedInjury(injury, TICKET, Boundary.MID_WORK, **{**told, **more})


def another_command() -> AppliedInjury:
    found = applied(Injury.KILL_COMMAND, pids=frozenset({11}))
    found.ticket = TICKET.replace("fix", "validate")
    return found


TWICE = [execution(10, 4.0, 1), execution(20, 7.0, 2)]


@pytest.mark.parametrize(
    ("injuries", "takeovers"),
    [
        ([applied(pids=frozenset({10}))], []),
        (
            [applied(Injury.BLIP_REDIS, hosts=("host-1", "host-2"), ended=6.0)],
            [Takeover(TICKET, 10, alive=False)],
        ),
        ([applied(Injury.CUT_NETWORK, hosts=("host-1",), ended=16.0)], [Takeover(TICKET, 10, alive=True)]),
        ([applied(Injury.KILL_COMMAND, pids=frozenset({11}))], []),
    ],
    ids=[
        "its process was killed",
        "it died over Redis",
        "it was cut off for longer than a lease",
        "its command was killed",
    ],
)
def test_a_second_execution_is_explained_by_an_injury_of_the_first(
    injuries: list[AppliedInjury], takeovers: list[Takeover]
) -> None:
    assert unexplained(TWICE, injuries, takeovers, HOSTS) == []


@pytest.mark.parametrize(
    ("injuries", "takeovers"),
    [
        ([], []),
        ([applied(pids=frozenset({20}))], []),
        ([applied(pids=frozenset({10}), began=8.0, ended=8.0)], []),
        ([applied(pids=frozenset({10}), began=3.0, ended=3.5)], []),
        ([applied(Injury.CUT_NETWORK, hosts=("host-2",), ended=16.0)], []),
        ([applied(Injury.BLIP_REDIS, hosts=("host-1",), ended=6.0)], [Takeover(TICKET, 10, alive=True)]),
        ([applied(Injury.LOSE_CLAIM_REPLY)], []),
        ([another_command()], []),
        ([applied(Injury.WRONG_CLOCK, skew_seconds=30.0), applied(Injury.NO_ROOM)], []),
    ],
    ids=[
        "nothing happened",
        "another process was killed",
        "it was killed later",
        "it was stopped and went on before",
        "another host was cut off",
        "it lived through a short loss",
        "only a reply was lost",
        "the command of another step was killed",
        "its clock was wrong, and there was no room",
    ],
)
def test_nothing_else_explains_a_repetition(injuries: list[AppliedInjury], takeovers: list[Takeover]) -> None:
    assert unexplained(TWICE, injuries, takeovers, HOSTS) == [TWICE[1]]


def test_a_process_frozen_with_its_claim_may_start_after_its_successor() -> None:
    late_and_early = [execution(20, 7.0, 2), execution(10, 9.1, 1)]
    stopped = applied(Injury.STOP_WORKER, pids=frozenset({10}), began=1.0, ended=9.0)

    assert unexplained(late_and_early, [stopped], [], HOSTS) == []
    assert unexplained(late_and_early, [], [], HOSTS) == [late_and_early[0]]


def test_a_step_is_resumed_at_its_next_start_after_the_kill() -> None:
    runs = [execution(10, 4.0, 1), execution(20, 7.0, 2), execution(30, 9.0, 3)]
    killed = [applied(pids=frozenset({20}), began=7.5), applied(pids=frozenset({10})), applied(began=9.5)]

    assert resumptions(runs, killed) == [1.5, 2.0]
    assert resumptions(runs, [applied(Injury.KILL_HOST)]) == []
    waiting = applied(pids=frozenset({20}))
    waiting.boundary = Boundary.BEFORE_CLAIM
    assert resumptions(runs, [waiting]) == []


@pytest.mark.parametrize(
    ("skew", "at", "took_effect"), [(30.0, 6.0, True), (0.0, 6.0, False), (30.0, 9.0, False)]
)
def test_a_wrong_clock_takes_effect_if_an_agent_starts_and_sees_it(
    skew: float, at: float, took_effect: bool
) -> None:
    found = applied(Injury.WRONG_CLOCK, skew_seconds=30.0, ended=8.0)

    check_clock_shifts([found], [execution(10, at, 1)._replace(skew_seconds=skew)])

    assert found.took_effect == took_effect


def test_executions_are_read_back_as_written(tmp_path: Any) -> None:
    path = tmp_path / "executions"
    path.write_text(f"{TICKET} 7 fix tree-0 10 4.000 30.0\n")

    assert executions_in(path) == [execution(10, 4.0, 7)._replace(skew_seconds=30.0)]
    assert executions_in(tmp_path / "none") == []
