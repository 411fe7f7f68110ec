"""`lock`, `unlock`, `write`, `heartbeat`: for outside agents of handoffs (D19, D24-D31, D34, D45, G17, G18, K10)."""

import json
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from fixloop.commands.screen import note, print_lines
from fixloop.commands.session import Issue, ProjectOption, Session, open_workflow
from fixloop.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from fixloop.profiles.handoff.records import Lock
    from fixloop.profiles.handoff.state import Handoffs
    from fixloop.protocol.event import Event

Resource = Annotated[
    str, Argument(metavar="RESOURCE", help="What to lock, such as src/auth.ts or state.json.")
]
Agent = Annotated[str, Option("--agent", metavar="NAME", help="The agent whose lock it is.")]


def lock(
    issue: Issue,
    resource: Resource,
    agent: Agent,
    skip: Annotated[bool, Option("--skip", help="Do not wait for another agent's lock.")] = False,
    extend: Annotated[bool, Option("--extend", help="Extend the lock.")] = False,
    project: ProjectOption = None,
) -> None:
    """
    Take a lock for a handoff agent, and print its token.

    Waits while another agent has it; takes over an expired one. With --skip, exit code 3 means that
    another agent has it.
    """
    if skip and extend:
        raise UsageError("--skip and --extend exclude each other; only the owner extends a lock")
    with open_workflow(issue, project) as (session, workflow):
        held = extended(session, workflow, resource, agent) if extend else None
        held = held or taken(session, workflow, resource, agent, wait=not skip)
        if held is None:
            raise Exit(ExitCode.WAITS)
        print_lines(held.token)


def unlock(
    issue: Issue,
    resource: Resource,
    agent: Agent,
    token: Annotated[
        int | None, Option(metavar="N", help="The token from `lock`, to release no later lock.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Release a lock. Exit code 1: another agent has taken it over, and nothing changed."""
    from fixloop.profiles.handoff.events import LockReleased

    with open_workflow(issue, project) as (session, workflow):
        event = LockReleased(sender=agent.lower(), resource=resource, token=token)
        if _answer(session, workflow, event) == "lost":
            note(f"the lock of {resource} expired, and another agent took it over")
            raise Exit(ExitCode.WRONG)
        note(f"{resource} is free")


def write(
    issue: Issue,
    field: Annotated[str, Argument(metavar="FIELD", help="In state.json, such as coverage.")],
    value: Annotated[str, Argument(metavar="VALUE", help="JSON, or else text.")],
    agent: Agent,
    seen: Annotated[
        int | None, Option(metavar="N", help="The count from `write` when you read the field.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """
    Write your own field in the shared state of handoff agents. Prints how often it was written.

    The agent must have the lock of state.json; the last write wins. Fields the workflow depends on are
    not written until a person has reviewed them: exit code 3.
    """
    from fixloop.profiles.handoff.events import StateWritten
    from fixloop.profiles.handoff.shared_state import MOST_OF_A_FIELD, MOST_OF_A_VALUE

    with open_workflow(issue, project) as (session, workflow):
        before = _state(session, workflow).written.get(field, 0)
        if not 0 < len(field) <= MOST_OF_A_FIELD:
            raise UsageError(f"a field's name has 1 to {MOST_OF_A_FIELD} characters, not {len(field)}")
        if len(value) > MOST_OF_A_VALUE:
            told = f"a value has at most {MOST_OF_A_VALUE} characters, not {len(value)}"
            raise UsageError(f"{told}; write it to a file and name that")
        try:
            written: Any = json.loads(value)
        except ValueError:
            written = value
        known = before if seen is None else seen
        event = StateWritten(sender=agent.lower(), field=field, value=written, seen=known)
        if _answer(session, workflow, event) == "held":
            note(f"{field} is held until a person has reviewed it: fixloop inbox")
            raise Exit(ExitCode.WAITS)
        print_lines(_state(session, workflow).written.get(field, 0))


def heartbeat(
    issue: Issue,
    agent: Annotated[str, Option(metavar="NAME", help="Who is working.")],
    project: ProjectOption = None,
) -> None:
    """
    Report that a handoff agent is still working. `status` shows the last report.

    Every two minutes is enough. It extends neither its time nor its locks. Exit code 2 means that its run is over,
    so that a background loop can end.
    """
    from fixloop.profiles.handoff.events import Heartbeat

    with open_workflow(issue, project) as (session, workflow):
        _answer(session, workflow, Heartbeat(sender=agent.lower()))


def taken(
    session: Session,
    workflow: str,
    resource: str,
    agent: str,
    *,
    wait: bool,
    pause: Callable[[float], object] = time.sleep,
) -> "Lock | None":
    """Take a lock, waiting while another agent has it and it has not expired (D29, D30); None if another agent has it
    and waiting was not requested."""
    from fixloop.profiles.handoff.events import LockAcquired
    from fixloop.profiles.handoff.routes import check_agent
    from fixloop.profiles.handoff.shared_state import wait_seconds

    event, attempt, told = LockAcquired(sender=agent.lower(), resource=resource), 1, None
    check_agent(event.sender)
    while True:
        state = _state(session, workflow)
        found, now = state.locks.get(resource), session.store.now(workflow).at
        is_open = found is None or found.agent == event.sender or found.expires < now or state.ended
        # Each request for a lock that another agent has would be an entry in the history.
        answer = _answer(session, workflow, event) if is_open else "pending"
        held = _state(session, workflow).locks.get(resource)
        if held is not None and held != told:
            _tell(resource, held)
        if answer != "pending" and held is not None:
            return held
        if not wait:
            return None
        told = held
        pause(wait_seconds(attempt))
        attempt += 1


def extended(session: Session, workflow: str, resource: str, agent: str) -> "Lock | None":
    """Extend a lock; None if it was lost and has to be taken again (G18)."""
    from fixloop.profiles.handoff.events import LockExtended

    if _answer(session, workflow, LockExtended(sender=agent.lower(), resource=resource)) == "lost":
        return None
    held = _state(session, workflow).locks.get(resource)
    if held is not None:
        _tell(resource, held)
    return held


def _state(session: Session, workflow: str) -> "Handoffs":
    found: Handoffs = session.engine_of(workflow).state(workflow)
    if found.profile != "handoff":
        raise UsageError(f"{workflow} is a {found.profile} workflow; this command is for agents of handoffs")
    return found


def _answer(session: Session, workflow: str, event: "Event") -> str:
    _state(session, workflow)
    applied = session.engine_of(workflow).apply(workflow, event, operation=uuid.uuid4().hex)
    session.draw(workflow)
    return str(getattr(applied.outcome, "answer", ""))


def _tell(resource: str, held: "Lock") -> None:
    taken_over = f", taken over from {held.forced_from}" if held.forced_from else ""
    until = f"{held.expires.astimezone():%Y-%m-%d %H:%M:%S}"
    note(f"{resource} is {held.agent}'s until {until}{taken_over}")
