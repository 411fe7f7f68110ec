"""Reading a history back: the messages as they were said, and the request that is open."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fixloop.errors import RefusedError
from fixloop.protocol.messages import Message
from fixloop.protocol.rendering import render_delivery
from fixloop.store.contract import Store
from fixloop.store.records import Entry

__all__ = ["Said", "open_report", "said", "what_is_asked"]

RECENT = 12
"""How many entries the open report usually lies behind the end, at most."""


class Said(NamedTuple):
    """One message with its text as it was said (A85)."""

    message: Message
    rendered: str


def said(entries: Iterable[Entry]) -> Iterator[Said]:
    """All lines of the log, in order."""
    for entry in entries:
        for recorded in entry.body.get("messages", ()):
            yield Said(Message.model_validate(recorded), str(recorded["rendered"]))


def open_report(store: Store, workflow: str, version: int) -> Said:
    """
    The last failure report, with its fix request attached.

    Raises:
        RefusedError: none was sent.
    """
    for start in (max(0, version - RECENT), 0):
        reports = [line for line in said(store.history(workflow, start)) if _is_report(line.message)]
        if reports:
            return reports[-1]
    raise RefusedError(f"workflow {workflow} has sent no failure report; there is nothing to fix yet")


def what_is_asked(store: Store, workflow: str, version: int) -> str:
    """
    The open request as its reader gets it; the escalation where the first failure led straight to one.

    Raises:
        RefusedError: neither was sent.
    """
    try:
        return render_delivery(open_report(store, workflow, version).message)
    except RefusedError:
        escalations = [
            line for line in said(store.history(workflow)) if line.message.body.kind == "escalation"
        ]
        if not escalations:
            raise
        return escalations[-1].rendered


def _is_report(message: Message) -> bool:
    return message.body.kind == "failure-report"
