"""The report on a cycle, as headed tables."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from fixloop.commands.report_pages import Parts, Row
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.durations import stamp

_DECIDED: Final = attrgetter("made_by", "description", "chosen_option", "rationale", "impact")


def parts(details: Iterable[Row], state: Cycle) -> Parts:
    """The report: how it stands, then everything that is kept, in the order in which it happened."""
    return (
        Parts(f"{state.name} (issue {state.issue})")
        .table("How it stands", ("what", "how"), details)
        .table(
            "Agents",
            ("agent", "role", "status", "runs", "documents"),
            (
                (
                    agent.key,
                    worker(agent.key).role,
                    agent.status,
                    agent.runs,
                    ", ".join(f"{each.name} v{each.version}" for each in state.documents_of(agent.key)),
                )
                for agent in state.agents
            ),
        )
        .table(
            "Iterations",
            ("number", "version", "began", "issues found"),
            (
                (each.number, each.version, f"{stamp(each.started_at)} UTC", "; ".join(each.issues_found))
                for each in state.iterations
            ),
        )
        .table(
            "Tasks",
            ("task", "what", "effort", "depends on", "status"),
            (
                (each.id, each.description, each.effort, ", ".join(each.depends_on), each.status)
                for each in state.plan
            ),
        )
        .table(
            "Blockers and resolutions",
            ("id", "reported by", "what", "status", "resolution"),
            map(attrgetter("id", "reported_by", "description", "status", "resolution"), state.blockers),
        )
        .table(
            "Decisions",
            ("time", "by", "question", "decision", "reason", "impact"),
            ((f"{stamp(each.at)} UTC", *_DECIDED(each)) for each in state.decisions),
        )
        .table(
            "Timeline",
            ("time", "who", "what"),
            ((f"{stamp(each.at)} UTC", each.actor, each.text) for each in state.timeline),
        )
    )
