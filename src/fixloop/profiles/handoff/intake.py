"""Builds the event that starts a workflow of handoffs from a frozen configuration."""

from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.configuration.settings import HandoffSettings
from fixloop.intake.preparation import Intake
from fixloop.profiles.agents import agent_seconds, commands_of
from fixloop.profiles.handoff.events import HandoffsStarted
from fixloop.profiles.handoff.state import Limits


def handoffs_started(configuration: Configuration, /, **facts: Any) -> HandoffsStarted:
    """The event that starts a workflow of handoffs; `facts` are its other fields: workflow, issue, name …"""
    settings = configuration.handoff or HandoffSettings()
    limits = Limits(
        lease_seconds=settings.timeout_minutes * 60,
        agent_seconds=agent_seconds(settings.agent),
        attempts=settings.attempts,
        delivery_attempts=configuration.limits.delivery_attempts,
    )
    written: dict[str, Any] = {
        "max_iterations": settings.max_iterations,
        "notify": bool(configuration.notify),
    }
    return HandoffsStarted(**written | facts, commands=commands_of(settings.agent), limits=limits)


INTAKE: Final = Intake(
    begun=lambda store, prepared, feature, facts: handoffs_started(
        prepared.configuration, **facts, request=feature.task, type=feature.kind, priority=feature.priority
    ),
    task=lambda state: str(state.request),
)
