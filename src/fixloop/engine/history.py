"""Reads a history: its messages in order, and the open request."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from fixloop.errors import RefusedError, UsageError
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import Message
from fixloop.protocol.rendering import fill, join, render_delivery, render_whole
from fixloop.protocol.state import State
from fixloop.store.contract import Store
from fixloop.store.records import Entry

_FAILURES: Final = TypeAdapter(list[Failure])
RECENT = 12
"""How many entries to read from the end first; the open report is usually among them."""


class Said(NamedTuple):
    """One message of the log."""

    message: Message
    text: str = ""
    """The text the history keeps; empty if it is rendered from the message (docs/decisions/0005)."""

    @property
    def rendered(self) -> str:
        """The message's text and, after a rule, the text of its attachment (A85, K9)."""
        return self.text or render_whole(self.message)


def said(entries: Iterable[Entry]) -> Iterator[Said]:
    """All messages of the log, in order."""
    for entry in entries:
        for kept in entry.body.get("messages", ()):
            # Histories stored the texts until version 1 of `decide`.
            parts = [part["rendered"] for part in (kept, kept.get("attached") or {}) if "rendered" in part]
            yield Said(Message.model_validate(kept), join(parts))


def recorded(message: Message) -> dict[str, Any]:
    """A message in the form the history keeps: all facts that its text is rendered from (A85)."""
    kept = message.model_dump(mode="json", exclude_defaults=True)
    kept["body"]["kind"] = message.body.kind
    if message.attached is not None:
        kept["attached"]["body"]["kind"] = message.attached.body.kind
    return kept


def open_report(store: Store, workflow: str, version: int) -> Said:
    """The last failure report with its fix request attached, even if the two are separate messages (K9)."""
    for start in (max(0, version - RECENT), 0):
        lines = list(said(store.history(workflow, start)))
        for index in reversed(range(len(lines))):
            report = lines[index]
            if report.message.body.kind != "failure-report":
                continue
            after = (line.message for line in lines[index + 1 :])
            request = next((message for message in after if message.body.kind == "fix-request"), None)
            if report.message.attached is not None or request is None:
                return report
            return report._replace(message=report.message.model_copy(update={"attached": request}))
    raise RefusedError(f"workflow {workflow} has sent no failure report; there is nothing to fix yet")


def what_is_asked(store: Store, workflow: str, version: int) -> str:
    """The open request, rendered for its reader; the escalation if the first failure led straight to one."""
    try:
        return render_delivery(open_report(store, workflow, version).message)
    except RefusedError:
        escalated = [line for line in said(store.history(workflow)) if line.message.body.kind == "escalation"]
        if not escalated:
            raise
        return escalated[-1].rendered


def all_failures(store: Store, state: State) -> bytes:
    """Every failure of the last failed run in full, as a JSON list in the order of `F1`, `F2`. A failure that is not in
    the run's report, such as a test that vanished, has only what the history keeps."""
    kept = store.get_artifact(state.workflow, state.failures_artifact) if state.failures_artifact else None
    found = _FAILURES.validate_json(kept or b"[]")
    last = state.active.last_run
    for ref in last.failures[len(found) :] if last is not None else ():
        found.append(Failure(**ref.model_dump(exclude={"headline"}), message=ref.headline))
    return _FAILURES.dump_json(found, exclude_defaults=True)


def shown_failure(store: Store, state: State, number: str) -> str:
    """Everything known about one failure of the last failed run; `number` is `F12` or `12`."""
    found = _FAILURES.validate_json(all_failures(store, state))
    digits = number.upper().removeprefix("F")
    if not digits.isdecimal() or not 1 <= int(digits) <= len(found):
        told = f"{number[:40]!r} is no failure of issue {state.issue}; there are F1 to F{len(found)}"
        raise UsageError(told)
    return fill("failure", failure=found[int(digits) - 1], number=f"F{int(digits)}")
