"""The contents of an outside agent's mailbox: messages of validation workflows, runs of cycles and handoffs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from fixloop.commands.choices import choices
from fixloop.commands.outcome import waits_for_agent
from fixloop.commands.screen import say
from fixloop.commands.session import Seen, Session, caller
from fixloop.errors import FixloopError, ProtocolError
from fixloop.outside.mail import Change, Mail
from fixloop.outside.offer import Offer, offer, request_for
from fixloop.profile_table import loaded, registered_in
from fixloop.protocol.documents import change_line, entity_of
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.ids import called
from fixloop.protocol.markdown import bullets
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.ticket import work_id
from fixloop.store.damage import reading

if TYPE_CHECKING:
    from fixloop.commands.outside_agents import Outside


class Shown(NamedTuple):
    """One thing to read."""

    order: tuple[int, datetime, int]
    """Most urgent first, then oldest first."""
    text: str
    facts: dict[str, Any]
    """What `--json` prints before directory, commands and text."""
    made: Callable[[], Offer | None]
    """Makes the directory to work in, if needed; None if there is none."""
    commands: Sequence[str]
    """The commands that answer it."""
    acknowledge: Callable[[], None]
    """Marks it as read; idempotent."""
    label: str = ""
    """Printed before the commands if there is no directory."""

    def document(self) -> dict[str, Any]:
        return self.facts | {
            "directory": self.directory(),
            "commands": list(self.commands),
            "text": self.text,
        }

    def directory(self) -> str | None:
        """Where to work; None if there is no such place, or the repository is not on this machine."""
        try:
            found = self.made()
        except FixloopError as error:
            say(f"there is no directory to work in: {error}")
            return None
        return str(found.directory) if found is not None else None

    def then(self) -> str:
        """What a person does next; empty: nothing."""
        directory = self.directory()
        if not self.commands:
            return ""
        where = f"work in {directory}, then " if directory is not None else self.label
        return where + " or ".join(f"`{command}`" for command in self.commands)


def shown_mail(session: Session, agent: str, mail: Mail) -> Shown:
    """A message of a validation workflow."""
    message, state = mail.message, mail.state
    kind, issue = message.body.kind, called(state)
    commands: Sequence[str] = ()
    if kind == "escalation":
        commands = [each.command for each in choices(state)]
    elif kind not in ("success", "error-notification") and waits_for_agent(state):
        commands = (f"fixloop fixed {issue}", f"fixloop fixed {issue} --blocked TEXT")

    def made() -> Offer | None:
        asks = mail.is_request and state.snapshot
        return offer(session.engine, state, session.settings.cache_dir) if asks else None

    return Shown(
        order=(message.priority.broker, message.at, message.number),
        text=mail.text,
        facts={
            "issue": state.issue,
            "name": state.name,
            "workflow_id": state.workflow,
            "uid": message.uid,
            "message_id": message.message_id,
            "type": kind,
            "sender": message.sender,
            "recipient": message.recipient,
            "priority": message.priority.value,
            "timestamp": iso_stamp(message.at),
            "specialist": message.specialist,
            "iteration": message.iteration,
            "max_iterations": message.max_iterations,
            "attached": message.attached.message_id if message.attached is not None else None,
        },
        made=made,
        commands=commands,
        acknowledge=lambda: mail.acknowledge(session.engine, agent, sender=caller(MAIN_AGENT)),
        label=f"{message.message_id}: ",
    )


def change_text(changes: Sequence[Change]) -> Iterator[str]:
    """The status changes since the agent last read, one per line; nothing if there were none."""
    if changes:
        lines = (change_line(each.letter.issue, each.change) for each in changes)
        yield f"## Status Changes\n\n{bullets(lines)}"


def change_document(change: Change) -> dict[str, Any]:
    """A status change as `--json` has it."""
    letter, what = change
    return {
        "issue": letter.issue,
        "workflow_id": letter.workflow,
        "message_id": letter.message_id,
        "entity": entity_of(what),
        "specialist": what.specialist,
        "previous_status": what.before.value,
        "new_status": what.after.value,
        "timestamp": iso_stamp(what.at),
        "reason": what.reason,
    }


def runs_asked(session: Session, project: str, agent: str) -> list[Shown]:
    """The requests of a project's cycles and handoffs to outside agents of this name."""
    name, found = agent.lower(), []
    for seen, outside, agents in _outside(session, project):
        with suppress(ProtocolError), reading(seen.found.workflow):
            if name in agents and agents[name].asked and not seen.standing.held:
                found.append(_shown_run(session, seen, outside, name))
    return found


def agents_outside(session: Session, project: str) -> set[str]:
    """The names of all outside agents in a project's live cycles and handoff workflows."""
    return {name for _, _, agents in _outside(session, project) for name in agents}


def _outside(session: Session, project: str) -> Iterator[tuple[Seen, "Outside", dict[str, Any]]]:
    for workflow, fields in session.store.workflows(live_only=True):
        # A validation workflow names its agent in its plain fields, and has no profile there. A damaged
        # workflow does not keep others from being read.
        if not fields.get("profile") or not workflow.startswith(f"{project}-"):
            continue
        with suppress(ProtocolError), reading(workflow):
            found = session.store.read(workflow)
            part = registered_in(found.snapshot).outside if found is not None else ""
            if found is not None and part:
                seen, outside = Seen.of(found), loaded(part)
                yield seen, outside, {each.name: each for each in seen.state.agents if not each.command}


def _shown_run(session: Session, seen: Seen, outside: "Outside", agent: str) -> Shown:
    state, run = seen.state, work_id(seen.state, seen.state.agent(agent))
    answer = f"fixloop fixed {called(state)} --agent {agent}"

    return Shown(
        order=(state.urgency, state.last_at, 0),
        text=request_for(session.store, seen.found.snapshot, agent),
        facts={
            "issue": state.issue,
            "name": state.name,
            "workflow_id": state.workflow,
            "uid": run,
            "message_id": run,
            "type": f"{state.profile}.work",
            "sender": "orchestrator",
            "recipient": agent,
            "priority": "high",
            "timestamp": iso_stamp(state.last_at),
            "specialist": agent,
            "iteration": state.iteration,
            "max_iterations": state.max_iterations,
            "attached": None,
        },
        made=lambda: outside.offered(session, seen, agent),
        commands=(f"{answer} --file ANSWER", f"{answer} --blocked TEXT"),
        acknowledge=lambda: outside.begin(session, seen.found.workflow, agent),
    )
