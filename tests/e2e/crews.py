"""Cycles and workflows of handoffs on a real deployment: begun, told and looked at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.engine.engine import ProfileEngine
from fixloop.engine.hints import send_hint
from fixloop.engine.profile import AnyEvent
from fixloop.engine.registry import PROFILES
from fixloop.errors import UsageError
from fixloop.profiles.cycle.events import CycleStarted
from fixloop.profiles.cycle.intake import cycle_started
from fixloop.profiles.cycle.state import Limits as CycleLimits
from fixloop.profiles.handoff.events import HandoffsStarted
from fixloop.profiles.handoff.intake import handoffs_started
from fixloop.profiles.handoff.state import Limits as HandoffLimits
from fixloop.repository.snapshot import take_snapshot
from fixloop.store.keys import workflow_id
from tests.e2e.deployment import PROJECT, Deployment

AGENTS = {"cycle": ("ra", "ep", "cd", "vas"), "handoff": ("planner", "builder", "reviewer", "fixer")}


class Crews:
    """The workflows of one profile on a deployment."""

    def __init__(self, deployment: Deployment, profile: str) -> None:
        self.deployment = deployment
        self.profile = PROFILES[profile]
        self.engine: ProfileEngine[Any] = ProfileEngine(
            deployment.store, self.profile, lambda ticket, _: send_hint(deployment.producer, ticket, profile)
        )

    def begin(self, script: str, issue: int, **facts: Any) -> str:
        """Start a workflow whose agents do what `script` says, with short pauses between attempts; its id."""
        name = self.profile.name
        known: dict[str, Any] = {
            "workflow": workflow_id(PROJECT, issue, 1),
            "issue": issue,
            "name": script,
            "commands": {agent: "scripted" for agent in AGENTS[name]},
        }
        event: CycleStarted | HandoffsStarted
        if name == "cycle":
            limits = {"limits": CycleLimits(base_seconds=0.1), "cycle_id": f"cycle-{issue}"}
            event = CycleStarted(**known | limits | facts)
        else:
            event = HandoffsStarted(**known | {"limits": HandoffLimits(base_seconds=0.1)} | facts)
        assert self.engine.start(event).status == "ok"
        return event.workflow

    def begin_in(self, repository: Path, issue: int) -> str:
        """Start a workflow as the repository's configuration says, from what lies there; its id."""
        name, cache = self.profile.name, self.deployment.folder / "cache"
        configuration = load_configuration(repository, profile=name)
        snapshot = take_snapshot(repository, issue=issue, cache=cache)
        workflow = workflow_id(PROJECT, issue, 1)
        facts = {
            "workflow": workflow,
            "issue": issue,
            "name": "Add user auth",
            "configuration": self.deployment.store.put_artifact(
                workflow, configuration.to_json().encode(), shared=True
            ),
            "snapshot": snapshot.model_dump_json(exclude_defaults=True),
            "tip": snapshot.commit,
        }
        event: CycleStarted | HandoffsStarted
        if name == "cycle":
            event = cycle_started(configuration, cycle_id=f"cycle-{issue}", **facts)
        else:
            event = handoffs_started(configuration, **facts)
        assert self.engine.start(event).status == "ok"
        return workflow

    def tell(self, workflow: str, event: AnyEvent) -> None:
        """Say something from outside, once."""
        self.engine.apply(workflow, event, operation=event.model_dump_json())

    def state(self, workflow: str) -> Any:
        return self.engine.state(workflow)

    def ended(self, workflow: str) -> Any:
        """The state when it has ended, or waits for a person and nothing is left to do."""
        self.deployment.finished(workflow)
        return self.state(workflow)

    def events(self, workflow: str) -> list[Mapping[str, Any]]:
        return self.deployment.events(workflow)

    def kinds(self, workflow: str) -> list[str]:
        return [event["kind"] for event in self.events(workflow)]

    def tickets(self, workflow: str) -> list[str]:
        """The tickets of runs that a crew began, in order, each without its workflow; a notice is none."""
        began = self.deployment.executions(workflow)
        done = [each.ticket.removeprefix(f"{workflow}.") for each in began]
        return [ticket for ticket in done if not ticket.startswith("notify.")]


def refused(crews: Crews, workflow: str, event: AnyEvent) -> str:
    """The sentence with which it was; the state is as it was, and the history tells of it."""
    before, told = crews.state(workflow), crews.kinds(workflow)
    with pytest.raises(UsageError) as found:
        crews.tell(workflow, event)
    after = crews.state(workflow)
    assert after.with_(last_at=before.last_at) == before
    assert crews.kinds(workflow)[: len(told)] == told
    return str(found.value)
