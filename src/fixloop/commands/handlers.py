"""What people and outside agents say through commands, and how each profile handles it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from fixloop.commands.session import Session
from fixloop.errors import UsageError
from fixloop.profile_table import loaded, registered_in
from fixloop.protocol.declining import Kind
from fixloop.protocol.event import Event


class Answer(NamedTuple):
    """A person's answer to an escalation, as written."""

    word: str
    """A decision, one of the options, or free text."""
    text: str = ""
    """The reason or the guidance."""
    iterations: int | None = None
    minutes: float | None = None
    escalation: str = ""
    """Its id; empty: the only open one."""
    until: str = ""
    """skip: the last day it is valid, `YYYY-MM-DD`."""
    owner: str = ""
    """skip: who is responsible for what was skipped."""


class Work(NamedTuple):
    """What somebody outside submits."""

    agent: str = ""
    """Whose work it is; empty: the only agent with an open request."""
    file: Path | None = None
    """The answer, `-` for standard input."""
    here: bool = False
    merge: bool = False
    """With `here`: merged onto the fixes so far, instead of exactly the checkout."""
    rev: str | None = None
    blocked: str | None = None
    """Why it cannot be done."""
    declined: Kind | None = None
    """How it is declined, if it is."""
    patch: bytes | None = None
    """A unified diff onto the work so far, from somebody without a checkout here."""
    revision: str = ""
    """Likewise a branch, tag or commit of the submitted repository, which builds on the work so far."""
    summary: str = ""
    """What was done, if there is no written answer."""


class Said(NamedTuple):
    """A message to an agent."""

    to: str
    text: str
    """What happened; handoff: what is passed on, JSON or text."""
    agent: str = ""
    """handoff: who passes it on."""
    kind: str = ""
    actions: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    about: str = ""
    """The blocker it is about."""


def _refusing(sentence: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise UsageError(sentence)

    return refuse


class CommandHandlers(NamedTuple):
    """How a profile handles what people and agents submit; each function raises UsageError for what it refuses."""

    cancelled: Callable[[str], Event]
    """Takes the reason."""
    paused: Callable[[str], Event]
    continued: Callable[[], Event]
    pushed: Callable[[str], Event]
    """Takes the branch a person has pushed."""
    decide: Callable[[Session, str, Answer], None]
    ack: Callable[[Session, str, str, str], None]
    """Takes a workflow's id, an agent and the handoff to accept; the last two may be empty."""
    fixed: Callable[[Session, str, Work], None]
    show: Callable[[Session, str], None]
    """Tells a person on a terminal where an outside agent should work."""
    request: Callable[[Session, str], str] = _refusing(
        "only validation workflows accept fixes from elsewhere; other agents have a mailbox"
    )
    """Takes the open request for an agent without a directory here; returns its text."""
    send: Callable[[Session, str, Said], None] = _refusing(
        "a validation workflow takes no messages; its main agent reads only the request"
    )
    failure: Callable[[Session, str, str], str] = _refusing(
        "--show needs a validation workflow; only these have failures"
    )
    """The text of one failure, given its number."""
    reject: Callable[[Session, str, str, str, str], None] = _refusing(
        "only handoffs can be rejected; other agents use `fixed --blocked` to say what is in the way"
    )
    """Takes a workflow's id, an agent and a handoff, which may both be empty, and the reason."""


def handlers_of(session: Session, workflow: str) -> CommandHandlers:
    """How a workflow handles what commands submit."""
    handlers: CommandHandlers = loaded(registered_in(session.stored(workflow).snapshot).handlers)
    return handlers
