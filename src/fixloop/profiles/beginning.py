"""The events that begin a cycle and a workflow of handoffs, made from a frozen configuration."""

from typing import Any

from fixloop.configuration.model import Configuration
from fixloop.configuration.roles import CycleSettings, HandoffSettings, Role, graph_of
from fixloop.protocol.cycle.events import CycleStarted
from fixloop.protocol.cycle.state import Limits as CycleLimits
from fixloop.protocol.handoff.events import HandoffsStarted
from fixloop.protocol.handoff.state import Limits as HandoffLimits

__all__ = ["cycle_started", "handoffs_started"]


def cycle_started(configuration: Configuration, /, **facts: Any) -> CycleStarted:
    """
    The beginning of a cycle; `facts` are the event's other fields: workflow, issue, name, cycle_id …

    Raises:
        pydantic.ValidationError: a fact is missing or wrong.
    """
    settings = configuration.cycle or CycleSettings()
    limits = CycleLimits(
        run_seconds=_seconds(settings.timeout_minutes),
        agent_seconds=_agent_seconds(settings.agent),
        converge_seconds=settings.converge_minutes * 60,
        attempts=settings.attempts,
        responses=settings.answer_attempts,
        pass_rate_percent=settings.pass_rate_percent,
        coverage_percent=settings.coverage_percent,
        utc_offset_minutes=settings.utc_offset_minutes,
    )
    written: dict[str, Any] = {"max_iterations": settings.max_iterations, "graph": graph_of(settings.agent)}
    return CycleStarted(**written | facts, commands=_commands(settings.agent), limits=limits)


def handoffs_started(configuration: Configuration, /, **facts: Any) -> HandoffsStarted:
    """
    The beginning of a workflow of handoffs; `facts` are the event's other fields: workflow, issue, name …

    Raises:
        pydantic.ValidationError: a fact is missing or wrong.
    """
    settings = configuration.handoff or HandoffSettings()
    limits = HandoffLimits(
        lease_seconds=settings.timeout_minutes * 60,
        agent_seconds=_agent_seconds(settings.agent),
        attempts=settings.attempts,
    )
    written: dict[str, Any] = {"max_iterations": settings.max_iterations}
    return HandoffsStarted(**written | facts, commands=_commands(settings.agent), limits=limits)


def _commands(agents: dict[str, Role]) -> dict[str, str]:
    """What runs an agent, for people to read; its arguments are the configuration's."""
    return {key: " ".join(role.command) for key, role in agents.items() if role.command}


def _agent_seconds(agents: dict[str, Role]) -> dict[str, float | None]:
    return {
        key: _seconds(role.timeout_minutes)
        for key, role in agents.items()
        if role.timeout_minutes is not None
    }


def _seconds(minutes: float) -> float | None:
    return minutes * 60 if minutes else None
