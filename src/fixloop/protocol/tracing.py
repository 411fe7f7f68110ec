"""The ids of a workflow's trace and its spans, which all work for the workflow shares (W3C Trace Context).

They are derived from the work, so that its runner and later reports have the same ids without communicating.
"""

from hashlib import sha256
from typing import Final

from fixloop.protocol.ticket import Ticket

VARIABLE: Final = "TRACEPARENT"


def trace_id(workflow: str) -> int:
    """The trace id, 128 bits."""
    return int.from_bytes(sha256(f"trace {workflow}".encode()).digest()[:16])


def span_id(workflow: str, *work: str | int) -> int:
    """The span id, 64 bits; `work` distinguishes the span from the workflow's others."""
    named = " ".join(map(str, (workflow, *work)))
    return int.from_bytes(sha256(f"span {named}".encode()).digest()[:8])


def traceparent(ticket: Ticket) -> str:
    """The TRACEPARENT variable of a command, which names the span of its step."""
    span = span_id(ticket.workflow, ticket.step, ticket.specialist, ticket.iteration, ticket.attempt)
    return f"00-{trace_id(ticket.workflow):032x}-{span:016x}-01"
