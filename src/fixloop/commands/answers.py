"""What agents and people say to a workflow: `ack`, `fixed`, `decide`, `send`, `reject`, and what halts or ends it."""

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
        help="Of a cycle or of handoffs: whose work it is.",
        show_default="the only one that is asked",
    ),
]
Reason = Annotated[str, Option("--reason", help="Why; it is logged.")]


def ack(
    issue: Issue,
    agent: Agent = "",
    handoff: Annotated[
        str, Option(metavar="ID", help="Of handoffs: take this one, if nobody has taken it before.")
    ] = "",
    show: Annotated[
        str, Option(metavar="ID", help="Print one failure in full, F1 or another; take nothing.")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """Take the open request: prints it, and the directory to work in."""
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
            help="A Fix Completion, as Markdown or JSON; of a cycle's agent a PHASE_RESULT, of handoffs the "
            "result as JSON. - is stdin."
        ),
    ] = None,
    here: Annotated[
        bool,
        Option(
            "--here",
            help="Take the current checkout instead, exactly as it stands; of cycles and handoffs, merged.",
        ),
    ] = False,
    merge: Annotated[
        bool, Option("--merge", help="With --here: keep what the fixes so far changed, and merge onto it.")
    ] = False,
    rev: Annotated[str | None, Option(help="Take a commit that builds on the work so far.")] = None,
    blocked: Annotated[str | None, Option(help="Say why it cannot be done.")] = None,
    agent: Agent = "",
    project: ProjectOption = None,
) -> None:
    """Say that the work is done: takes the offered directory as it stands, and prints the files it took."""
    if sum((here, rev is not None, blocked is not None)) > 1:
        raise UsageError("--here, --rev and --blocked exclude each other; use one of them")
    if merge and not here:
        raise UsageError("--merge says how the checkout is taken; use it with --here")
    with open_workflow(issue, project) as (session, workflow):
        work = Work(agent, file, here, merge, rev, blocked)
        handlers_of(session, workflow).fixed(session, workflow, work)


def decline(
    issue: Issue,
    kind: Annotated[str, Option(metavar="KIND", help="test-is-wrong, needs-info, not-mine or blocked.")],
    text: Annotated[str, Option(metavar="TEXT", help="Why, in a sentence or two.")],
    agent: Agent = "",
    project: ProjectOption = None,
) -> None:
    """Say that there will be no fix, and why: a person decides, and no iteration is counted."""
    if not text.strip():
        raise UsageError("--text says why; give the reason")
    with open_workflow(issue, project) as (session, workflow):
        work = Work(agent=agent, blocked=text, declined=kind_named(kind))
        handlers_of(session, workflow).fixed(session, workflow, work)


def decide(
    issue: Issue,
    answer: Annotated[
        str,
        Argument(
            metavar="ANSWER",
            help="manual-fix, skip, abort or extend, and to an integrity hold accept or reject; to a question of "
            "handoffs one of its options, or any text where it has none.",
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
            help="Why, or what the agents that wait are to do; it is logged.",
        ),
    ] = "",
    escalation: Annotated[str, Option(metavar="ID", help="Which one, where several are open.")] = "",
    until: Annotated[
        str, Option(metavar="DAY", help="skip: its last day, such as 2027-01-31; `inbox` reminds of it.")
    ] = "",
    owner: Annotated[
        str, Option(metavar="NAME", help="skip with --until: who looks after it.", show_default="who decides")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Answer an escalation.

    With manual-fix, skip, abort or extend, or with what an agent of handoffs has asked for. A cycle goes
    on from manual-fix with your --guidance. `fixloop inbox` shows what may be answered.

    An integrity hold is a run that passed while a rule saw what it cannot decide. With accept the changes are
    right, and judge from now on. With reject your --reason and the findings go back to the agent.
    """
    with open_workflow(issue, project) as (session, workflow):
        given = Answer(answer, reason, iterations, minutes, escalation, until, owner)
        handlers_of(session, workflow).decide(session, workflow, given)


def send(
    issue: Issue,
    to: Annotated[str, Argument(metavar="AGENT", help="Who is told.")],
    text: Annotated[
        str, Argument(metavar="TEXT", help="What is said; of handoffs what is passed on, JSON or a text.")
    ],
    action: Annotated[
        list[str] | None,
        Option(metavar="TEXT", help="What to do, once for each; the text itself if left out."),
    ] = None,
    criterion: Annotated[
        list[str] | None, Option(metavar="TEXT", help="How one sees that it is done.")
    ] = None,
    about: Annotated[str, Option(metavar="ID", help="The blocker that it is about.")] = "",
    kind: Annotated[
        str,
        Option(
            "--type",
            metavar="TYPE",
            help="Of a cycle clarification (default) or feedback; of handoffs their type.",
            show_default="what the agent passes on",
        ),
    ] = "",
    agent: Annotated[str, Option(metavar="NAME", help="Of handoffs: who passes it on.")] = "",
    project: ProjectOption = None,
) -> None:
    """
    Say something to an agent of a cycle, in the orchestrator's place; or pass a handoff on, as one of its agents.

    An agent of a cycle reads it in its present or next request; one that has completed works again, and what
    it does is validated. One clarification goes to an agent in an iteration, and one about each blocker.
    """
    with open_workflow(issue, project) as (session, workflow):
        said = Said(to, text, agent, kind, tuple(action or ()), tuple(criterion or ()), about)
        handlers_of(session, workflow).send(session, workflow, said)


def reject(
    issue: Issue,
    reason: Annotated[str, Option(metavar="TEXT", help="Why it will not be done.")],
    agent: Agent = "",
    handoff: Annotated[
        str, Option(metavar="ID", help="Which one.", show_default="what the agent was given")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Reject a handoff, as the agent that it is for; a person decides what becomes of it.

    It lies among the completed ones then, with the reason. `fixloop decide` sends it anew (manual-fix, with
    what you say as --guidance), or ends the workflow.
    """
    with open_workflow(issue, project) as (session, workflow):
        handlers_of(session, workflow).reject(session, workflow, agent, handoff, reason)


def pause(issue: Issue, reason: Reason = "", project: ProjectOption = None) -> None:
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


def cancel(issue: Issue, reason: Reason = "", project: ProjectOption = None) -> None:
    """Stop a workflow; it ends in the status it had."""
    with open_workflow(issue, project) as (session, workflow):
        session.bring(workflow, handlers_of(session, workflow).cancelled(reason))
        note(f"workflow {workflow} is cancelled")
