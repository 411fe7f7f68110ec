"""Looking at workflows: `status`, `inbox`, `watch`, `log`. They change nothing."""

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from rich.console import Group

from fixloop.commands import outcome, progress
from fixloop.commands.inbox import item_text, waiting
from fixloop.commands.screen import print_json, print_lines, row, say, short, show, table
from fixloop.commands.session import (
    AsJson,
    Issue,
    NothingYet,
    OnlyProject,
    OptionalIssue,
    ProjectOption,
    Session,
    open_session,
    prefix_of,
)
from fixloop.commands.status import (
    details,
    is_away,
    listed,
    listing_table,
    phases_table,
    status_document,
)
from fixloop.commands.timeline import Happening, happenings, with_ticks
from fixloop.engine import load_state
from fixloop.errors import UsageError
from fixloop.history import Said, said
from fixloop.protocol import log as protocol_log
from fixloop.protocol import markdown
from fixloop.protocol.durations import iso_stamp, stamp
from fixloop.protocol.state import State
from fixloop.store.records import Entry, Snapshot

__all__ = ["register"]

SHOWN_WORKFLOWS: Final = 200
"""A longer table helps nobody; `--json` has them all."""
_RULE: Final = "\n---\n"


class Format(StrEnum):
    """How a log is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (status, inbox, watch):
        app.command()(command)
    app.command(name="log")(log_command)


def status(issue: OptionalIssue = None, json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Show one issue, or all workflows.

    All of them, or --project's: live ones first. With --json, one issue is a document with verdict,
    owner, deadline and the specialists with their evidence.
    """
    if issue is not None:
        with open_session() as session:
            found, state = _read(session, session.workflow_of(issue, project))
            away = is_away(found.moment, session.store.now(state.workflow))
        _show_status(found, state, json=json, away=away)
        return
    try:
        with open_session() as session:
            prefix = prefix_of(project)
            rows = listed(each for each in session.store.workflows() if each[0].startswith(prefix))
            if not rows:
                say("no workflow here yet; `fixloop run` starts one")
    except NothingYet as nothing:
        say(str(nothing))
        rows = []
    _show_list(rows, json=json)


def inbox(json: AsJson = False, project: OnlyProject = None) -> None:
    """
    List what waits for a person.

    Escalations with the commands that answer them, and fixes that an outside agent or a person has to make.
    """
    try:
        with open_session() as session:
            items = waiting(session.store, session.settings.cache_dir, prefix=prefix_of(project))
    except NothingYet as nothing:
        say(str(nothing))
        items = []
    if json:
        print_json({"items": items})
        return
    for item in items:
        print_lines("\n".join(item_text(item)))
    if not items:
        say("nothing waits for you")


def watch(issue: Issue, project: ProjectOption = None) -> None:
    """
    Follow a workflow until it ends or waits.

    Waits, that is, for a person; the exit codes are those of `run`. On a terminal a view with phases,
    runs and clocks; on a pipe one line for each event.
    """
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        on_terminal = sys.stdout.isatty()
        state = progress.follow(session, workflow, until=lambda now: _is_over(now, on_terminal=on_terminal))
        outcome.print_result(session, state)
        raise typer.Exit(outcome.exit_code(state))


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
    json: AsJson = False,
    project: ProjectOption = None,
) -> None:
    """
    Print the full communication log.

    With its statistics, of a running or an ended workflow; `--format markdown` and `json` hold every
    message in full, as it was said.
    """
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        found, state = _read(session, workflow)
        entries = session.store.history(workflow)
    until = state.last_at if state.ended else found.moment.at
    wanted = Format.JSON if json else format
    beside = list(with_ticks(happenings(entries), until)) if all else []
    if wanted is Format.JSON:
        print_json(_log_document(state, entries, beside))
    elif wanted is Format.MARKDOWN:
        print_lines(_RULE.join(_markdown(state, entries, beside)))
    else:
        print_lines("\n".join(_text(state, entries, beside)))


def _read(session: Session, workflow: str) -> tuple[Snapshot, State]:
    found = session.store.read(workflow)
    if found is None:
        raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
    return found, load_state(found.snapshot)


def _show_status(found: Snapshot, state: State, *, json: bool, away: bool) -> None:
    if json:
        print_json(status_document(found, state))
        return
    print_lines(f"#{state.issue} {state.name}")
    facts = table("", "")
    facts.show_header = False
    for label, text in details(found, state, away=away):
        row(facts, label, text)
    show(Group(facts, "", phases_table(state)))


def _show_list(rows: Sequence[dict[str, Any]], *, json: bool) -> None:
    if json:
        print_json({"workflows": rows})
        return
    if rows:
        show(listing_table(rows[:SHOWN_WORKFLOWS]))
    if len(rows) > SHOWN_WORKFLOWS:
        say(f"{len(rows) - SHOWN_WORKFLOWS} more are not shown; --json lists all")


def _is_over(state: State, *, on_terminal: bool) -> bool:
    """An outside agent's fix is waited for on a terminal only: there somebody may be about to make it."""
    return outcome.is_settled(state) or (outcome.waits_for_agent(state) and not on_terminal)


def _log_document(state: State, entries: Sequence[Entry], beside: Sequence[Happening]) -> dict[str, Any]:
    lines = list(said(entries))
    as_lines = protocol_log.as_json_entries([line.message for line in lines])
    document: dict[str, Any] = {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": state.workflow,
        "entries": [entry | {"rendered": line.rendered} for entry, line in zip(as_lines, lines, strict=True)],
        "statistics": _statistics(state, lines).model_dump(),
    }
    if beside:
        document["history"] = [_as_json(each) for each in beside]
    return document


def _statistics(state: State, lines: Sequence[Said]) -> protocol_log.Statistics:
    return protocol_log.statistics([line.message for line in lines], outcome=_outcome_of(state))


def _outcome_of(state: State) -> str | None:
    return state.outcome.value if state.outcome is not None else None


def _as_json(each: Happening) -> dict[str, Any]:
    message_id = each.message.message_id if each.message is not None else None
    return {
        "timestamp": iso_stamp(each.at),
        "kind": each.kind,
        "text": each.text,
        "message_id": message_id,
        "entry": each.entry,
    }


def _markdown(state: State, entries: Sequence[Entry], beside: Sequence[Happening]) -> Iterator[str]:
    lines = list(said(entries))
    yield protocol_log.full_log(
        [line.message for line in lines],
        issue=state.issue,
        feature=state.name,
        outcome=_outcome_of(state),
        started=state.started_at,
        completed=state.last_at,
    )
    if beside:
        yield "\n".join(
            ("## History", "", *(f"- {markdown.line(line)}" for line in _history_lines(beside)), "")
        )
    yield from (line.rendered for line in lines)


def _text(state: State, entries: Sequence[Entry], beside: Sequence[Happening]) -> Iterator[str]:
    shown = beside or [each for each in happenings(entries) if each.message is not None]
    yield from _history_lines(shown, kinds=bool(beside))
    yield ""
    for name, value in _statistics(state, list(said(entries))).model_dump().items():
        yield f"{name.replace('_', ' ').capitalize()}: {value}"


def _history_lines(found: Sequence[Happening], *, kinds: bool = True) -> Iterator[str]:
    for each in found:
        kind = f"  {each.kind:8}" if kinds else ""
        yield f"{stamp(each.at)}{kind}  {short(each.text, 300)}"
