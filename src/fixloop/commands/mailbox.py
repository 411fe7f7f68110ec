"""The declared agent's side: `mailbox` reads what is said to it and says that it has it (G1)."""

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.outcome import decision_commands
from fixloop.commands.screen import print_json, print_lines, say
from fixloop.commands.session import (
    AsJson,
    NothingYet,
    OnlyProject,
    Session,
    caller,
    here,
    open_session,
    prefix_of,
)
from fixloop.configuration.document import read_document
from fixloop.configuration.place import nearest, shown
from fixloop.errors import FixloopError, InfrastructureError, UsageError
from fixloop.mail import Mail, arrived, known_agents, waiting
from fixloop.offering import offer
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.messages import MAIN_AGENT

if TYPE_CHECKING:
    from fixloop.mailbox import Mailboxes

__all__ = ["register"]

POLL_SECONDS: Final = 0.25
LOOK_SECONDS: Final = 5.0
"""How often a waiting agent asks the state, too: that late is what a letter that was lost brought."""
LOOKS_IN: Final = 20
"""Of its time it spends so little on that: many workflows make a look long."""
PATIENCE_SECONDS: Final = 30.0
"""A Redis with an append-only file is back within seconds; an agent that waits would only start again."""
RULE: Final = "\n---\n\n"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(mailbox)


def mailbox(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="The name it is declared with in fixloop.toml.")
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until there is a message.")] = False,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.01, help="--wait: how long at most (30).")
    ] = None,
    json: AsJson = False,
    project: OnlyProject = None,
) -> None:
    """
    Read what is said to a declared outside agent, and acknowledge it.

    Failure reports with their fix requests, notices, reminders, successes and escalations to the main
    orchestrator; the most urgent first. Ends with exit code 1 when there is none. What asks for a fix is
    shown again until `fixloop fixed` answers it.
    """
    if minutes is not None and not wait:
        raise UsageError("--minutes goes with --wait; add it")
    declared = _declared() if project is None else set()
    try:
        with open_session(create=wait and agent in declared) as session:
            place = prefix_of(project).removesuffix("-") or session.project.hash8
            if agent not in declared:
                _refuse_unknown(agent, declared | known_agents(session.store, place))
            read = _read(session, place, agent, (30.0 if minutes is None else minutes) * 60 * wait, json=json)
    except NothingYet as nothing:
        if agent not in declared:
            _refuse_unknown(agent, declared)
        say(str(nothing))
        read = False
    if not read:
        raise typer.Exit(ExitCode.WRONG)


def _declared() -> set[str]:
    """The agents of the current directory's configuration."""
    table = read_document(here()).table.get("agent")
    return set(table) if isinstance(table, dict) else set()


def _refuse_unknown(agent: str, known: set[str]) -> None:
    if agent in known:
        return
    near = nearest(agent, known)
    if near:
        advice = f"did you mean {near!r}?" + (
            f" (known are {', '.join(sorted(known))})" if len(known) > 1 else ""
        )
    elif known:
        advice = f"known are {', '.join(sorted(known))}"
    else:
        advice = "declare it with [agent.NAME] in fixloop.toml"
    raise UsageError(f"no agent {shown(agent)} here; {advice}")


def _read(session: Session, project: str, agent: str, seconds: float, *, json: bool) -> bool:
    from fixloop.mailbox import Mailboxes

    with closing(Mailboxes(session.urls.broker)) as mailboxes:
        mails = _awaited(session, mailboxes, project, agent, seconds)
        if json:
            documents = [_document(session, mail) for mail in mails]
            print_json({"agent": agent, "project": project, "messages": documents})
        elif mails:
            print_lines(RULE.join(mail.text for mail in mails))
        else:
            say(f"no message for {agent}")
        # A message that did not get out was not read.
        sys.stdout.flush()
        for mail in mails:
            mail.acknowledge(session.engine, agent, sender=caller(MAIN_AGENT))
            if not json:
                _say_next(session, mail)
    return bool(mails)


def _awaited(
    session: Session, mailboxes: "Mailboxes", project: str, agent: str, seconds: float
) -> list[Mail]:
    """The messages there are, or the first that come within `seconds`."""
    started = time.monotonic()
    answered: float | None = None
    looked, pause = 0.0, 0.0
    while True:
        now = time.monotonic()
        found: list[Mail] = []
        try:
            if now >= looked + pause:
                found = waiting(session.store, project, agent)
                looked = time.monotonic()
                pause = max(LOOK_SECONDS, LOOKS_IN * (looked - now))
            found = _with_letters(session, mailboxes, project, agent, found)
            answered = now
        except InfrastructureError:
            if answered is None or now - answered > PATIENCE_SECONDS:
                raise
        if found or now - started >= seconds:
            return found
        time.sleep(POLL_SECONDS)


def _with_letters(
    session: Session, mailboxes: "Mailboxes", project: str, agent: str, found: list[Mail]
) -> list[Mail]:
    try:
        return arrived(session.store, mailboxes, project, agent, found)
    except InfrastructureError as error:
        if not found:
            raise
        say(f"{error}; this is what the state says")
        return found


def _document(session: Session, mail: Mail) -> dict[str, Any]:
    message, state = mail.message, mail.state
    return {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": state.workflow,
        "uid": message.uid,
        "message_id": message.message_id,
        "type": message.body.kind,
        "sender": message.sender,
        "recipient": message.recipient,
        "priority": message.priority.value,
        "timestamp": iso_stamp(message.at),
        "specialist": message.specialist,
        "iteration": message.iteration,
        "max_iterations": message.max_iterations,
        "attached": message.attached.message_id if message.attached is not None else None,
        "directory": _directory(session, mail),
        "commands": list(_commands(mail)),
        "text": mail.text,
    }


def _directory(session: Session, mail: Mail) -> str | None:
    """Where the fix is to be made; None where nothing is asked, or the repository is not on this machine."""
    if not mail.is_request or not mail.state.snapshot:
        return None
    try:
        return str(offer(session.engine, mail.state, session.settings.cache_dir).directory)
    except FixloopError as error:
        say(f"there is no directory to work in: {error}")
        return None


def _commands(mail: Mail) -> Sequence[str]:
    """What answers it."""
    kind, issue = mail.message.body.kind, mail.state.issue
    if kind == "escalation":
        return decision_commands(mail.state)
    if kind in ("success", "error-notification"):
        return ()
    return (f"fixloop fixed {issue}", f"fixloop fixed {issue} --blocked TEXT")


def _say_next(session: Session, mail: Mail) -> None:
    directory = _directory(session, mail)
    commands = " or ".join(f"`{command}`" for command in _commands(mail))
    if commands:
        where = f"work in {directory}, then" if directory is not None else f"{mail.message.message_id}:"
        typer.echo(f"{where} {commands}", err=True)
