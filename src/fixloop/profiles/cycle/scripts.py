"""The scripts of a cycle's agents in a chaos run; `fixloop.testing.parts` defines the words."""

import json
import re
from typing import Any, Final

from fixloop.profiles.cycle import events as ev
from fixloop.profiles.cycle.agent_output import Writings
from fixloop.profiles.cycle.events import Written
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.cycle.state import Limits
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.ticket import Ticket
from fixloop.testing.parts import Scripts
from fixloop.testing.plan import CYCLE
from fixloop.testing.script import AFFIXED

_ISSUES: Final = {
    "unclear": "FR-003: OAuth optional vs required?",
    "plan": "TASK-001: the plan names no file",
    "stuck": "the licence server is down",
    "no": "login fails",
}


def _writings(store: Any, ticket: Ticket, run: int) -> Writings:
    names, plan = worker(ticket.specialist).documents, None
    texts = {names[0]: f"{ticket.specialist}, run {run}\n"}
    if "plan.json" in names:
        plan = (PlanTask(id="TASK-001", description="log in"),)
        texts["plan.json"] = json.dumps({"tasks": [task.model_dump(mode="json") for task in plan]})
    documents = tuple(
        Written(name=name, digest=store.put_artifact(ticket.workflow, text.encode()))
        for name, text in texts.items()
    )
    return Writings(documents, plan=plan)


def _phase_result(what: str, agent: str) -> str:
    status = {"ok": "success", "no": "failed"}.get(what, "partial")
    return (
        f"Working.\nPHASE_RESULT:\n- phase: {agent}\n- status: {status}\n- files_written: []\n"
        f"- summary: scripted to {what}\n- issues: {json.dumps([_ISSUES[what]] if what in _ISSUES else [])}\n"
    )


SCRIPTS: Final = Scripts(
    agents=("ra", "ep", "cd", "vas"),
    scripts=(
        "ra: ok~0.05; cd: unclear~0.05 ok ok~0.05; vas: no~0.05 ok",
        "ra: $ok~0.2; ep: $ok~0.2; cd: $ok~0.2; vas: $no~0.2 $ok~0.2",
        "ep: !ok~0.05; cd: plan~0.05 ok; vas: bad ok~0.05",
        "cd: stuck~0.05 ok; vas: no ok~0.05",
    ),
    places=CYCLE,
    results="phase-reported",
    given_up=ev.DecisionMade(decision="abort"),
    answers={"stuck": ev.DecisionMade(decision="manual-fix", text="use the other server")},
    words=re.compile(AFFIXED.format("ok|unclear|plan|stuck|no|bad|silent|")),
    answer=_phase_result,
    begun=lambda facts: ev.CycleStarted(
        **facts, cycle_id=f"cycle-{facts['issue']}", limits=Limits(base_seconds=0.1)
    ),
    left=_writings,
)
