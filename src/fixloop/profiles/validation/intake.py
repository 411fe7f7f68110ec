"""Builds the event that starts a validation loop from a frozen configuration."""

from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.intake.preparation import Intake
from fixloop.profiles.agents import seconds
from fixloop.protocol.checks import Unverified
from fixloop.protocol.events import WorkflowStarted
from fixloop.protocol.state import Limits

MOST_UNVERIFIED: Final = 12
LONGEST_TEXT: Final = 160


def validation_started(configuration: Configuration, /, **facts: Any) -> WorkflowStarted:
    """The event that starts a validation loop; `facts` are its other fields: workflow, issue, name, tip …"""
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
        # The initial commit judges the changes of the fixers.
        "trusted": facts["tip"],
        "rules_off": configuration.integrity.off,
    }
    return WorkflowStarted(**written | facts)


def unverified_in(configuration: Configuration) -> tuple[Unverified, ...]:
    """Tools that do not run, shortened for the state, which is kept in memory; blocking ones come first."""
    return tuple(
        each.model_copy(update={"reason": each.reason[:LONGEST_TEXT], "remedy": each.remedy[:LONGEST_TEXT]})
        for each in sorted(configuration.unverified, key=lambda each: not each.blocks)[:MOST_UNVERIFIED]
    )


def limits_of(configuration: Configuration) -> Limits:
    """The protocol's limits from the configured ones: in seconds, None for a disabled limit."""
    told = configuration.limits
    specialists = {
        entry.name: seconds(entry.timeout_minutes)
        for entry in configuration.specialists
        if entry.timeout_minutes is not None
    }
    fixer = configuration.fixer or configuration.agent
    own = fixer.timeout_minutes if fixer is not None else None
    limits = Limits(
        validation_seconds=seconds(told.validation_minutes),
        revalidation_seconds=seconds(told.revalidation_minutes),
        specialist_seconds=specialists,
        fix_seconds=seconds(told.fix_minutes if own is None else own),
        reminder_seconds=seconds(told.reminder_minutes),
        reminder_window_seconds=seconds(told.reminder_window_minutes),
        deadlock_window=told.deadlock_window or None,
        specialist_attempts=told.specialist_attempts,
        fix_attempts=told.fix_attempts,
        delivery_attempts=told.delivery_attempts,
        receipt_seconds=seconds(told.receipt_minutes),
        answer_attempts=told.answer_attempts,
        confirm_rounds=told.confirm_rounds,
        extra_iterations=told.extend_iterations,
        extend_minutes=told.extend_minutes,
    )
    cap = seconds(told.iteration_minutes)
    if told.iteration_minutes is None:
        # An iteration cap that nobody set never undercuts a step's limit, and does not limit a step without one.
        steps = (limits.revalidation_seconds, limits.fix_seconds, *limits.specialist_seconds.values())
        known = [limit for limit in steps if limit is not None]
        cap = max([Limits().iteration_seconds or 0.0, *known]) if len(known) == len(steps) else None
    return limits.model_copy(update={"iteration_seconds": cap})


INTAKE: Final = Intake(
    begun=lambda store, prepared, feature, facts: validation_started(
        prepared.configuration, **facts, tree=prepared.snapshot.tree
    )
)
