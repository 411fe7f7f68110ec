"""Long seeded walks through the loop, with everything that can go wrong on the way.

The state machine next to this file finds the smallest surprise; these walks reach what lies deep: confirmations that
fail, rounds that undo each other, the second escalation after the third decision.
"""

from collections import Counter
from random import Random
from typing import Any

import pytest

from fixloop.protocol.checks import Unverified
from fixloop.protocol.messages import FOUR, Decision, Reason
from fixloop.protocol.state import Limits, WorkflowOutcome
from tests.fixtures.script import (
    SILENT,
    BadAnswer,
    Breaks,
    Fix,
    Result,
    Silent,
    errs,
    fails,
    failure,
    held,
    passes,
)
from tests.fixtures.strategies import SPECIALISTS
from tests.integration.test_validation_properties import Loop

pytestmark = pytest.mark.slow

ACTIONS = 40
WALKS = 200
ABSENT = Unverified(name="pytest", specialist="test-runner", reason="not installed in .venv", blocks=True)
Answer = Fix | Breaks | BadAnswer | Silent
MOODS: tuple[Answer, ...] = (Breaks(), Breaks(undelivered=True), Breaks(fatal=True), BadAnswer(), SILENT)
"""How the fixer of a walk fails, whenever it does not fix."""


def walk(seed: int) -> Loop:
    """A workflow under `ACTIONS` random actions; the invariants are checked after each."""
    random = Random(seed)
    loop = Loop()
    further = {
        "unverified": (ABSENT,) if seed % 5 == 0 else (),
        "trusted": "commit-0" if seed % 4 == 0 else "",
    }
    loop.start(told=_workflow(random) | further)
    mood = random.choice(MOODS)
    for _ in range(ACTIONS):
        _act(loop, random, mood)
        loop.no_run_exceeds_its_limit()
        loop.success_means_evidence_on_the_final_tree()
        loop.nothing_is_pending_after_the_end()
    loop.teardown()
    return loop


@pytest.mark.proves("K37", "A92", "R4", "A69")
def test_the_invariants_hold_on_long_walks() -> None:
    stages = [walk(seed).stage for seed in range(WALKS)]

    assert len([stage for stage in stages if stage.state.ended]) > WALKS // 2
    seen = Counter(str(stage.state.outcome) for stage in stages)
    for stage in stages:
        seen.update(_reason(message.body) for message in stage.said("escalation"))
        seen["reopened"] += sum(change.before == "COMPLETED" for change in stage.transitions)

    assert set(Reason) <= set(seen)
    assert set(WorkflowOutcome) <= set(seen)
    assert seen["reopened"] > 10


def _reason(body: Any) -> str:
    return str(body.reason)


def _workflow(random: Random) -> dict[str, Any]:
    names = random.sample(SPECIALISTS, random.choice([1, 2, 2, 3]))
    limits = [Limits(), Limits(), Limits(iteration_seconds=7200.0), Limits(iteration_seconds=None)]
    return {
        "runs": dict.fromkeys(names, ()),
        "fixer": random.choice(["command", "outside"]),
        "max_iterations": random.choice([5, 5, 4, 3]),
        "limits": random.choice(limits),
        "notify": random.random() < 0.2,
    }


def _act(loop: Loop, random: Random, mood: Answer) -> None:
    state = loop.stage.state
    if state.ended:
        return
    if state.paused:
        _answer(loop, random)
    elif loop.stage.running and random.random() < 0.5:
        loop.a_worker_dies()
    elif state.owner == "agent" and random.random() < 0.6:
        loop.the_agent_completes(tree=_tree(random))
    elif random.random() < 0.15:
        loop.time_passes(seconds=random.choice([60.0, 400.0, 1801.0]))
    elif random.random() < 0.1:
        loop.something_happens_again(index=random.randrange(100))
    elif random.random() < 0.02:
        loop.a_person_cancels()
    elif loop.stage.pending:
        loop.do_the_next_step(result=_result(loop, random), answer=_fix(random, mood))
    else:
        loop.time_passes(seconds=random.choice([400.0, 1801.0]))


def _answer(loop: Loop, random: Random) -> None:
    opened = loop.stage.state.escalation
    if opened is not None and opened.decision is not None:
        loop.a_person_is_done(tree=random.choice(["tree-y", "tree-z"]))
    elif random.random() < 0.2:
        loop.the_agent_completes_late(tree=_tree(random))
    else:
        is_hold = opened is not None and opened.reason is Reason.INTEGRITY_HOLD
        decisions, weights = (list(Decision), [4, 2, 1, 6, 3, 3]) if is_hold else (FOUR, [4, 2, 1, 6])
        decision = random.choices(decisions, weights)[0]
        loop.a_person_decides(decision=decision, iterations=random.choice([None, 1, 2]), minutes=None)


def _tree(random: Random) -> str | None:
    return random.choice([None, None, None, "tree-x"])


def _fix(random: Random, mood: Answer) -> Answer:
    return mood if random.random() < 0.8 else Fix(tree=_tree(random))


def _result(loop: Loop, random: Random) -> Result | Silent:
    names = random.choice(["a", "a", "b", "ab", "abc"])
    found = tuple(failure(name, check="pytest") for name in names)
    listed = ("pytest",) if random.random() < 0.3 else ()
    passing = passes(passed=("a", "b", "c"), lists_passes=("pytest",))
    odd: list[Result | Silent] = [
        errs(),
        errs(),
        Result("failed"),
        Result("skipped"),
        passes(skipped_checks=("x",)),
        SILENT,
        *([held("changed-test")] * 3 if loop.stage.state.trusted else []),
    ]
    failing = fails(*found, lists_passes=listed)
    return random.choices([failing, passing, random.choice(odd)], [5, 5, 3])[0]
