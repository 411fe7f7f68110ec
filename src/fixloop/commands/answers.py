"""What agents and people tell a workflow: `ack`, `fixed`, `decide`, `send`, `reject`, and what pauses or ends it."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fixloop.commands.handlers import Answer, Said, Work, handlers_of
from fixloop.commands.screen import note, print_text
from fixloop.commands.session import Issue, ProjectOption, look, open_workflow
from fixloop.errors import UsageError
from fixloop.protocol.declining import kind_named

Agent = Annotated[
    str,
    Option(
        "--agent",
        metavar="NAME",
        help="cycle, handoff: the agent whose work it is.",
        show_default="the only one asked",
    ),
]
Reason = Annotated[str, Option("--reason", help="Why; it is logged.")]


def ack(
    issue: Issue,
    agent: Agent = "",
    handoff: Annotated[
        str, Option(metavar="ID", help="handoff: accept this one, unless already taken.")
    ] = "",
    show: Annotated[str, Option(metavar="ID", help="Only print one failure in full, such as F1.")] = "",
    project: ProjectOption = None,
) -> None:
    """Take the open request. Prints it, and the directory to work in."""
    with open_workflow(issue, project) as (session, workflow):
        if show:
            print_text(handlers_of(session, workflow).failure(session, workflow, show))
            return
        handlers_of(session, workflow).ack(session, workflow, agent, handoff)


def fixed(
    issue: Issue,
    file: Annotated[
        Path | None,
        Option(
            help="A Fix Completion, as Markdown or JSON; cycle: a PHASE_RESULT; handoff: the result as JSON; "
            "- for stdin."
        ),
    ] = None,
    here: Annotated[
        bool,
        Option(
            "--here", help="Submit the current checkout instead, exactly as it is; cycle, handoff: merged."
        ),
    ] = False,
    merge: Annotated[bool, Option("--merge", help="With --here: merge onto the fixes so far.")] = False,
    rev: Annotated[str | None, Option(help="Submit a commit that builds on the work so far.")] = None,
    blocked: Annotated[str | None, Option(help="Why it cannot be done.")] = None,
    agent: Agent = "",
    project: ProjectOption = None,
) -> None:
    """Submit the work. Takes the offered directory as it is, and prints the files it took."""
    if sum((here, rev is not None, blocked is not None)) > 1:
        raise UsageError("--here, --rev and --blocked exclude each other; use one of them")
    if merge and not here:
        raise UsageError("--merge needs --here")
    with open_workflow(issue, project) as (session, workflow):
        handlers_of(session, workflow).fixed(session, workflow, Work(agent, file, here, merge, rev, blocked))


def decline(
    issue: Issue,
    kind: Annotated[str, Option(metavar="KIND", help="test-is-wrong, needs-info, not-mine or blocked.")],
    text: Annotated[str, Option(metavar="TEXT", help="Why, in a sentence or two.")],
    agent: Agent = "",
    project: ProjectOption = None,
) -> None:
    """Decline to fix, with a reason. A person decides, and no iteration is counted."""
    if not text.strip():
        raise UsageError("--text is empty; give the reason")
    with open_workflow(issue, project) as (session, workflow):
        work = Work(agent=agent, blocked=text, declined=kind_named(kind))
        handlers_of(session, workflow).fixed(session, workflow, work)


def decide(
    issue: Issue,
    answer: Annotated[
        str,
        Argument(
            metavar="ANSWER",
            help="manual-fix, skip, abort or extend; for an integrity hold also accept or reject; for a handoff's "
            "question one of its options, or any text if it has none.",
        ),
    ],
    iterations: Annotated[int | None, Option(min=1, help="extend: how many more (3).")] = None,
    minutes: Annotated[float | None, Option(min=0.01, help="extend: how much longer (30).")] = None,
    reason: Annotated[
        str,
        Option(
            "--reason",
            "--guidance",
            metavar="TEXT",
            help="Why, or what waiting agents should do; it is logged.",
        ),
    ] = "",
    escalation: Annotated[str, Option(metavar="ID", help="Which one, if several are open.")] = "",
    until: Annotated[
        str, Option(metavar="DAY", help="skip: its last day, such as 2027-01-31; shown in `inbox`.")
    ] = "",
    owner: Annotated[
        str, Option(metavar="NAME", help="skip with --until: who is responsible.", show_default="who decides")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Answer an escalation.

    Use manual-fix, skip, abort or extend, or what a handoff agent asked for. In a cycle, manual-fix
    passes on your --guidance. `fixloop inbox` shows the possible answers.

    An integrity hold is a passing run in which a rule found something it cannot judge. accept: the changes are
    right and judge from now on. reject: your --reason and the findings go back to the agent.
    """
    with open_workflow(issue, project) as (session, workflow):
        given = Answer(answer, reason, iterations, minutes, escalation, until, owner)
        handlers_of(session, workflow).decide(session, workflow, given)


def send(
    issue: Issue,
    to: Annotated[str, Argument(metavar="AGENT", help="The recipient.")],
    text: Annotated[
        str, Argument(metavar="TEXT", help="The message; handoff: what to pass on, JSON or text.")
    ],
    action: Annotated[
        list[str] | None, Option(metavar="TEXT", help="What to do; repeatable; default: the text itself.")
    ] = None,
    criterion: Annotated[
        list[str] | None, Option(metavar="TEXT", help="How to tell that it is done.")
    ] = None,
    about: Annotated[str, Option(metavar="ID", help="The blocker it is about.")] = "",
    kind: Annotated[
        str,
        Option(
            "--type",
            metavar="TYPE",
            help="cycle: clarification (default) or feedback; handoff: its type.",
            show_default="what the agent passes on",
        ),
    ] = "",
    agent: Annotated[str, Option(metavar="NAME", help="handoff: who passes it on.")] = "",
    project: ProjectOption = None,
) -> None:
    """
    Message an agent of a cycle, or pass a handoff on. You act for the orchestrator, or as a handoff agent.

    An agent of a cycle reads it in its current or next request; one that has completed works again, and its
    work is validated. Each agent gets one clarification per iteration, and one about each blocker.
    """
    with open_workflow(issue, project) as (session, workflow):
        said = Said(to, text, agent, kind, tuple(action or ()), tuple(criterion or ()), about)
        handlers_of(session, workflow).send(session, workflow, said)


def reject(
    issue: Issue,
    reason: Annotated[str, Option(metavar="TEXT", help="Why it will not be done.")],
    agent: Agent = "",
    handoff: Annotated[
        str, Option(metavar="ID", help="Which one.", show_default="the one it was given")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Reject a handoff, as the agent it is for. A person decides what happens next.

    It moves to the completed ones, with the reason. `fixloop decide` sends it again (manual-fix, with your
    --guidance) or ends the workflow.
    """
    with open_workflow(issue, project) as (session, workflow):
        handlers_of(session, workflow).reject(session, workflow, agent, handoff, reason)


def pause(issue: Issue, reason: Reason = "", project: ProjectOption = None) -> None:
    """
    Pause a workflow: nothing begins, nothing is sent.

    Running work may finish, and its result is kept. Clocks stop until `fixloop continue`.
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
    """Continue a paused workflow where it stopped."""
    with open_workflow(issue, project) as (session, workflow):
        now = look(session, workflow).standing
        if now.held or now.outcome:
            session.bring(workflow, handlers_of(session, workflow).continued())
            now = look(session, workflow).standing
        waits = "; it waits for a decision: `fixloop inbox`" if now.waits_for == "decision" else ""
        note(f"issue {now.issue} continues: {now.at_work}{waits}")


def cancel(issue: Issue, reason: Reason = "", project: ProjectOption = None) -> None:
    """Cancel a workflow; it ends in its current status."""
    with open_workflow(issue, project) as (session, workflow):
        session.bring(workflow, handlers_of(session, workflow).cancelled(reason))
        note(f"workflow {workflow} is cancelled")
