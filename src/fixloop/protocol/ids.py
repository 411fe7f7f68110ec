"""The visible ids of messages and tickets (K3, K4, G4, G6), all derived: a replay gives the same."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES


def detection_id(issue: int, specialist: str) -> str:
    return f"DETECT-{issue}-{specialist}-1"


def report_id(issue: int, specialist: str, iteration: int) -> str:
    return f"VFR-{issue}-{specialist}-{iteration}"


def request_id(issue: int, iteration: int) -> str:
    return f"FIXREQ-{issue}-{iteration}"


def completion_id(issue: int, iteration: int) -> str:
    return f"FIXDONE-{issue}-{iteration}"


def trigger_id(issue: int, specialist: str, iteration: int) -> str:
    return f"REVAL-{issue}-{specialist}-{iteration}"


def result_id(issue: int, specialist: str, iteration: int) -> str:
    return f"REVALRES-{issue}-{specialist}-{iteration}"


def success_id(issue: int, specialist: str, iteration: int) -> str:
    return f"SUCCESS-{issue}-{specialist}-{iteration}"


def stamped_id(prefix: str, issue: int, subject: str, at: datetime, taken: tuple[str, ...]) -> str:
    """`{prefix}-{issue}-{subject}-{ts}`; a second one in the same second ends in `-2`, `-3` … (G4)."""
    plain = f"{prefix}-{issue}-{subject}-{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    number, candidate = 1, plain
    while candidate in taken:
        number += 1
        candidate = f"{plain}-{number}"
    return candidate


class MessageId(NamedTuple):
    """What a visible id says."""

    prefix: str
    issue: int
    subject: str
    """A specialist, an operation, an error type or an agent; empty where the id has none (A27, A31)."""
    iteration: int | None
    """None where the id ends in a time."""
    stamp: str
    """`20260301T103001Z`, with `-2` where it is the second of its second; empty where the id has none."""


_ID: Final = re.compile(
    r"(?P<prefix>[A-Z]+)-(?P<issue>-?[0-9]+)(?:-(?P<subject>.+?))?"
    r"-(?:(?P<stamp>[0-9]{8}T[0-9]{6}Z(?:-[0-9]+)?)|(?P<iteration>[0-9]+))",
    re.DOTALL,
)
_OF_A_SPECIALIST: Final = frozenset({"DETECT", "VFR", "REVAL", "REVALRES", "SUCCESS", "ESC"})
_LONGEST: Final = 300


def read_id(message_id: str) -> MessageId:
    """
    The parts of `message_id`: read from the right, because specialists' names contain hyphens (K3).

    Raises:
        UsageError: it is no id, or names no specialist where its type does.
    """
    found = _ID.fullmatch(message_id) if len(message_id) <= _LONGEST else None
    if found is None:
        raise UsageError(f"{message_id[:80]!r} is no message id such as VFR-47-test-runner-1")
    subject = found["subject"] or ""
    if found["prefix"] in _OF_A_SPECIALIST and subject not in NAMES:
        raise UsageError(f"{message_id!r} names no specialist; the six are {', '.join(NAMES)}")
    iteration = int(found["iteration"]) if found["iteration"] else None
    return MessageId(found["prefix"], int(found["issue"]), subject, iteration, found["stamp"] or "")


def message_uid(workflow: str, sequence: int) -> str:
    """A UUID in version 4's form, derived from the workflow and the message's sequence number (K3)."""
    return uid_of(f"{workflow}/{sequence}")


def uid_of(text: str) -> str:
    """A UUID in version 4's form, the same for the same text."""
    digits = hashlib.sha256(text.encode()).hexdigest()
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def ticket_id(workflow: str, specialist: str, step: str, iteration: int, attempt: int, epoch: int) -> str:
    """
    The ticket's and the Celery task's id: `{workflow}.{specialist}.{step}.{iteration}.{attempt}`.

    `epoch` counts what makes the same step run anew (decisions, confirmations on a new tree).
    """
    plain = f"{workflow}.{specialist}.{step}.{iteration}.{attempt}"
    return f"{plain}.e{epoch}" if epoch else plain


def called(state: Any) -> str:
    """
    What a command's ISSUE has to be for this workflow.

    Its number means the issue's latest workflow. One that works for another has that number, too, and is named by its
    id.
    """
    return str(state.workflow if getattr(state, "parent", "") else state.issue)
