"""A person's own pause: `pause` and `continue`. No escalation, and nothing to decide."""

import getpass
from typing import Annotated

import typer

from fixloop.commands.session import Issue, ProjectOption, caller, open_session
from fixloop.protocol.durations import stamp
from fixloop.protocol.events import Continued, Paused
from fixloop.protocol.messages import USER
from fixloop.protocol.state import State

__all__ = ["register"]


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
        if session.engine.state(workflow).held is None:
            session.bring(workflow, Paused(by=getpass.getuser(), reason=reason, sender=caller(USER)))
        typer.echo(_paused(session.engine.state(workflow)), err=True)


def continue_command(issue: Issue, project: ProjectOption = None) -> None:
    """Let a paused workflow go on where it stood."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        state = session.engine.state(workflow)
        if state.held is not None or state.ended:
            session.bring(workflow, Continued(by=getpass.getuser(), sender=caller(USER)))
        typer.echo(_going_on(session.engine.state(workflow)), err=True)


def _paused(state: State) -> str:
    held = state.held
    if held is None:
        return f"issue {state.issue} was continued meanwhile"
    return f"issue {state.issue} is paused by {held.by} since {stamp(held.at)} UTC; `fixloop continue {state.issue}`"


def _going_on(state: State) -> str:
    waits = "; it waits for a decision: `fixloop inbox`" if state.paused else ""
    return f"issue {state.issue} goes on: {state.active.name} is {state.active.status}{waits}"
