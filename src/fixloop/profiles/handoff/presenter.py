"""Presents a workflow of handoffs for commands: its agents, handoffs, locks and questions, and its log."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fixloop.commands import agent_log as spoken, agent_work as work
from fixloop.commands.presenter import Across, Presenter, Standing, deadline_line
from fixloop.commands.report_pages import reported
from fixloop.commands.screen import row, short, table
from fixloop.engine.profile import loader
from fixloop.errors import FixloopError
from fixloop.profiles.handoff.log import line, metrics_line, parts, statistics
from fixloop.profiles.handoff.questions import ENGINE_REASONS
from fixloop.profiles.handoff.records import Escalations, Question, measured, started_at
from fixloop.profiles.handoff.state import SCHEMA_VERSION, Handoffs
from fixloop.protocol.durations import iso_stamp, stamp
from fixloop.protocol.ids import called
from fixloop.store.contract import Store
from fixloop.store.records import Snapshot

if TYPE_CHECKING:
    from rich.table import Table

_STYLES: Final = {"completed": "green", "active": "yellow", "idle": "dim"}


def options_of(question: Question) -> tuple[str, ...]:
    """The possible answers of a person; empty: any text."""
    return work.DECISIONS if question.reason in ENGINE_REASONS else question.options


def _standing(state: Handoffs) -> Standing:
    asked = {agent.name: agent.command for agent in state.agents if agent.asked}
    asks = state.blocking() is not None or (bool(state.questions) and "" not in asked.values())
    return work.standing(state, asked, asks=asks, held="a person" if state.paused_clock is not None else "")


def _owner(state: Handoffs) -> str:
    return "person" if state.questions or state.paused_clock is not None else "agent"


def _document(found: Snapshot, state: Handoffs) -> dict[str, Any]:
    held = {"since": None} if state.paused_clock is not None else None
    return work.shared(found, state, asks=bool(state.questions), held=held, owner=_owner(state)) | {
        "type": state.kind.value,
        "priority": state.priority.value,
        "spec": state.spec or None,
        "commit": state.commit or None,
        "current_agent": state.current_agent or None,
        "state_file": ".claude/state.json",
        "agents": [
            {
                "name": agent.name,
                "status": agent.status,
                "command": agent.command or None,
                "asked": agent.asked,
                "run": agent.activations,
                "attempt": agent.attempt,
                "handoff": agent.handoff or None,
                "last_active": iso_stamp(agent.last_active) if agent.last_active is not None else None,
            }
            for agent in state.agents
        ],
        "handoffs": [
            {
                "message_id": message.message_id,
                "type": message.type.value,
                "from": message.sender,
                "to": message.recipient,
                "status": message.status.value,
                "created_at": iso_stamp(message.timestamp),
                "reason": message.reason or None,
            }
            for message in state.messages
        ],
        "locks": {resource: lock.model_dump(mode="json") for resource, lock in state.locks.items()},
        "escalations": [
            {
                "id": question.id,
                "reason": question.reason,
                "detail": question.details,
                "context": question.context or None,
                "agents": [question.agent],
                "since": iso_stamp(question.at),
                "options": list(options_of(question)),
                "blocking": question.blocking,
            }
            for question in state.questions
        ],
        "metrics": measured(state.events).model_dump(mode="json"),
        "artifacts": [made.model_dump(mode="json") for made in state.made],
        "remaining_issues": list(state.remaining_issues),
    }


def _details(found: Snapshot, state: Handoffs, away: bool) -> Iterator[tuple[str, str]]:
    project = state.project or state.workflow[:8]
    yield "workflow", f"{state.workflow} ({state.kind} by handoffs, project {project})"
    where = f"review {state.iteration} of {state.max_iterations}"
    active = next((f", {agent.name} is active" for agent in state.agents if agent.status == "active"), "")
    stands = f"{state.outcome}, {where}" if state.outcome else f"{where}{active}, {_owner(state)}'s turn"
    yield "status", f"{state.status}, {stands}"
    if state.spec:
        yield "spec", state.spec
    for question in state.questions:
        waits = "paused" if question.blocking else "asked"
        yield waits, f"{_asks(question)}, since {stamp(question.at)} UTC"
    if state.paused_clock is not None:
        yield "paused", "by a person; clocks are stopped"
    yield from (("at work", each.line(found)) for each in _at_work(state))
    for resource, lock in state.locks.items():
        yield "lock", f"{resource} of {lock.agent} until {stamp(lock.expires)} UTC"
    if away and _standing(state).goes_on:
        yield work.away_line(state)
    yield from deadline_line(found, away)
    for last in state.messages[-1:]:
        ends = f"from {last.sender} to {last.recipient}"
        yield "handoff", f"{last.type} {ends}, {last.status} ({last.message_id})"
    yield "metrics", metrics_line(state)
    yield from ((f"{made.agent} made", made.line) for made in state.made)
    yield from (("note", f"known issue: {short(issue)}") for issue in state.remaining_issues)
    yield "files", ".claude/state.json"
    yield "updated", f"{stamp(state.last_at)} UTC"
    first = state.blocking() or next(iter(state.questions), None)
    decide = next(_commands(state, first)) if first else ""
    yield "next", work.next_command(state, _at_work(state), decide)


def _asks(question: Question) -> str:
    context = f" ({short(question.context, 80)})" if question.context else ""
    return f"{question.agent}: {question.reason}: {short(question.details)}{context} ({question.id})"


def _table(state: Handoffs) -> "Table":
    made = table("", "agent", "status", "run", "handoff", "last active")
    for agent in state.agents:
        waiting = state.pending_for(agent.name)
        handoff = f"{waiting.type} pending" if waiting is not None else ""
        if agent.handoff:
            handoff = f"{state.message(agent.handoff).type} accepted"
        row(
            made,
            ">" if agent.asked else "",
            agent.name,
            agent.status,
            agent.activations,
            handoff,
            f"{stamp(agent.last_active)} UTC" if agent.last_active is not None else "",
            style=_STYLES.get(agent.status, ""),
        )
    return made


def _at_work(state: Handoffs) -> Iterator[work.AtWork]:
    for agent in state.agents:
        if agent.asked:
            is_at_it = agent.started and agent.status == "active"
            began = started_at(state.events, agent.name) if is_at_it else None
            yield work.AtWork(agent.name, agent.activations, agent.command, began, agent.last_active)


def _result(state: Handoffs) -> Iterator[str]:
    who = f"#{state.issue} {short(state.name, 60)}"
    reviews = f"{state.iteration} review{'s' * (state.iteration > 1)}"
    if state.outcome:
        for message in state.messages:
            yield f"  {message.type}: {message.sender} → {message.recipient}, {message.status}"
        spec = f", {state.spec}" if state.spec else ""
        yield f"{who}: {state.outcome} ({reviews}{spec}){work.ending(state)}"
        return
    if state.paused_clock is not None:
        yield f"{who} is paused by a person"
        yield f"fixloop continue {called(state)}"
    for question in state.questions:
        wanted = "a decision" if question.reason in ENGINE_REASONS else "an answer"
        yield f"{who} waits for {wanted}: {_asks(question)}"
        yield from (f"  {short(issue, 200)}" for issue in state.remaining_issues)
        yield from _commands(state, question)
    for agent in state.agents:
        if agent.asked and not agent.command:
            yield f"{who} waits for {agent.name}, run {agent.activations}"
            yield from work.answers(state, agent.name)
    if _standing(state).goes_on:
        yield f"{who} continues ({reviews})"


def _commands(state: Handoffs, question: Question) -> Iterator[str]:
    which = f" --escalation {question.id}" if len(state.questions) > 1 else ""
    answers = [
        option if option.replace("-", "").isalnum() else json.dumps(option, ensure_ascii=False)
        for option in options_of(question)
    ]
    yield from (f"fixloop decide {called(state)} {answer}{which}" for answer in answers or ['"ANSWER"'])


def _items(found: Snapshot, state: Handoffs, cache: Path) -> Iterator[dict[str, Any]]:
    if state.paused_clock is not None:
        yield work.paused_item(state, state.current_agent or "orchestrator", state.last_at)
        return
    for question in state.questions:
        yield work.item(state) | {
            "specialist": question.agent,
            "waits_for": "decision" if question.reason in ENGINE_REASONS else "answer",
            "escalation_id": question.id,
            "reason": question.reason,
            "detail": question.details + (f" ({question.context})" if question.context else ""),
            "target": "user",
            "since": iso_stamp(question.at),
            "options": list(options_of(question)),
            "commands": list(_commands(state, question)),
        }
    for agent in state.agents:
        if agent.asked and not agent.command:
            since = agent.asked_at or agent.last_active or state.last_at
            waiting = state.message(agent.handoff) if agent.handoff else state.pending_for(agent.name)
            what = f": {waiting.type} from {waiting.sender}" if waiting is not None else ""
            reason = f"{agent.name}, run {agent.activations}{what}"
            yield work.asked_item(state, agent.name, since, reason=reason, detail=agent.answer)


def _across(store: Store, prefix: str) -> Across:
    """The escalation rate (D52); for a workflow of an older version it is computed from the events."""
    workflows = escalated = 0
    for workflow, fields in store.workflows():
        if workflow.startswith(prefix) and fields.get("profile") == "handoff":
            workflows += 1
            if "escalated" in fields:
                escalated += fields["escalated"] == "yes"
                continue
            # A damaged workflow counts as started; `audit verify` reports what is wrong with it.
            with suppress(FixloopError):
                kept = store.read(workflow)
                escalated += kept is not None and measured(PRESENTER.load(kept.snapshot).events).escalated
    counted = Escalations(workflows, escalated)
    document = counted._asdict() | {"escalation_rate": round(counted.rate, 4)}
    text = f"{counted.escalated} of {counted.workflows} workflows escalated ({counted.rate:.0%})"
    return Across(document, "escalations", text)


_SPEECH: Final = spoken.Speech(line, statistics)

PRESENTER: Final[Presenter[Handoffs]] = Presenter(
    load=loader(Handoffs, SCHEMA_VERSION),
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
    report=reported(parts, lambda: PRESENTER),
    across=_across,
)
