"""Whether an agent that wants to stop has to go on, and how often it is told so: a decision without a clock."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from fixloop.protocol.event import Value


class Outcome(StrEnum):
    """What a check came to, for a hook."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "could not check"


class Found(NamedTuple):
    """What a check found."""

    outcome: Outcome
    text: str
    """The verdict and the failures, as the agent gets to read them; or why it could not be checked."""
    signature: str = ""
    """The same for the same failures."""


class Limits(NamedTuple):
    """When a hook lets go of an agent that does not get there."""

    alike: int
    """The same failures so often in a row."""
    blocks: int
    minutes: float
    """Since it first told the agent to go on."""


class Session(Value):
    """One session of an agent, as far as its hook knows it."""

    agent: str
    folder: str
    tree: str = ""
    """What the folder held when the session began; empty: nobody said."""
    since: datetime | None = None
    """When it was first told to go on, since checks passed last."""
    blocks: int = 0
    signature: str = ""
    alike: int = 0
    """How often in a row those failures were found."""
    let_go: str = ""
    """Why it may stop although checks fail."""
    verdict: str = ""
    """The first line of what it was told last."""


class Reply(NamedTuple):
    """What the agent and the person are told."""

    block: str = ""
    """For the agent, which has to go on; empty: it may stop."""
    message: str = ""
    """For the person."""


def answered(session: Session, found: Found, now: datetime, limits: Limits) -> tuple[Session, Reply]:
    """
    Whether the agent has to go on.

    It may stop when checks pass or could not be made, and when it was told to go on often enough: then a person has
    to look, and it stays so until checks pass.
    """
    first = found.text.partition("\n")[0]
    if found.outcome is Outcome.UNKNOWN:
        return session, Reply(message=f"fixloop could not check: {found.text}")
    if found.outcome is Outcome.PASSED:
        return Session(agent=session.agent, folder=session.folder, tree=session.tree), Reply(
            message=f"fixloop: {found.text}"
        )
    is_same = found.signature == session.signature
    since = session.since or now
    session = session.model_copy(
        update={
            "since": since,
            "signature": found.signature,
            "alike": session.alike + 1 if is_same else 1,
            "verdict": first,
        }
    )
    minutes = (now - since) / timedelta(minutes=1)
    if why := session.let_go or _enough(session, minutes, limits):
        told = (
            f"fixloop lets the agent stop although checks fail, because {why}: {first}; see `fixloop check`"
        )
        return session.model_copy(update={"let_go": why}), Reply(message=told)
    return session.model_copy(update={"blocks": session.blocks + 1}), Reply(block=found.text)


def _enough(session: Session, minutes: float, limits: Limits) -> str:
    if session.alike >= limits.alike:
        return f"the same failures were found {session.alike} times in a row"
    if session.blocks >= limits.blocks:
        return f"it was told to go on {session.blocks} times"
    return f"it has tried for {minutes:.0f} minutes" if minutes >= limits.minutes else ""
