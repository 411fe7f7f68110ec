"""Builds the event that starts a cycle from a frozen configuration."""

import secrets
import string
from collections.abc import Mapping
from datetime import timedelta, timezone
from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.configuration.roles import graph_of
from fixloop.configuration.settings import CycleSettings
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import Intake, Prepared
from fixloop.profiles.agents import agent_seconds, commands_of, seconds
from fixloop.profiles.cycle.events import CycleStarted
from fixloop.profiles.cycle.state import Limits
from fixloop.profiles.cycle.workers import DEFAULT_GRAPH
from fixloop.protocol.event import Start
from fixloop.store.contract import Store


def cycle_started(configuration: Configuration, /, **facts: Any) -> CycleStarted:
    """The event that starts a cycle; `facts` are its other fields: workflow, issue, name, cycle_id …"""
    settings = configuration.cycle or CycleSettings()
    limits = Limits(
        run_seconds=seconds(settings.timeout_minutes),
        agent_seconds=agent_seconds(settings.agent),
        converge_seconds=settings.converge_minutes * 60,
        attempts=settings.attempts,
        responses=settings.answer_attempts,
        delivery_attempts=configuration.limits.delivery_attempts,
        pass_rate_percent=settings.pass_rate_percent,
        coverage_percent=settings.coverage_percent,
        utc_offset_minutes=settings.utc_offset_minutes,
    )
    written: dict[str, Any] = {
        "max_iterations": settings.max_iterations,
        "graph": graph_of(settings.agent, DEFAULT_GRAPH),
        "notify": bool(configuration.notify),
    }
    return CycleStarted(**written | facts, commands=commands_of(settings.agent), limits=limits)


def _begun(store: Store, prepared: Prepared, feature: Feature, facts: Mapping[str, Any]) -> Start:
    settings = prepared.configuration.cycle or CycleSettings()
    zone = timezone(timedelta(minutes=settings.utc_offset_minutes))
    at = store.now(facts["workflow"]).at.astimezone(zone)
    random = "".join(secrets.choice(string.digits + string.ascii_lowercase) for _ in range(8))
    return cycle_started(
        prepared.configuration,
        **facts,
        cycle_id=f"cycle-v1-{at:%Y%m%dT%H%M%S}-{random}",  # U10
        description=feature.task,
        **({"graph": feature.graph} if feature.graph else {}),
    )


INTAKE: Final = Intake(begun=_begun, task=lambda state: str(state.description))
