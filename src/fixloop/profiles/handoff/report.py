"""The report on a workflow of handoffs, as headed tables."""

from collections.abc import Iterable
from operator import attrgetter

from fixloop.commands.report_pages import Parts, Row
from fixloop.profiles.handoff.log import summary
from fixloop.profiles.handoff.metrics import measured
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.durations import hours_minutes_seconds, stamp


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
    """The report: how it stands, what was handed to whom, the four metrics, and all events in order."""
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
