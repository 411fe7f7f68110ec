"""Visible ids of messages and tickets (K3, K4, G4, G6), all derived, so that a replay gives the same ones."""

import hashlib
from datetime import UTC, datetime
from typing import Any


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
    """`{prefix}-{issue}-{subject}-{ts}`; further ones in the same second end in `-2`, `-3` … (G4)."""
    plain = f"{prefix}-{issue}-{subject}-{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    number, candidate = 1, plain
    while candidate in taken:
        number += 1
        candidate = f"{plain}-{number}"
    return candidate


def message_uid(workflow: str, sequence: int) -> str:
    """A UUID in the form of version 4, derived from the workflow and the message's sequence number (K3)."""
    return uid_of(f"{workflow}/{sequence}")


def uid_of(text: str) -> str:
    """A UUID in the form of version 4, the same for the same text."""
    digits = hashlib.sha256(text.encode()).hexdigest()
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def ticket_id(workflow: str, specialist: str, step: str, iteration: int, attempt: int, epoch: int) -> str:
    """The id of the ticket and of its Celery task; `epoch` counts the reasons to repeat a step (decisions,
    confirmations on a new tree)."""
    plain = f"{workflow}.{specialist}.{step}.{iteration}.{attempt}"
    return f"{plain}.e{epoch}" if epoch else plain


def called(state: Any) -> str:
    """The ISSUE argument that names this workflow: a number means the issue's latest workflow, so a child workflow is
    named by its id."""
    return str(state.workflow if getattr(state, "parent", "") else state.issue)
