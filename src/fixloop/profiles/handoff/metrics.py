"""The four metrics, from the events alone: recomputed they are what they were (D50-D52)."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from fixloop.profiles.handoff.records import EventRecord


class Metrics(BaseModel):
    """Of one workflow."""

    model_config = ConfigDict(frozen=True)

    seconds_by_agent: dict[str, float]
    """From each start to its completion, summed; a start that was not completed counts nothing."""
    handoffs: int
    fix_iterations: int
    """How often the fixer completed."""
    escalated: bool


def measured(events: Sequence[EventRecord]) -> Metrics:
    """What the events of one workflow come to."""
    began: dict[str, datetime] = {}
    seconds: dict[str, float] = defaultdict(float)
    for event in events:
        if event.event == "agent_started":
            began[event.agent] = event.timestamp
        elif event.event == "agent_completed" and event.agent in began:
            seconds[event.agent] += (event.timestamp - began.pop(event.agent)).total_seconds()
    names = [event.event for event in events]
    return Metrics(
        seconds_by_agent=dict(seconds),
        handoffs=names.count("handoff_created"),
        fix_iterations=sum((e.event, e.agent) == ("agent_completed", "fixer") for e in events),
        escalated="escalation_triggered" in names,
    )


def started_at(events: Sequence[EventRecord], agent: str) -> datetime | None:
    """When the agent's last run began."""
    began = (e.timestamp for e in reversed(events) if (e.event, e.agent) == ("agent_started", agent))
    return next(began, None)


class Escalations(NamedTuple):
    """Of all workflows of a project (D52)."""

    workflows: int
    """How many were started."""
    escalated: int
    """How many of them escalated at least once."""

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 where none was started."""
        return self.escalated / self.workflows if self.workflows else 0.0
