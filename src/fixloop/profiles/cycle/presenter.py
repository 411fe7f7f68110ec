"""Presents a cycle for commands: its agents, what waits for whom, its log and its report."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fixloop.commands import agent_log as spoken, agent_work as work
from fixloop.commands.presenter import Presenter, Standing, deadline_line
from fixloop.commands.report_pages import Parts, Row, reported
from fixloop.commands.screen import row, short, table
from fixloop.engine.profile import loader
from fixloop.profiles.cycle.files import state_path
from fixloop.profiles.cycle.messages import Message, message_text
from fixloop.profiles.cycle.records import AgentStatus, TaskStatus
from fixloop.profiles.cycle.state import SCHEMA_VERSION, Cycle
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.durations import iso_stamp, stamp
from fixloop.protocol.ids import called
from fixloop.store.records import Snapshot

if TYPE_CHECKING:
    from rich.table import Table

_STYLES: Final = {
    AgentStatus.COMPLETED: "green",
    AgentStatus.FAILED: "red",
    AgentStatus.RUNNING: "yellow",
    AgentStatus.IDLE: "dim",
}


def _standing(state: Cycle) -> Standing:
    asked = {agent.key: agent.command for agent in state.agents if agent.asked}
    held = f"a person since {stamp(state.paused_at)} UTC" if state.paused_at is not None else ""
    asks = bool(state.escalations)
    return work.standing(state, asked, asks=asks, held=held, done=state.all_completed and not asks)


def _owner(state: Cycle) -> str:
    if state.escalations or state.paused_at is not None:
        return "person"
    return "engine" if state.all_completed else "agent"


def _document(found: Snapshot, state: Cycle) -> dict[str, Any]:
    held = {"since": iso_stamp(state.paused_at)} if state.paused_at is not None else None
    return work.shared(found, state, asks=bool(state.escalations), held=held, owner=_owner(state)) | {
        "cycle_id": state.cycle_id,
        "version": state.version,
        "state_file": state_path(state.cycle_id),
        "agents": [
            {
                "name": agent.key,
                "role": worker(agent.key).role,
                "status": agent.status.value,
                "command": agent.command or None,
                "asked": agent.asked,
                "depends_on": list(agent.depends_on),
                "ready": state.ready(agent.key),
                "can_start": state.can_start(agent.key),
                "run": agent.runs,
                "attempt": agent.attempt,
                "started_at": iso_stamp(agent.started_at) if agent.started_at is not None else None,
                "completed_at": iso_stamp(agent.completed_at) if agent.completed_at is not None else None,
                "output_files": list(agent.output_files),
                "iterations_completed": len(agent.completed_in),
                "message": agent.message or None,
            }
            for agent in state.agents
        ],
        "tasks": [task.model_dump(mode="json") for task in state.plan],
        "escalations": [
            {
                "id": opened.id,
                "reason": opened.reason,
                "detail": opened.detail,
                "agents": list(opened.agents),
                "since": iso_stamp(opened.at),
                "options": list(work.DECISIONS),
                "next": number == 0,
            }
            for number, opened in enumerate(state.escalations)
        ],
        "blockers": [blocker.model_dump(mode="json") for blocker in state.blockers],
        "conflicts": [conflict.model_dump(mode="json") for conflict in state.conflicts],
        "feedback_log": [entry.model_dump(mode="json") for entry in state.feedback_log],
        "remaining_issues": list(state.remaining_issues),
    }


def _details(found: Snapshot, state: Cycle, away: bool) -> Iterator[tuple[str, str]]:
    project = state.project or state.workflow[:8]
    yield "workflow", f"{state.workflow} (cycle {state.cycle_id}, project {project})"
    where = f"iteration {state.iteration} of {state.max_iterations}, v{state.version}"
    stands = f"{state.outcome}, {where}" if state.outcome else f"{where}, {_owner(state)}'s turn"
    yield "status", f"{state.status}, {stands}"
    for opened in state.escalations:
        yield "paused", f"{opened.reason}: {short(opened.detail)} ({opened.id}), since {stamp(opened.at)} UTC"
    if state.paused_at is not None:
        yield "paused", f"by a person since {stamp(state.paused_at)} UTC; clocks are stopped"
    yield from (("at work", each.line(found)) for each in _at_work(state))
    for blocker in state.open_blockers():
        yield "blocker", f"{blocker.id} of {blocker.reported_by}: {short(blocker.description)}"
    if away and _standing(state).goes_on:
        yield work.away_line(state)
    yield from deadline_line(found, away)
    if state.plan:
        done = sum(task.status is TaskStatus.COMPLETED for task in state.plan)
        yield "tasks", f"{done} of {len(state.plan)} completed"
    yield from (("note", f"known issue: {short(issue)}") for issue in state.remaining_issues)
    yield "files", state_path(state.cycle_id)
    yield "updated", f"{stamp(state.last_at)} UTC"
    decide = next(_decision_commands(state)) if state.escalations else ""
    yield "next", work.next_command(state, _at_work(state), decide)


def _table(state: Cycle) -> "Table":
    made = table("", "agent", "role", "status", "run", "waits for", "documents")
    for agent in state.agents:
        needed = (other for other in agent.depends_on if not state.completed(other))
        waits = dict.fromkeys((*needed, *agent.waits_for))
        row(
            made,
            ">" if agent.asked else "",
            agent.key,
            worker(agent.key).role,
            agent.status.value,
            agent.runs,
            ", ".join(waits) if agent.status is not AgentStatus.COMPLETED else "",
            ", ".join(f"{document.name} v{document.version}" for document in state.documents_of(agent.key)),
            style=_STYLES.get(agent.status, ""),
        )
    return made


def _at_work(state: Cycle) -> Iterator[work.AtWork]:
    for agent in state.agents:
        if agent.asked:
            began = agent.started_at if agent.status is AgentStatus.RUNNING else None
            yield work.AtWork(agent.key, agent.runs, agent.command, began)


def _result(state: Cycle) -> Iterator[str]:
    who = f"#{state.issue} {short(state.name, 60)}"
    rounds = f"{state.iteration} iteration{'s' * (state.iteration > 1)}, v{state.version}"
    if state.outcome:
        for agent in state.agents:
            written = (f"{each.name} v{each.version}" for each in state.documents_of(agent.key))
            files = ", ".join(written) or "no documents"
            yield f"  {agent.key}: {agent.status}, {agent.runs} run{'s' * (agent.runs != 1)}, {files}"
        yield f"{who}: {state.outcome} ({rounds}){work.ending(state)}"
        return
    if state.paused_at is not None:
        yield f"{who} is paused by a person since {stamp(state.paused_at)} UTC"
        yield f"fixloop continue {called(state)}"
    if state.escalation is not None:
        opened = state.escalation
        yield f"{who} waits for a decision: {opened.reason}: {short(opened.detail)} ({opened.id})"
        yield from (f"  {short(issue, 200)}" for issue in state.remaining_issues)
        yield from _decision_commands(state)
    for agent in state.agents:
        if agent.asked and not agent.command:
            yield f"{who} waits for {agent.key} ({worker(agent.key).role}), run {agent.runs}"
            yield from work.answers(state, agent.key)
    if _standing(state).goes_on:
        yield f"{who} continues ({rounds})"


def _decision_commands(state: Cycle) -> Iterator[str]:
    yield f'fixloop decide {called(state)} manual-fix --guidance "…"'
    yield from (f"fixloop decide {called(state)} {decision}" for decision in work.DECISIONS[1:])


def _items(found: Snapshot, state: Cycle, cache: Path) -> Iterator[dict[str, Any]]:
    if state.paused_at is not None:
        yield work.paused_item(state, "orchestrator", state.paused_at)
        return
    if state.escalation is not None:
        opened, more = state.escalation, len(state.escalations) - 1
        yield work.item(state) | {
            "specialist": ", ".join(opened.agents),
            "waits_for": "decision",
            "escalation_id": opened.id,
            "reason": opened.reason,
            "detail": opened.detail + (f" ({more} more after this one)" if more else ""),
            "target": "user",
            "since": iso_stamp(opened.at),
            "options": list(work.DECISIONS),
            "commands": list(_decision_commands(state)),
        }
    for agent in state.agents:
        if agent.asked and not agent.command:
            since = agent.asked_at or agent.started_at or state.last_at
            reason = f"{agent.key} ({worker(agent.key).role}), run {agent.runs}"
            yield work.asked_item(state, agent.key, since, reason=reason, detail=short(agent.message))


def _line(kept: dict[str, Any], state: Cycle | None) -> spoken.Line:
    message = Message.model_validate(kept)
    kind = message.body.kind.removeprefix("cycle.")
    if message.body.kind == "cycle.input":
        kind = message.body.input.value
    shared = {name: getattr(message, name) for name in spoken.Line._fields if name not in ("kind", "text")}
    return spoken.Line(kind=kind, text=message_text(message), **shared)


def _statistics(state: Cycle, said: Sequence[spoken.Line]) -> dict[str, Any]:
    return {
        "iterations": state.iteration,
        "version": state.version,
        "runs": dict(Counter({agent.key: agent.runs for agent in state.agents})),
        "blockers": dict(Counter(blocker.status.value for blocker in state.blockers)),
        "conflicts": dict(Counter(conflict.kind.value for conflict in state.conflicts)),
        "decisions": len(state.decisions),
        "escalations": sum(line.kind == "escalation" for line in said),
    }


_DECIDED: Final = attrgetter("made_by", "description", "chosen_option", "rationale", "impact")


def _parts(details: Iterable[Row], state: Cycle) -> Parts:
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


_SPEECH: Final = spoken.Speech(_line, _statistics)

PRESENTER: Final[Presenter[Cycle]] = Presenter(
    load=loader(Cycle, SCHEMA_VERSION),
    standing=_standing,
    document=_document,
    details=_details,
    table=_table,
    clocks=lambda found, state: work.clocks(found, state, _at_work(state), _owner(state)),
    happened=_SPEECH.happened,
    result=_result,
    items=_items,
    log_text=_SPEECH.log_text,
    log_markdown=_SPEECH.log_markdown,
    log_document=_SPEECH.log_document,
    report=reported(_parts, lambda: PRESENTER),
)
