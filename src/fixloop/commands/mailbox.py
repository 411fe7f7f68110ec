"""The declared agent's side: `mailbox` reads and acknowledges its messages (G1)."""

import sys
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from typer import Argument, Exit, Option

from fixloop.commands import letters
from fixloop.commands.lookup import NothingYet, prefix_of
from fixloop.commands.screen import note, print_json, print_text, say
from fixloop.commands.session import AsJson, OnlyProject, Session, here, open_session
from fixloop.configuration.document import read_document
from fixloop.configuration.place import nearest, shown
from fixloop.errors import ExitCode, InfrastructureError, UsageError
from fixloop.outside.mail import Mail, arrived, changed, known_agents, waiting
from fixloop.profile_table import names, registered

if TYPE_CHECKING:
    from fixloop.outside.mailbox import Letter, Mailboxes, Received

POLL_SECONDS: Final = 0.25
LOOK_SECONDS: Final = 5.0
"""How often a waiting agent also asks the state: a lost letter arrives at most this late."""
LOOKS_IN: Final = 20
"""The share of its time for that, as a divisor: with many workflows a look takes long."""
PATIENCE_SECONDS: Final = 30.0
"""A Redis with an append-only file is back within seconds; a waiting agent would only start again."""
RULE: Final = "\n---\n\n"


def mailbox(
    agent: Annotated[
        str,
        Argument(metavar="AGENT", help="A name declared in fixloop.toml, or an agent of a cycle or handoff."),
    ],
    wait: Annotated[bool, Option("--wait", help="Wait until there is a message.")] = False,
    minutes: Annotated[float | None, Option(min=0.01, help="--wait: how long at most (30).")] = None,
    json: AsJson = False,
    project: OnlyProject = None,
) -> None:
    """
    Read and acknowledge the messages of a declared outside agent.

    Shows failure reports with their fix requests, notices, reminders, successes and escalations to the main
    orchestrator; in a cycle or handoff, the requests to this agent. The most urgent come first, then status
    changes of its workflows since it last read.
    Exit code 1: no message. Requests for work are shown again until `fixloop fixed` answers them.
    """
    if minutes is not None and not wait:
        raise UsageError("--minutes needs --wait")
    declared: set[str] = set()
    if project is None:
        written = read_document(here()).table
        declared |= set(written["agent"]) if isinstance(written.get("agent"), dict) else set()
        for profile in map(registered, names()):
            section = written.get(profile.name) if profile.agents else None
            if isinstance(section, dict):
                further = section.get("agent")
                declared |= {*profile.agents, *map(str.lower, further if isinstance(further, dict) else ())}
    try:
        with open_session(create=wait and not declared.isdisjoint((agent, agent.lower()))) as session:
            place = prefix_of(project).removesuffix("-") or session.project.hash8
            if agent not in declared:
                known = declared | known_agents(session.store, place) | letters.agents_outside(session, place)
                agent = _known(agent, known)
            read = _read(session, place, agent, (30.0 if minutes is None else minutes) * 60 * wait, json=json)
    except NothingYet as nothing:
        agent = _known(agent, declared)
        say(str(nothing))
        read = False
    if not read:
        raise Exit(ExitCode.WRONG)


def _known(agent: str, known: set[str]) -> str:
    """The agent somebody means; for those of cycles and handoffs, case does not matter."""
    for name in (agent, agent.lower()):
        if name in known:
            return name
    near, there = nearest(agent, known), f"known agents: {', '.join(sorted(known))}"
    advice = there if known else "declare it with [agent.NAME] in fixloop.toml"
    if near:
        advice = f"did you mean {near!r}?" + (f" ({there})" if len(known) > 1 else "")
    raise UsageError(f"no agent {shown(agent)} here; {advice}")


def _read(session: Session, project: str, agent: str, seconds: float, *, json: bool) -> bool:
    from fixloop.outside.mailbox import Mailboxes

    with closing(Mailboxes(session.urls.broker)) as mailboxes:
        told: list[Received] = []
        found = _awaited(session, mailboxes, project, agent, seconds, told)
        # Alone they need no action: they wait for the next message.
        changes = changed(session.store, told) if found else []
        if json:
            documents = [each.document() for each in found]
            shown_changes = [letters.change_document(change) for change in changes]
            print_json(
                {"agent": agent, "project": project, "messages": documents, "status_changes": shown_changes}
            )
        elif found:
            print_text(RULE.join([*(each.text for each in found), *letters.change_text(changes)]))
        else:
            say(f"no message for {agent}")
        # A message that was not printed was not read.
        sys.stdout.flush()
        for letter in told if found else ():
            letter.acknowledge()
        for each in found:
            each.acknowledge()
            then = each.then() if not json else ""
            if then:
                note(then)
    return bool(found)


def _awaited(
    session: Session,
    mailboxes: "Mailboxes",
    project: str,
    agent: str,
    seconds: float,
    changes: "list[Received]",
) -> list[letters.Shown]:
    """What there is to read, or what comes first within `seconds`; `changes` gets the letters about status changes."""
    take = partial(arrived, session.store, mailboxes, project, agent, changes=changes)
    started = time.monotonic()
    answered: float | None = None
    looked, pause = 0.0, 0.0
    while True:
        now = time.monotonic()
        mails: list[Mail] = []
        runs: list[letters.Shown] = []
        came: list[Letter] = []
        try:
            if now >= looked + pause:
                mails = waiting(session.store, project, agent)
                runs = letters.runs_asked(session, project, agent)
                looked = time.monotonic()
                pause = max(LOOK_SECONDS, LOOKS_IN * (looked - now))
            try:
                mails = take(mails, came)
            except InfrastructureError as error:
                if not mails and not runs:
                    raise
                say(f"{error}; showing what the state has")
            if came and not runs:
                runs = letters.runs_asked(session, project, agent)
            answered = now
        except InfrastructureError:
            if answered is None or now - answered > PATIENCE_SECONDS:
                raise
        found = [*runs, *(letters.shown_mail(session, agent, mail) for mail in mails)]
        if found or now - started >= seconds:
            return sorted(found, key=lambda each: each.order)
        time.sleep(POLL_SECONDS)
