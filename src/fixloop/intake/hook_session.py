"""Decides, without a clock, whether an agent that wants to stop has to continue, and how often it is told so."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from fixloop.protocol.event import Value


class Outcome(StrEnum):
    """The result of a check, for a hook."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "could not check"


class Found(NamedTuple):
    """What a check found."""

    outcome: Outcome
    text: str
    """The verdict and the failures in the form the agent reads; or why the check could not run."""
    signature: str = ""
    """Identical for identical failures."""


class Limits(NamedTuple):
    """When a hook lets an agent stop that does not fix its failures."""

    alike: int
    """The same failures this often in a row."""
    blocks: int
    minutes: float
    """Since the agent was first told to continue."""


class Session(Value):
    """What the hook knows about one session of an agent."""

    agent: str
    folder: str
    tree: str = ""
    """The folder's tree when the session started; empty: unknown."""
    since: datetime | None = None
    """When it was first told to continue after checks last passed."""
    blocks: int = 0
    signature: str = ""
    alike: int = 0
    """How often in a row the same failures were found."""
    let_go: str = ""
    """Why it may stop although checks fail."""
    verdict: str = ""
    """The first line of the last message to it."""


class Reply(NamedTuple):
    """The messages to the agent and the person."""

    block: str = ""
    """For the agent, which has to continue; empty: it may stop."""
    message: str = ""
    """For the person."""


def answered(session: Session, found: Found, now: datetime, limits: Limits) -> tuple[Session, Reply]:
    """
    Decide whether the agent has to continue.

    It may stop when checks pass or could not run, and when it was told to continue often enough: then a person has to
    look at it, until checks pass again.
    """
    first = found.text.partition("\n")[0]
    if found.outcome is Outcome.UNKNOWN:
        return session, Reply(message=f"fixloop could not check: {found.text}")
    if found.outcome is Outcome.PASSED:
        began = Session(agent=session.agent, folder=session.folder, tree=session.tree)
        return began, Reply(message=f"fixloop: {found.text}")
    alike = session.alike + 1 if found.signature == session.signature else 1
    since = session.since or now
    session = session.with_(since=since, signature=found.signature, alike=alike, verdict=first)
    if why := session.let_go or _enough(session, (now - since) / timedelta(minutes=1), limits):
        told = f"fixloop lets the agent stop although checks fail, because {why}: {first}"
        return session.with_(let_go=why), Reply(message=f"{told}; see `fixloop check`")
    return session.with_(blocks=session.blocks + 1), Reply(block=found.text)


def _enough(session: Session, minutes: float, limits: Limits) -> str:
    if session.alike >= limits.alike:
        return f"the same failures were found {session.alike} times in a row"
    if session.blocks >= limits.blocks:
        return f"it was told to go on {session.blocks} times"
    return f"it has tried for {minutes:.0f} minutes" if minutes >= limits.minutes else ""
