"""`fixloop log`: what was said, as lines, in full or as data, and what happened beside it. It changes nothing."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

import typer

from fixloop.commands.screen import print_json, print_lines, short
from fixloop.commands.session import AsJson, Issue, ProjectOption, open_session, read_workflow
from fixloop.commands.timeline import Happening, happenings, with_ticks
from fixloop.errors import UsageError
from fixloop.history import Said, said
from fixloop.protocol import documents, log, markdown
from fixloop.protocol.durations import iso_stamp, stamp
from fixloop.protocol.flow import flow_log
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import State, WorkflowOutcome
from fixloop.protocol.statuses import Status
from fixloop.store.records import Entry

__all__ = ["register"]

_RULE: Final = "\n---\n"


class Format(StrEnum):
    """How a log is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


class _Log(NamedTuple):
    """One workflow's history, read for printing."""

    state: State
    clock: float
    lines: Sequence[Said]
    beside: Sequence[Happening]
    """Everything that happened, with `--all`; empty without."""


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(name="log")(log_command)


def log_command(
    issue: Issue,
    format: Annotated[
        Format, typer.Option("--format", help="One line a message, everything in full, or JSON.")
    ] = Format.TEXT,
    all: Annotated[
        bool,
        typer.Option(
            "--all", help="Also status changes, receipts, decisions, notes, timers, evidence, monitoring."
        ),
    ] = False,
    specialist: Annotated[
        str | None,
        typer.Option(
            "--specialist", help="Only this one's loop, as a flow: who told whom what, step by step."
        ),
    ] = None,
    json: AsJson = False,
    project: ProjectOption = None,
) -> None:
    """
    Print the full communication log.

    With its statistics, of a running or an ended workflow; `--format markdown` and `json` hold every
    message in full, as it was said.
    """
    if all and specialist is not None:
        raise UsageError(
            "--all and --specialist do not go together: what is no message belongs to no specialist"
        )
    with open_session() as session:
        found, state = read_workflow(session, session.workflow_of(issue, project))
        entries = session.store.history(state.workflow)
    beside = list(with_ticks(entries, found.moment)) if all else []
    told = _Log(state, found.moment.clock, list(said(entries)), beside)
    wanted = Format.JSON if json else format
    if specialist is not None:
        _print_flow(told, slot(specialist).name, wanted)
    elif wanted is Format.JSON:
        print_json(_document(told))
    elif wanted is Format.MARKDOWN:
        print_lines(_RULE.join(_markdown(told)))
    else:
        print_lines("\n".join(_text(told, entries)))


def _print_flow(told: _Log, specialist: str, wanted: Format) -> None:
    own = [line for line in told.lines if line.message.specialist == specialist]
    if not own:
        raise UsageError(f"{specialist} has said nothing in #{told.state.issue} yet")
    flow = flow_log([line.message for line in own], specialist, outcome=_decided(told.state, specialist))
    if wanted is Format.JSON:
        print_json(_document(told._replace(lines=own)) | {"specialist": specialist, "flow": flow})
    elif wanted is Format.MARKDOWN:
        print_lines(_RULE.join([flow, *map(_in_full, own)]))
    else:
        print_lines(flow)


def _decided(state: State, specialist: str) -> str:
    """What a person's decision made of the specialist's loop, empty where there was none."""
    entry = state.specialist(specialist)
    if entry.skipped:
        return log.outcome_text(WorkflowOutcome.SKIPPED)
    over = state.outcome in (WorkflowOutcome.ABORTED, WorkflowOutcome.CANCELLED)
    return log.outcome_text(state.outcome) if over and entry.status is not Status.COMPLETED else ""


def _document(told: _Log) -> dict[str, Any]:
    as_lines = log.as_json_entries([line.message for line in told.lines])
    texts = [line.rendered for line in told.lines]
    document: dict[str, Any] = {
        "issue": told.state.issue,
        "name": told.state.name,
        "workflow_id": told.state.workflow,
        "entries": [entry | {"rendered": text} for entry, text in zip(as_lines, texts, strict=True)],
        "statistics": _statistics(told).model_dump(),
    }
    if told.beside:
        document["history"] = [_as_json(each) for each in told.beside]
    return document


def _statistics(told: _Log) -> log.Statistics:
    return log.statistics([line.message for line in told.lines], outcome=_outcome_of(told.state))


def _outcome_of(state: State) -> str | None:
    if state.outcome is None:
        return "escalated" if state.paused else None
    return state.outcome.value


def _as_json(each: Happening) -> dict[str, Any]:
    message_id = each.message.message_id if each.message is not None else None
    return {
        "timestamp": iso_stamp(each.at),
        "kind": each.kind,
        "text": each.text,
        "message_id": message_id,
        "entry": each.entry,
    }


def _markdown(told: _Log) -> Iterator[str]:
    state = told.state
    yield log.full_log(
        [line.message for line in told.lines],
        issue=state.issue,
        feature=state.name,
        outcome=_outcome_of(state),
        started=state.started_at,
        completed=state.until,
    )
    if not told.beside:
        yield from map(_in_full, told.lines)
        return
    listed = (f"- {markdown.line(line)}" for line in _history_lines(told.beside))
    yield "\n".join(("## History", "", *listed, ""))
    yield from _every_record(told)


def _every_record(told: _Log) -> Iterator[str]:
    """Status changes and messages in the order of their happening, each as the record that it is part of."""
    lines = iter(told.lines)
    for each in told.beside:
        if each.change is not None:
            yield documents.status_change(each.change)
        elif each.message is not None:
            line = next(lines)
            kind = line.message.body.kind
            yield _sent(line) if kind == "failure-report" else _in_full(line)
            if kind == "fix-completion":
                yield documents.confirmation(line.message)
    waited_for = documents.waiting(told.state, told.clock)
    if waited_for is not None:
        yield waited_for


def _sent(line: Said) -> str:
    return f"{log.render_entry(line.message)}{_RULE}{documents.sending(line.message, line.rendered)}"


def _in_full(line: Said) -> str:
    """The line's entry, and below it the message as it was said (A77, A85)."""
    return f"{log.render_entry(line.message)}{_RULE}{line.rendered}"


def _text(told: _Log, entries: Sequence[Entry]) -> Iterator[str]:
    shown = told.beside or [each for each in happenings(entries) if each.message is not None]
    yield from _history_lines(shown, kinds=bool(told.beside))
    yield ""
    for name, value in _statistics(told).model_dump().items():
        yield f"{name.replace('_', ' ').replace('revalidation', 're-validation').capitalize()}: {value}"


def _history_lines(found: Sequence[Happening], *, kinds: bool = True) -> Iterator[str]:
    for each in found:
        kind = f"  {each.kind:8}" if kinds else ""
        yield f"{stamp(each.at)}{kind}  {short(each.text, 300)}"
