"""A person's own pause: `pause` and `continue`. No escalation, and nothing to decide."""

from typing import Annotated

import typer

from fixloop.commands.doors.table import door_of
from fixloop.commands.screen import note
from fixloop.commands.session import Issue, ProjectOption, look, open_session
from fixloop.commands.views.view import Standing


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command()(pause)
    app.command(name="continue")(continue_command)


def pause(
    issue: Issue,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is logged.")] = "",
    project: ProjectOption = None,
) -> None:
    """
    Pause a workflow: nothing begins, nothing is sent.

    What is at work may finish; its result is kept. Clocks stand still until `fixloop continue`.
    """
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        if not look(session, workflow).standing.held:
            session.bring(workflow, door_of(session, workflow).paused(reason))
        note(_paused(look(session, workflow).standing))


def continue_command(issue: Issue, project: ProjectOption = None) -> None:
    """Let a paused workflow go on where it stood."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        now = look(session, workflow).standing
        if now.held or now.outcome:
            session.bring(workflow, door_of(session, workflow).continued())
        note(_going_on(look(session, workflow).standing))


def _paused(now: Standing) -> str:
    if not now.held:
        return f"issue {now.issue} was continued meanwhile"
    return f"issue {now.issue} is paused by {now.held}; `fixloop continue {now.called}`"


def _going_on(now: Standing) -> str:
    waits = "; it waits for a decision: `fixloop inbox`" if now.waits_for == "decision" else ""
    return f"issue {now.issue} goes on: {now.at_work}{waits}"
