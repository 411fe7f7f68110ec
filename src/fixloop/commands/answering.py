"""The agents' and the person's side: `ack`, `fixed`, `decide`, `cancel`; how, is a matter of each profile's door."""

from pathlib import Path
from typing import Annotated

import typer

from fixloop.commands.doors.door import Answer, Work
from fixloop.commands.doors.table import door_of
from fixloop.commands.screen import note, print_text
from fixloop.commands.session import Issue, ProjectOption, open_session
from fixloop.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (ack, fixed, decide, cancel):
        app.command()(command)


Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Of a cycle or of handoffs: whose work it is.",
        show_default="the only one that is asked",
    ),
]


def ack(
    issue: Issue,
    agent: Agent = "",
    handoff: Annotated[
        str,
        typer.Option(
            "--handoff", metavar="ID", help="Of handoffs: take this one, if nobody has taken it before."
        ),
    ] = "",
    show: Annotated[
        str,
        typer.Option("--show", metavar="ID", help="Print one failure in full, F1 or another; take nothing."),
    ] = "",
    project: ProjectOption = None,
) -> None:
    """Take the open request: prints it, and the directory to work in."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        if show:
            print_text(door_of(session, workflow).failure(session, workflow, show))
            return
        door_of(session, workflow).ack(session, workflow, agent, handoff)


def fixed(
    issue: Issue,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help="A Fix Completion, as Markdown or JSON; of a cycle's agent a PHASE_RESULT, of handoffs the "
            "result as JSON. - is stdin.",
        ),
    ] = None,
    here: Annotated[
        bool,
        typer.Option(
            "--here",
            help="Take the current checkout instead, exactly as it stands; of cycles and handoffs, merged.",
        ),
    ] = False,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="With --here: keep what the fixes so far changed, and merge onto it."),
    ] = False,
    rev: Annotated[
        str | None, typer.Option("--rev", help="Take a commit that builds on the work so far.")
    ] = None,
    blocked: Annotated[str | None, typer.Option("--blocked", help="Say why it cannot be done.")] = None,
    agent: Agent = "",
    project: ProjectOption = None,
) -> None:
    """Say that the work is done: takes the offered directory as it stands, and prints the files it took."""
    if sum((here, rev is not None, blocked is not None)) > 1:
        raise UsageError("--here, --rev and --blocked exclude each other; use one of them")
    if merge and not here:
        raise UsageError("--merge says how the checkout is taken; use it with --here")
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        work = Work(agent, file, here, merge, rev, blocked)
        door_of(session, workflow).fixed(session, workflow, work)


def decide(
    issue: Issue,
    answer: Annotated[
        str,
        typer.Argument(
            metavar="ANSWER",
            help="manual-fix, skip, abort or extend; to a question of handoffs one of its options, or any text "
            "where it has none.",
        ),
    ],
    iterations: Annotated[
        int | None, typer.Option("--iterations", min=1, help="extend: how many more (3).")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.01, help="extend: how much longer (30).")
    ] = None,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            "--guidance",
            metavar="TEXT",
            help="Why, or what the agents that wait are to do; it is logged.",
        ),
    ] = "",
    escalation: Annotated[
        str, typer.Option("--escalation", metavar="ID", help="Which one, where several are open.")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Answer an escalation.

    With manual-fix, skip, abort or extend, or with what an agent of handoffs has asked for. A cycle goes
    on from manual-fix with your --guidance. `fixloop inbox` shows what may be answered.
    """
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        given = Answer(answer, reason, iterations, minutes, escalation)
        door_of(session, workflow).decide(session, workflow, given)


def cancel(
    issue: Issue,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is logged.")] = "",
    project: ProjectOption = None,
) -> None:
    """Stop a workflow; it ends in the status it had."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        session.bring(workflow, door_of(session, workflow).cancelled(reason))
        note(f"workflow {workflow} is cancelled")
