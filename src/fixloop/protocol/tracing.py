"""The identity of a workflow's trace and its spans, by which all that work for it join it (W3C Trace Context).

It follows from what the work is, so that who runs it and who tells of it later have the same without asking anybody.
"""

from hashlib import sha256
from typing import Final

from fixloop.protocol.ticket import Ticket

VARIABLE: Final = "TRACEPARENT"


def trace_id(workflow: str) -> int:
    """128 bits."""
    return int.from_bytes(sha256(f"trace {workflow}".encode()).digest()[:16])


def span_id(workflow: str, *work: str | int) -> int:
    """64 bits; `work` is what tells a span from all others of the workflow."""
    named = " ".join(map(str, (workflow, *work)))
    return int.from_bytes(sha256(f"span {named}".encode()).digest()[:8])


def work_span(ticket: Ticket) -> int:
    """The span of a step that runs somebody's command."""
    return span_id(ticket.workflow, ticket.step, ticket.specialist, ticket.iteration, ticket.attempt)


def traceparent(ticket: Ticket) -> str:
    """What a command is given as TRACEPARENT."""
    return f"00-{trace_id(ticket.workflow):032x}-{work_span(ticket):016x}-01"
