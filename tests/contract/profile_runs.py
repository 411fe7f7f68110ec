"""Whole workflows of the other profiles over a store: tickets are claimed, done and committed as a worker does it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import AnyEvent, AnyStart, Profile
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.returns import Returned
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from tests.contract.samples import ME
from tests.scenarios.cycle_stage import COMMANDS as CYCLE_COMMANDS
from tests.scenarios.cycle_stage import reported
from tests.scenarios.handoff_stage import COMMANDS as HANDOFF_COMMANDS
from tests.scenarios.handoff_stage import SPEC

FLOW = "0a1b2c3d-7-1"


class Script(NamedTuple):
    """One workflow: how it begins, that an agent begins, and what each run comes to."""

    profile: Profile[Any]
    begin: AnyStart
    started: Callable[[str], AnyEvent]
    results: Callable[[], dict[str, Iterator[AnyEvent]]]
    documents: tuple[str, ...] = ()
    """Their texts; events name their digests."""


def _cycle_results() -> dict[str, Iterator[AnyEvent]]:
    plan = (PlanTask(id="TASK-001"), PlanTask(id="TASK-002", depends_on=("TASK-001",)))
    unclear = '["FR-003: OAuth optional?"]'
    return {
        "ra": iter(
            [reported("ra", "success", "requirements.md=1"), reported("ra", "success", "requirements.md=2")]
        ),
        "ep": iter([reported("ep", "success", "plan.json", tasks=plan)]),
        "cd": iter(
            [
                reported("cd", "partial", "issues.md", issues=unclear),
                reported("cd", "success", "implementation.md=1", tasks_completed='["TASK-001"]'),
                reported("cd", "success", "implementation.md=2", tasks_completed='["TASK-002"]'),
            ]
        ),
        "vas": iter(
            [
                reported("vas", "failed", "validation.md=1", issues='["login fails"]'),
                reported("vas", "success", "validation.md=2"),
            ]
        ),
        "": iter([cyc.CycleFinished()]),
    }


def _handoff_results() -> dict[str, Iterator[AnyEvent]]:
    def returns(name: str, **facts: Any) -> AnyEvent:
        return hnd.AgentReturned(sender=name, result=Returned(**facts))

    return {
        "planner": iter([returns("planner", status="completed", spec=SPEC)]),
        "builder": iter([returns("builder", status="completed", commit="abc123")]),
        "reviewer": iter(
            [returns("reviewer", status="needs_fixes", issues=2), returns("reviewer", status="approved")]
        ),
        "fixer": iter([returns("fixer", status="fixes_applied")]),
    }


SCRIPTS = {
    "cycle": Script(
        CYCLE,
        cyc.CycleStarted(
            workflow=FLOW, issue=7, name="OAuth", cycle_id="cycle-v1-x", commands=CYCLE_COMMANDS
        ),
        lambda key: cyc.AgentStarted(agent=key),
        _cycle_results,
        ("1", "2", "plan.json", "issues.md"),
    ),
    "handoff": Script(
        HANDOFF,
        hnd.HandoffsStarted(workflow=FLOW, issue=7, name="Add user auth", commands=HANDOFF_COMMANDS),
        lambda key: hnd.AgentActivated(agent=key),
        _handoff_results,
    ),
}


def run(store: Store, script: Script, *, times: int = 1) -> list[str]:
    """Go through a whole workflow, delivering every hint `times` times; the tickets in the order they were done."""
    hinted: list[Ticket] = []
    engine = ProfileEngine(store, script.profile, lambda ticket, state: hinted.append(ticket))
    assert engine.start(script.begin).status == "ok"
    for text in script.documents:
        store.put_artifact(script.begin.workflow, text.encode())
    results, done = script.results(), []
    while hinted:
        ticket = hinted.pop(0)
        for _ in range(times):
            steps = carry_out(engine, script, ticket, results)
            if steps is not None:
                done.append(ticket.id)
                hinted.extend(steps)
    return done


def carry_out(
    engine: ProfileEngine[Any], script: Script, ticket: Ticket, results: dict[str, Iterator[AnyEvent]]
) -> Sequence[Ticket] | None:
    """One delivery of a hint; None when there was nothing to do."""
    claim = engine.store.claim(ticket.id, ME, f"token {ticket.id}")
    if claim.status != "ok" or claim.ticket is None:
        return None
    held = engine.held(script.profile, claim.ticket, claim, ME)
    if ticket.specialist:
        engine.apply(ticket.workflow, script.started(ticket.specialist), operation=f"{ticket.id}/started")
    applied = engine.finish(held, next(results[ticket.specialist]), held.moment)
    assert applied.status == "ok", applied
    return applied.steps
