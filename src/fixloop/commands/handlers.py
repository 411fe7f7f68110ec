"""What people and agents outside say through commands, and how each profile takes it in."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from fixloop.commands.session import Session
from fixloop.errors import UsageError
from fixloop.profile_table import loaded, registered_in
from fixloop.protocol.declining import Kind
from fixloop.protocol.event import Event


class Answer(NamedTuple):
    """A person's answer to an escalation, as it was written."""

    word: str
    """A decision, one of the options, or free text."""
    text: str = ""
    """The reason or the guidance."""
    iterations: int | None = None
    minutes: float | None = None
    escalation: str = ""
    """Its id; empty: the only open one."""
    until: str = ""
    """skip: the last day that it is good for, `YYYY-MM-DD`."""
    owner: str = ""
    """skip: who looks after what was skipped."""


class Work(NamedTuple):
    """What somebody outside hands in."""

    agent: str = ""
    """Whose work it is; empty: of the only one that is asked for anything."""
    file: Path | None = None
    """The answer, `-` for standard input."""
    here: bool = False
    merge: bool = False
    """With `here`: onto what the fixes so far changed, instead of exactly the checkout."""
    rev: str | None = None
    blocked: str | None = None
    """Why it cannot be done."""
    declined: Kind | None = None
    """How it is declined, where it is."""
    patch: bytes | None = None
    """A unified diff onto the work so far, from somebody who has no checkout here."""
    revision: str = ""
    """Likewise a branch, tag or commit of the repository that was handed in, which builds on the work so far."""
    summary: str = ""
    """What was done, from somebody who writes no answer."""


class Said(NamedTuple):
    """What somebody wants an agent to be told."""

    to: str
    text: str
    """What happened; of handoffs what is passed on, JSON or a text."""
    agent: str = ""
    """Of handoffs: who passes it on."""
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
    """What a profile does with what people and agents bring; each function raises UsageError for what it refuses."""

    cancelled: Callable[[str], Event]
    """Given the reason."""
    paused: Callable[[str], Event]
    continued: Callable[[], Event]
    pushed: Callable[[str], Event]
    """Given the branch that a person has pushed."""
    decide: Callable[[Session, str, Answer], None]
    ack: Callable[[Session, str, str, str], None]
    """Takes a workflow's id, an agent, who may be left open, and the handoff that is accepted, likewise."""
    fixed: Callable[[Session, str, Work], None]
    show: Callable[[Session, str], None]
    """Tells a person on a terminal where somebody outside is to work."""
    request: Callable[[Session, str], str] = _refusing(
        "only the fixes of validation workflows are taken from elsewhere; other agents have a mailbox"
    )
    """Takes the open request for an agent who has no directory here; returns what is asked."""
    send: Callable[[Session, str, Said], None] = _refusing(
        "a validation loop takes no messages; its main agent reads the request and nothing else"
    )
    failure: Callable[[Session, str, str], str] = _refusing(
        "--show goes with validation workflows; only these have failures"
    )
    """The text of one failure, given its number."""
    reject: Callable[[Session, str, str, str, str], None] = _refusing(
        "only handoffs can be rejected; other agents say with `fixed --blocked` what stands in the way"
    )
    """Takes a workflow's id, an agent, a handoff, both of which may be left open, and the reason."""


def handlers_of(session: Session, workflow: str) -> CommandHandlers:
    """How a workflow takes in what commands bring."""
    handlers: CommandHandlers = loaded(registered_in(session.stored(workflow).snapshot).handlers)
    return handlers
