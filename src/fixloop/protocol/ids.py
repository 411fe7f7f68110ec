"""The visible ids of messages and tickets (K3, K4, G4, G6), all derived: a replay gives the same."""

import hashlib
import uuid
from datetime import UTC, datetime

__all__ = [
    "completion_id",
    "detection_id",
    "message_uid",
    "report_id",
    "request_id",
    "result_id",
    "stamped_id",
    "success_id",
    "ticket_id",
    "trigger_id",
]


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


def message_uid(workflow: str, sequence: int) -> str:
    """A UUID in version 4's form, derived from the workflow and the message's sequence number (K3)."""
    digest = hashlib.sha256(f"{workflow}/{sequence}".encode()).digest()[:16]
    return str(uuid.UUID(bytes=digest, version=4))


def ticket_id(workflow: str, specialist: str, step: str, iteration: int, attempt: int, epoch: int) -> str:
    """
    The ticket's and the Celery task's id: `{workflow}.{specialist}.{step}.{iteration}.{attempt}`.

    `epoch` counts what makes the same step run anew (decisions, confirmations on a new tree).
    """
    plain = f"{workflow}.{specialist}.{step}.{iteration}.{attempt}"
    return f"{plain}.e{epoch}" if epoch else plain
