"""What workers do for a pair: each agent says that it passes it on; one that finds `hold` waits until that is gone."""

import os
import time
from pathlib import Path
from typing import Final

from fixloop.protocol.event import Event
from fixloop.protocol.ticket import Ticket
from fixloop.repository.snapshot import Snapshot
from tests.e2e.pair.protocol import AGENTS, PAIR, Pair, Passed, ticket_of
from workers.steps.step import Step
from workers.steps.step_handlers import StepHandlers, StepKind


def _pass(step: Step) -> Event | None:
    agent, state = step.holding.ticket.specialist, step.holding.state
    folder = Path(Snapshot.model_validate_json(state.snapshot).source).parent
    with (folder / "runs").open("a") as runs:
        runs.write(f"{agent} {os.getpid()}\n")
    while (folder / f"hold-{agent}").exists():
        if step.cancelled():
            return None
        time.sleep(0.05)
    return Passed(sender=agent)


def following(state: Pair, ticket: Ticket) -> list[Ticket]:
    return [ticket_of(state, AGENTS[1])] if ticket.specialist == AGENTS[0] else []


STEPS: Final = StepHandlers(
    profile=PAIR, steps={"pass": StepKind(_pass, unfailing=True)}, failure=lambda step, why: None
)
