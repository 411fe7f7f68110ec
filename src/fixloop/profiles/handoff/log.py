"""The messages of a workflow of handoffs as lines of a log, their statistics, and the report."""

import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from fixloop.commands import agent_log as spoken
from fixloop.commands.report_pages import Parts, Row
from fixloop.profiles.handoff.records import Message, measured
from fixloop.profiles.handoff.routes import HandoffType
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.durations import hours_minutes_seconds, stamp


def line(kept: dict[str, Any], state: Handoffs | None) -> spoken.Line:
    message = Message.model_validate(kept)
    return spoken.Line(
        number=kept["number"],
        at=message.timestamp,
        sender=message.sender,
        recipient=message.recipient,
        kind=message.type.value,
        message_id=message.message_id,
        summary=summary(message),
        iteration=message.context.iteration,
        max_iterations=state.max_iterations if state is not None else 0,
        text=message.text,
    )


def summary(message: Message) -> str:
    """The payload's facts on one line; for an escalation the reason and details."""
    payload = message.payload
    if message.type is HandoffType.ESCALATION:
        return f"{payload.get('reason', '')}: {payload.get('details', '')}"
    return ", ".join(
        f"{name} {value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)}"
        for name, value in payload.items()
        if value not in ("", [], {}, None)
    )


def statistics(state: Handoffs, said: Sequence[spoken.Line]) -> dict[str, Any]:
    figures = measured(state.events)
    return {
        "reviews": state.iteration,
        "handoffs": figures.handoffs,
        "fix_iterations": figures.fix_iterations,
        "seconds_by_agent": figures.seconds_by_agent,
        "escalations": sum(line.kind == "escalation" for line in said),
        "events": len(state.events),
    }


def metrics_line(state: Handoffs) -> str:
    """The metrics of one workflow on one line."""
    figures = measured(state.events)
    times = (f"{name} {hours_minutes_seconds(spent)}" for name, spent in figures.seconds_by_agent.items())
    counts = (
        f"{figures.handoffs} handoff{'s' * (figures.handoffs != 1)}",
        f"{figures.fix_iterations} fix iteration{'s' * (figures.fix_iterations != 1)}",
    )
    return ", ".join((*counts, "escalated" if figures.escalated else "no escalation", *times))


def parts(details: Iterable[Row], state: Handoffs) -> Parts:
    """The report: the status, the handoffs, the four metrics, and all events in order."""
    figures = measured(state.events)
    return (
        Parts(f"{state.name} (issue {state.issue})")
        .table("How it stands", ("what", "how"), details)
        .table(
            "Agents",
            ("agent", "status", "runs", "time"),
            (
                (
                    agent.name,
                    agent.status,
                    agent.activations,
                    hours_minutes_seconds(figures.seconds_by_agent.get(agent.name, 0.0)),
                )
                for agent in state.agents
            ),
        )
        .table(
            "Handoffs",
            ("time", "type", "from", "to", "status", "what"),
            (
                (f"{stamp(m.timestamp)} UTC", m.type, m.sender, m.recipient, m.status, summary(m))
                for m in state.messages
            ),
        )
        .table("Made", ("agent", "run", "what"), map(attrgetter("agent", "run", "line"), state.made))
        .table(
            "Metrics",
            ("what", "how many"),
            (
                ("handoffs", figures.handoffs),
                ("fix iterations", figures.fix_iterations),
                ("escalated", "yes" if figures.escalated else "no"),
            ),
        )
        .table(
            "Events",
            ("time", "event", "agent", "detail"),
            ((f"{stamp(each.timestamp)} UTC", each.event, each.agent, each.detail) for each in state.events),
        )
    )
