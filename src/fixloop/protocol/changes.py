"""Status changes as the main agent is told of them: a letter for each, with the commit that made it (A50, A54, A55).

A change is no line of the log (K39) and asks for nothing; its letter carries ids only, and the history has the rest.
"""

from typing import Final, NamedTuple

from fixloop.protocol.durations import id_stamp, stamp
from fixloop.protocol.ids import uid_of
from fixloop.protocol.outcome import Transition

STATUS_CHANGE: Final = "status-change"
"""The kind of such a letter."""


class About(NamedTuple):
    """What a letter says of a change."""

    message_id: str
    uid: str
    type: str = STATUS_CHANGE


def change_letter(workflow: str, issue: int, change: Transition) -> About:
    return About(f"STATUS-{issue}-{change.specialist}-{id_stamp(change.at)}", change_uid(workflow, change))


def change_uid(workflow: str, change: Transition) -> str:
    """By which its letter and its place in the history find each other."""
    moment = f"{change.at.timestamp():.6f}"
    return uid_of("/".join((workflow, change.specialist, change.before, change.after, moment)))


def change_line(issue: int, change: Transition) -> str:
    """All of it on one line (A53)."""
    what = f"{change.before} → {change.after} by the {change.role}"
    return f"#{issue} {change.specialist}: {what} at {stamp(change.at)} UTC: {change.reason}"
