"""What an outside agent reads in its mailbox: messages of validation workflows, and runs of cycles and handoffs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fixloop.commands.choices import choices
from fixloop.commands.doors.table import outside_in
from fixloop.commands.outcome import waits_for_agent
from fixloop.commands.screen import say
from fixloop.commands.session import Seen, Session, caller
from fixloop.errors import FixloopError, ProtocolError
from fixloop.outside.mail import Change, Mail
from fixloop.outside.offer import offer
from fixloop.outside.prompts import request_for
from fixloop.protocol.documents import entity_of
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.ids import called
from fixloop.protocol.markdown import bullets
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.refusals import Repeated
from fixloop.store.damage import reading

if TYPE_CHECKING:
    from fixloop.commands.doors.outside import Facts


class Shown(NamedTuple):
    """One thing to read."""

    order: tuple[int, datetime, int]
    """The most urgent first, then the oldest."""
    text: str
    document: Callable[[], dict[str, Any]]
    acknowledge: Callable[[], None]
    """Says that it was read; twice is once."""
    then: Callable[[], str]
    """What to do next, for a person; empty: nothing."""


def shown_mail(session: Session, agent: str, mail: Mail) -> Shown:
    """A message of a validation workflow."""
    message = mail.message
    return Shown(
        order=(message.priority.broker, message.at, message.number),
        text=mail.text,
        document=partial(_mail_document, session, mail),
        acknowledge=lambda: mail.acknowledge(session.engine, agent, sender=caller(MAIN_AGENT)),
        then=partial(_after_mail, session, mail),
    )


def change_text(changes: Sequence[Change]) -> Iterator[str]:
    """The status changes since its agent read last, a line each; nothing where there was none."""
    if changes:
        yield f"## Status Changes\n\n{bullets(change.line for change in changes)}"


def change_document(change: Change) -> dict[str, Any]:
    """One of them as `--json` has it."""
    what = change.change
    return {
        "issue": change.issue,
        "workflow_id": change.workflow,
        "message_id": change.message_id,
        "entity": entity_of(what),
        "specialist": what.specialist,
        "previous_status": what.before.value,
        "new_status": what.after.value,
        "timestamp": iso_stamp(what.at),
        "reason": what.reason,
    }


def runs_asked(session: Session, project: str, agent: str) -> list[Shown]:
    """What cycles and handoffs of a project ask of the agents of this name who are outside."""
    name, found = agent.lower(), []
    for seen, agents in _outside(session, project):
        with suppress(ProtocolError), reading(seen.found.workflow):
            if name in agents and agents[name].asked and not seen.standing.held:
                found.append(_shown_run(session, seen, name))
    return found


def agents_outside(session: Session, project: str) -> set[str]:
    """The names of all agents outside that take part in a live cycle or workflow of handoffs of a project."""
    return {name for _, agents in _outside(session, project) for name in agents}


def _outside(session: Session, project: str) -> Iterator[tuple[Seen, Mapping[str, "Facts"]]]:
    for workflow, fields in session.store.workflows(live_only=True):
        # A validation workflow says whom it asks in its plain fields, and has no profile there. Damage
        # keeps nobody else's from being read.
        if not fields.get("profile") or not workflow.startswith(f"{project}-"):
            continue
        with suppress(ProtocolError), reading(workflow):
            found = session.store.read(workflow)
            if found is not None:
                seen = Seen.of(found)
                agents = outside_in(found.snapshot).agents(seen.state)
                yield seen, {name: facts for name, facts in agents.items() if not facts.command}


def _shown_run(session: Session, seen: Seen, agent: str) -> Shown:
    outside, workflow = outside_in(seen.found.snapshot), seen.found.workflow
    text = request_for(session.store, seen.found.snapshot, agent)

    def acknowledge() -> None:
        with suppress(Repeated):
            session.bring(workflow, outside.began(agent))

    return Shown(
        order=(outside.priority(seen.state), seen.state.last_at, 0),
        text=text,
        document=partial(_run_document, session, seen, agent, text),
        acknowledge=acknowledge,
        then=partial(_after_run, session, seen, agent),
    )


def _run_document(session: Session, seen: Seen, agent: str, text: str) -> dict[str, Any]:
    state, facts = seen.state, outside_in(seen.found.snapshot).agents(seen.state)[agent]
    return {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": state.workflow,
        "uid": facts.run,
        "message_id": facts.run,
        "type": f"{state.profile}.work",
        "sender": "orchestrator",
        "recipient": agent,
        "priority": "high",
        "timestamp": iso_stamp(state.last_at),
        "specialist": agent,
        "iteration": state.iteration,
        "max_iterations": state.max_iterations,
        "attached": None,
        "directory": _run_directory(session, seen, agent),
        "commands": list(_run_commands(seen, agent)),
        "text": text,
    }


def _run_directory(session: Session, seen: Seen, agent: str) -> str | None:
    from fixloop.commands.doors.outside import offered

    try:
        made = offered(outside_in(seen.found.snapshot), session, seen, agent)
    except FixloopError as error:
        say(f"there is no directory to work in: {error}")
        return None
    return str(made.directory) if made is not None else None


def _run_commands(seen: Seen, agent: str) -> Sequence[str]:
    one = f"fixloop fixed {called(seen.state)} --agent {agent}"
    return f"{one} --file ANSWER", f"{one} --blocked TEXT"


def _after_run(session: Session, seen: Seen, agent: str) -> str:
    directory = _run_directory(session, seen, agent)
    commands = " or ".join(f"`{command}`" for command in _run_commands(seen, agent))
    return f"work in {directory}, then {commands}" if directory is not None else commands


def _mail_document(session: Session, mail: Mail) -> dict[str, Any]:
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
        "directory": _mail_directory(session, mail),
        "commands": list(_mail_commands(mail)),
        "text": mail.text,
    }


def _mail_directory(session: Session, mail: Mail) -> str | None:
    """Where the fix is to be made; None where nothing is asked, or the repository is not on this machine."""
    if not mail.is_request or not mail.state.snapshot:
        return None
    try:
        return str(offer(session.engine, mail.state, session.settings.cache_dir).directory)
    except FixloopError as error:
        say(f"there is no directory to work in: {error}")
        return None


def _mail_commands(mail: Mail) -> Sequence[str]:
    """What answers it."""
    kind, issue = mail.message.body.kind, called(mail.state)
    if kind == "escalation":
        return tuple(each.command for each in choices(mail.state))
    if kind in ("success", "error-notification") or not waits_for_agent(mail.state):
        return ()
    return (f"fixloop fixed {issue}", f"fixloop fixed {issue} --blocked TEXT")


def _after_mail(session: Session, mail: Mail) -> str:
    directory = _mail_directory(session, mail)
    commands = " or ".join(f"`{command}`" for command in _mail_commands(mail))
    if not commands:
        return ""
    where = f"work in {directory}, then" if directory is not None else f"{mail.message.message_id}:"
    return f"{where} {commands}"
