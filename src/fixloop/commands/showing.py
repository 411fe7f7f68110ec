"""Looking at workflows: `status`, `inbox`, `watch`. They change nothing.

What only one of them needs is loaded by it, because `status` is asked for in prompts and loops.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer

from fixloop.commands.screen import print_json, print_lines, row, say, show, table
from fixloop.commands.session import (
    AsJson,
    Issue,
    NothingYet,
    OnlyProject,
    OptionalIssue,
    ProjectOption,
    Seen,
    here,
    look,
    open_session,
    prefix_of,
    project_of,
)
from fixloop.commands.status import LOUD, WAITS, is_away, listed, listing_table
from fixloop.commands.views.table import across_all
from fixloop.commands.views.view import Across, Standing, documented
from fixloop.errors import Damaged, ProtocolError
from fixloop.store.contract import Store

SHOWN_WORKFLOWS: Final = 200
"""A longer table helps nobody; `--json` has them all."""


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (status, inbox, watch):
        app.command()(command)


def status(issue: OptionalIssue = None, json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Show one issue, or all workflows.

    All of them, or --project's: live ones first. With --json, one issue is a document with verdict,
    owner, deadline and the specialists with their evidence.
    """
    if issue is not None:
        with open_session() as session:
            seen = look(session, session.workflow_of(issue, project))
            away = is_away(seen.found.moment, session.store.now(seen.found.workflow))
            # A timekeeper that was started just now has not swept yet.
            away = away and not (session.settings.keeps_time and seen.standing.waits_for_agent)
            across = seen.view.across(session.store, project_of(seen.found.workflow))
            _show_status(seen, across, json=json, away=away)
        return
    counted: Mapping[str, Across] = {}
    try:
        with open_session() as session:
            prefix = prefix_of(project)
            rows = listed(each for each in session.store.workflows() if each[0].startswith(prefix))
            _name_damaged(session.store, rows)
            counted = across_all({each["profile"] for each in rows}, session.store, prefix)
            if not rows:
                say(session.nothing_here())
    except NothingYet as nothing:
        say(str(nothing))
        rows = []
    _show_list(rows, counted, json=json)


def _name_damaged(store: Store, rows: Sequence[dict[str, Any]]) -> None:
    """What plain fields do not tell is looked up for what is live and shown: ended ones wait for nobody."""
    for each in rows[:SHOWN_WORKFLOWS]:
        if not each["damaged"] and not each["outcome"]:
            each["damaged"] = _damage(store, each["workflow_id"])
    for each in rows:
        if each["damaged"]:
            say(str(Damaged(each["workflow_id"], each["damaged"])))


def _damage(store: Store, workflow: str) -> str | None:
    try:
        store.read(workflow)
    except ProtocolError as error:
        return error.detail if isinstance(error, Damaged) else str(error)
    return None


def inbox(json: AsJson = False, project: OnlyProject = None) -> None:
    """
    List what waits for a person, of all profiles.

    Escalations and questions with the commands that answer them, work that an outside agent or a person has to
    do, and what the project's chats ask of you. With --project no chats: they lie in a directory.
    """
    from fixloop.commands.inbox import asked_in_chats, item_text, waiting

    try:
        with open_session() as session:
            items = waiting(session.store, session.settings.cache_dir, prefix=prefix_of(project))
    except NothingYet as nothing:
        say(str(nothing))
        items = []
    if project is None:
        items = sorted([*items, *asked_in_chats(here())], key=lambda item: str(item["since"]))
    if json:
        print_json({"items": items})
        return
    for item in items:
        print_lines(*item_text(item))
    if not items:
        say("nothing waits for you")


def watch(issue: Issue, project: ProjectOption = None) -> None:
    """
    Follow a workflow until it ends or waits.

    Waits, that is, for a person; the exit codes are those of `run`. On a terminal a view with phases,
    runs and clocks; on a pipe one line for each event.
    """
    from fixloop.commands import progress
    from fixloop.commands.children import waiting_child
    from fixloop.commands.result import print_result

    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        on_terminal = sys.stdout.isatty()

        def until(now: Standing) -> bool:
            return _is_over(now, on_terminal=on_terminal) or waiting_child(session, workflow) is not None

        seen = progress.follow(session, workflow, until=until)
        child = waiting_child(session, workflow) if not seen.standing.is_settled else None
        raise typer.Exit(print_result(child if child is not None else seen))


def _show_status(seen: Seen, across: Across | None, *, json: bool, away: bool) -> None:
    found, view, state = seen
    if json:
        stands = {"deadline": None} if away else {}
        document = documented(view.document(found, state), across)
        print_json(document | stands | {"clocks_stand_still": away})
        return
    from rich.console import Group

    print_lines(f"#{state.issue} {state.name}")
    facts = table("", "")
    facts.show_header = False
    for label, text in view.details(found, state, away):
        row(facts, label, text, style=LOUD if label == WAITS else "", most=700)
    if across is not None:
        row(facts, across.label, across.text)
    show(Group(facts, "", view.table(state)))


def _show_list(rows: Sequence[dict[str, Any]], counted: Mapping[str, Across], *, json: bool) -> None:
    if json:
        metrics = {name: dict(across.document) for name, across in counted.items()}
        print_json({"workflows": rows, "metrics": metrics})
        return
    if rows:
        show(listing_table(rows[:SHOWN_WORKFLOWS]))
    for name, across in counted.items():
        print_lines(f"{name}: {across.text}")
    if len(rows) > SHOWN_WORKFLOWS:
        say(f"{len(rows) - SHOWN_WORKFLOWS} more are not shown; --json lists all")


def _is_over(standing: Standing, *, on_terminal: bool) -> bool:
    """An outside agent's work is waited for on a terminal only: there somebody may be about to do it."""
    return standing.is_settled or (standing.waits_for_agent and not on_terminal)
