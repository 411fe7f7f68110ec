"""What people and agents outside say through commands, and how each profile takes it in: one record of functions."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fixloop.commands.session import Session
from fixloop.profiles.profile import AnyEvent

__all__ = ["Answer", "Door", "Work"]


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


class Work(NamedTuple):
    """What somebody outside hands in."""

    agent: str = ""
    """Whose work it is; empty: of the only one that is asked for anything."""
    file: Path | None = None
    """The answer, `-` for standard input."""
    here: bool = False
    rev: str | None = None
    blocked: str | None = None
    """Why it cannot be done."""


class Door(NamedTuple):
    """One profile's side of the commands that bring something; each raises UsageError for what cannot be."""

    cancelled: Callable[[str], AnyEvent]
    """Given the reason."""
    paused: Callable[[str], AnyEvent]
    continued: Callable[[], AnyEvent]
    decide: Callable[[Session, str, Answer], None]
    """Takes a workflow's id."""
    ack: Callable[[Session, str, str], None]
    """Takes a workflow's id and an agent, who may be left open."""
    fixed: Callable[[Session, str, Work], None]
    show: Callable[[Session, str], None]
    """Tells a person on a terminal where somebody outside is to work."""
