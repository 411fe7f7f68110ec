"""`pause`, `continue` and `cancel`: a person halts a workflow, lets it go on or ends it, at any step."""

from typing import Annotated

import typer

from fixloop.commands.handlers import handlers_of
from fixloop.commands.screen import note
from fixloop.commands.session import Issue, ProjectOption, look, open_workflow


def pause(
    issue: Issue,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is logged.")] = "",
    project: ProjectOption = None,
) -> None:
    """
    Pause a workflow: nothing begins, nothing is sent.

    What is at work may finish; its result is kept. Clocks stand still until `fixloop continue`.
    """
    with open_workflow(issue, project) as (session, workflow):
        if not look(session, workflow).standing.held:
            session.bring(workflow, handlers_of(session, workflow).paused(reason))
        now = look(session, workflow).standing
        if now.held:
            note(f"issue {now.issue} is paused by {now.held}; `fixloop continue {now.called}`")
        else:
            note(f"issue {now.issue} was continued meanwhile")


def continue_command(issue: Issue, project: ProjectOption = None) -> None:
    """Let a paused workflow go on where it stood."""
    with open_workflow(issue, project) as (session, workflow):
        now = look(session, workflow).standing
        if now.held or now.outcome:
            session.bring(workflow, handlers_of(session, workflow).continued())
            now = look(session, workflow).standing
        waits = "; it waits for a decision: `fixloop inbox`" if now.waits_for == "decision" else ""
        note(f"issue {now.issue} goes on: {now.at_work}{waits}")


def cancel(
    issue: Issue,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is logged.")] = "",
    project: ProjectOption = None,
) -> None:
    """Stop a workflow; it ends in the status it had."""
    with open_workflow(issue, project) as (session, workflow):
        session.bring(workflow, handlers_of(session, workflow).cancelled(reason))
        note(f"workflow {workflow} is cancelled")
