"""`send` and `reject`: what agents of cycles and handoffs are told, and what one of them will not do (C20, D12, G9)."""

from typing import Annotated

import typer

from fixloop.commands.answering import Agent
from fixloop.commands.doors.door import Said
from fixloop.commands.doors.table import door_of
from fixloop.commands.session import Issue, ProjectOption, open_session


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (send, reject):
        app.command()(command)


def send(
    issue: Issue,
    to: Annotated[str, typer.Argument(metavar="AGENT", help="Who is told.")],
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="What is said; of handoffs what is passed on, JSON or a text."),
    ],
    action: Annotated[
        list[str] | None,
        typer.Option(
            "--action", metavar="TEXT", help="What to do, once for each; the text itself if left out."
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None, typer.Option("--criterion", metavar="TEXT", help="How one sees that it is done.")
    ] = None,
    about: Annotated[str, typer.Option("--about", metavar="ID", help="The blocker that it is about.")] = "",
    kind: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Of a cycle clarification (default) or feedback; of handoffs their type.",
            show_default="what the agent passes on",
        ),
    ] = "",
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="Of handoffs: who passes it on.")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Say something to an agent of a cycle, in the orchestrator's place; or pass a handoff on, as one of its agents.

    An agent of a cycle reads it in its present or next request; one that has completed works again, and what
    it does is validated. One clarification goes to an agent in an iteration, and one about each blocker.
    """
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        said = Said(to, text, agent, kind, tuple(action or ()), tuple(criterion or ()), about)
        door_of(session, workflow).send(session, workflow, said)


def reject(
    issue: Issue,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it will not be done.")],
    agent: Agent = "",
    handoff: Annotated[
        str,
        typer.Option("--handoff", metavar="ID", help="Which one.", show_default="what the agent was given"),
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Reject a handoff, as the agent that it is for; a person decides what becomes of it.

    It lies among the completed ones then, with the reason. `fixloop decide` sends it anew (manual-fix, with
    what you say as --guidance), or ends the workflow.
    """
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        door_of(session, workflow).reject(session, workflow, agent, handoff, reason)
