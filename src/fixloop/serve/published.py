"""The events of a workflow for webhooks, taken from its history, as CloudEvents 1.0.

An id consists of the workflow and the number of the history's entry, so that a receiver can recognise a repetition.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, Final, NamedTuple

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from fixloop.store.records import Entry

PREFIX: Final = "dev.fixloop."
"""A type is `dev.fixloop.KIND.v1`."""
MOST_NAMED: Final = 50
"""How many failures an event names; it has their total number."""
LONGEST_TEXT: Final = 2000
_ENDED_BADLY: Final = ("aborted", "cancelled")


class Published(NamedTuple):
    """One event."""

    id: str
    type: str
    at: str
    workflow: str
    data: Mapping[str, Any]

    def body(self, source: str) -> bytes:
        """The event as JSON; `source` is the server's address."""
        attributes = {
            "id": self.id,
            "type": self.type,
            "source": source,
            "subject": self.workflow,
            "time": datetime.fromisoformat(self.at),
            "datacontenttype": "application/json",
        }
        return JSONFormat().write(CloudEvent(attributes, dict(self.data)))


def published(workflow: str, fields: Mapping[str, str], entry: Entry) -> Iterator[Published]:
    """The events of one history entry; `fields` are the workflow's plain fields."""
    event: Mapping[str, Any] = entry.body.get("event", {})
    told: list[tuple[str, Mapping[str, Any]]] = [("workflow.started", {})] if entry.seq == 1 else []
    messages = map(_of_message, entry.body.get("messages", ()))
    for number, (kind, facts) in enumerate(chain(told, _of_event(event), *messages)):
        yield _published(f"{workflow}.{entry.seq}.{number}", kind, entry.body["at"], workflow, fields, facts)


def ended(workflow: str, fields: Mapping[str, str], last: Entry) -> Published:
    """The event of a workflow's end; `last` is the last known entry."""
    outcome = fields.get("outcome", "")
    kind = "workflow.aborted" if outcome in _ENDED_BADLY else "workflow.completed"
    facts = {"outcome": outcome, "verdict": fields.get("verdict")}
    return _published(f"{workflow}.end", kind, last.body["at"], workflow, fields, facts)


def _published(
    id: str, kind: str, at: str, workflow: str, fields: Mapping[str, str], facts: Mapping[str, Any]
) -> Published:
    project, issue, _ = workflow.split("-")
    common = {"workflow_id": workflow, "issue": int(issue), "name": fields.get("name", "")}
    return Published(id, f"{PREFIX}{kind}.v1", at, workflow, {**common, "project": project, **facts})


def _of_event(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    match event.get("kind"):
        case "run-finished":
            failures = event.get("failures", ())
            facts = {name: event.get(name) for name in ("specialist", "iteration", "outcome", "tree")}
            if event.get("outcome") != "passed":
                named = [_cut(each.get("name")) for each in failures[:MOST_NAMED]]
                yield "specialist.failed", facts | {"failures": named, "count": len(failures)}
            elif not event.get("findings"):
                yield "specialist.passed", facts
        case "fix-completed":
            done = event.get("completion", {})
            facts = {name: _cut(done.get(name)) for name in ("iteration", "by", "summary", "files", "tip")}
            yield "fix.submitted", {"specialist": event.get("specialist"), **facts}
        case "blocker-signalled":
            yield "fix.declined", {name: _cut(event.get(name)) for name in ("by", "declined", "text")}
        case "decision-made" | "answered":
            word = event.get("decision") or event.get("answer")
            reason = event.get("reason") or event.get("text") or ""
            facts = {"escalation": event.get("escalation") or event.get("question") or ""}
            facts |= {name: event[name] for name in ("until", "owner") if event.get(name)}
            facts |= {"decision": _cut(word), "by": event.get("by", ""), "reason": _cut(reason)}
            yield "escalation.decided", facts


def _of_message(message: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    body = message.get("body", {})
    named = {name: message.get(name) for name in ("specialist", "iteration", "max_iterations")}
    match body.get("kind"):
        case "failure-report":
            yield "fix.requested", named | {"message": message["message_id"]}
        case "escalation" | "cycle.escalation":
            reason, held = body.get("reason"), body.get("findings", ())
            facts = named | {
                "escalation": body.get("escalation_id") or message["message_id"],
                "reason": _cut(reason),
                "to": message.get("recipient"),
            }
            yield "escalation.opened", facts
            if held:
                yield "integrity.held", facts | {"rules": sorted({each["rule"] for each in held})}


def _cut(value: Any) -> Any:
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
