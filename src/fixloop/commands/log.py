"""`fixloop log`: all messages as lines, in full or as data, and what else happened. Changes nothing."""

from typing import Annotated, Literal

from typer import Option

from fixloop.commands.presenter import Logged
from fixloop.commands.screen import print_json, print_text
from fixloop.commands.session import AsJson, Issue, ProjectOption, look, open_session
from fixloop.errors import UsageError


def log_command(
    issue: Issue,
    format: Annotated[
        Literal["text", "markdown", "json"], Option(help="One line per message, full messages, or JSON.")
    ] = "text",
    all: Annotated[
        bool,
        Option(
            "--all", help="Also status changes, receipts, decisions, notes, timers, evidence, monitoring."
        ),
    ] = False,
    specialist: Annotated[
        str | None,
        Option(
            "--specialist",
            "--agent",
            help="Only this one: a specialist's loop as a flow, or the messages to and from an agent of a "
            "cycle or handoff.",
        ),
    ] = None,
    json: AsJson = False,
    project: ProjectOption = None,
) -> None:
    """
    Print the full communication log.

    Includes statistics. Works for running and ended workflows; `--format markdown` and `json` give every
    message in full.
    """
    if all and specialist is not None:
        raise UsageError("--all and --specialist exclude each other: only messages belong to a specialist")
    with open_session() as session:
        seen = look(session, session.workflow_of(issue, project))
        entries = session.store.history(seen.found.workflow)
        logged = Logged(seen.state, seen.found.moment, entries, all, specialist or "")
        if json or format == "json":
            print_json(seen.presenter.log_document(logged))
        else:
            shown = seen.presenter.log_markdown if format == "markdown" else seen.presenter.log_text
            print_text(shown(logged))
