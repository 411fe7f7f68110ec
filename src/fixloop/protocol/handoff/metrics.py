"""The four metrics, from the events alone: recomputed they are what they were (D50-D52)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from fixloop.protocol.handoff.records import EventRecord

__all__ = ["Metrics", "escalation_rate", "measured"]


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


def escalation_rate(workflows: Mapping[str, Iterable[EventRecord]]) -> float:
    """Workflows with at least one escalation, of all that were started (D52); 0 where none was."""
    escalated = [any(e.event == "escalation_triggered" for e in events) for events in workflows.values()]
    return sum(escalated) / len(escalated) if escalated else 0.0
