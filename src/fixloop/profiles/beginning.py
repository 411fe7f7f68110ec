"""The events that begin a workflow of each profile, made from a frozen configuration."""

from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.configuration.roles import graph_of
from fixloop.configuration.settings import CycleSettings, HandoffSettings, Role
from fixloop.protocol.checks import Unverified
from fixloop.protocol.cycle.events import CycleStarted
from fixloop.protocol.cycle.state import Limits as CycleLimits
from fixloop.protocol.events import WorkflowStarted
from fixloop.protocol.handoff.events import HandoffsStarted
from fixloop.protocol.handoff.state import Limits as HandoffLimits
from fixloop.protocol.state import Limits

MOST_UNVERIFIED: Final = 12
LONGEST_TEXT: Final = 160


def validation_started(configuration: Configuration, /, **facts: Any) -> WorkflowStarted:
    """The beginning of a validation loop; `facts` are the event's other fields: workflow, issue, name, tip …"""
    written: dict[str, Any] = {
        "specialists": tuple(entry.name for entry in configuration.specialists),
        "unverified": unverified_in(configuration),
        "max_iterations": configuration.max_iterations,
        "limits": limits_of(configuration),
        "fixer": "command" if configuration.fixer is not None else "outside",
        "agent": configuration.agent.name if configuration.agent is not None else "",
        "acks": configuration.agent is not None and configuration.agent.acks,
        "notify": bool(configuration.notify),
        "bundle_fix_request": configuration.bundle_fix_request,
    }
    return WorkflowStarted(**written | facts)


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
        delivery_attempts=configuration.limits.delivery_attempts,
        pass_rate_percent=settings.pass_rate_percent,
        coverage_percent=settings.coverage_percent,
        utc_offset_minutes=settings.utc_offset_minutes,
    )
    written: dict[str, Any] = {
        "max_iterations": settings.max_iterations,
        "graph": graph_of(settings.agent),
        "notify": bool(configuration.notify),
    }
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
        delivery_attempts=configuration.limits.delivery_attempts,
    )
    written: dict[str, Any] = {
        "max_iterations": settings.max_iterations,
        "notify": bool(configuration.notify),
    }
    return HandoffsStarted(**written | facts, commands=_commands(settings.agent), limits=limits)


def unverified_in(configuration: Configuration) -> tuple[Unverified, ...]:
    """What does not run, short enough for a state that is kept in memory; what blocks comes first."""
    found = sorted(configuration.unverified, key=lambda each: not each.blocks)[:MOST_UNVERIFIED]
    return tuple(
        each.model_copy(update={"reason": each.reason[:LONGEST_TEXT], "remedy": each.remedy[:LONGEST_TEXT]})
        for each in found
    )


def limits_of(configuration: Configuration) -> Limits:
    """The protocol's limits from the configured ones: seconds, and None for what is switched off."""
    told = configuration.limits
    specialists = {
        entry.name: _seconds(entry.timeout_minutes)
        for entry in configuration.specialists
        if entry.timeout_minutes is not None
    }
    fixer = configuration.fixer or configuration.agent
    own = fixer.timeout_minutes if fixer is not None else None
    limits = Limits(
        validation_seconds=_seconds(told.validation_minutes),
        revalidation_seconds=_seconds(told.revalidation_minutes),
        specialist_seconds=specialists,
        fix_seconds=_seconds(told.fix_minutes if own is None else own),
        reminder_seconds=_seconds(told.reminder_minutes),
        reminder_window_seconds=_seconds(told.reminder_window_minutes),
        deadlock_window=told.deadlock_window or None,
        specialist_attempts=told.specialist_attempts,
        fix_attempts=told.fix_attempts,
        delivery_attempts=told.delivery_attempts,
        receipt_seconds=_seconds(told.receipt_minutes),
        answer_attempts=told.answer_attempts,
        confirm_rounds=told.confirm_rounds,
        extra_iterations=told.extend_iterations,
        extend_minutes=told.extend_minutes,
    )
    cap = told.iteration_minutes
    return limits.model_copy(
        update={"iteration_seconds": _no_shorter_cap(limits) if cap is None else _seconds(cap)}
    )


def _no_shorter_cap(limits: Limits) -> float | None:
    """The cap on an iteration that nobody set never undercuts a step's own limit, nor limits one without."""
    steps = (limits.revalidation_seconds, limits.fix_seconds, *limits.specialist_seconds.values())
    known = [seconds for seconds in steps if seconds is not None]
    return max([Limits().iteration_seconds or 0.0, *known]) if len(known) == len(steps) else None


def _commands(agents: dict[str, Role]) -> dict[str, str]:
    """What runs an agent, for people to read; its arguments are the configuration's."""
    return {key: " ".join(role.command) for key, role in agents.items() if role.command}


def _agent_seconds(agents: dict[str, Role]) -> dict[str, float | None]:
    return {
        key: _seconds(role.timeout_minutes)
        for key, role in agents.items()
        if role.timeout_minutes is not None
    }


def _seconds(minutes: float | None) -> float | None:
    return minutes * 60 if minutes else None
