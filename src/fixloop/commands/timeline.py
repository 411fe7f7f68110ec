"""What happened in a workflow, in order. Monitoring ticks are not stored: they are derived (K39)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.commands.screen import short
from fixloop.engine.history import said
from fixloop.protocol.checks import Evidence
from fixloop.protocol.durations import iso_stamp, minutes_seconds, stamp
from fixloop.protocol.event import Moment
from fixloop.protocol.log import title
from fixloop.protocol.monitoring import Look, Tick, ticks
from fixloop.protocol.specialists import Status, Transition
from fixloop.store.records import Entry

_NOTES: Final = {
    "fix-acknowledged": "receipt",
    "receipt-given": "receipt",
    "message-stored": "delivery",
    "delivery-failed": "delivery",
    "decision-made": "decision",
    "deadline-reached": "timer",
    "event-refused": "refusal",
    "paused": "pause",
    "continued": "pause",
}
_TOLD: Final = ("name", "step", "specialist", "decision", "outcome", "error")
"""The fields shown of an event, if present."""


class Happening(NamedTuple):
    """One thing that happened."""

    at: datetime
    kind: str
    """`message`, or without a line: `status`, `event`, `evidence`, `receipt`, `delivery`, `decision`, `timer`,
    `refusal`, `pause`, `note`, `tick`."""
    text: str
    entry: int
    message: Any = None
    """For `message`: in the profile's form."""
    change: Transition | None = None
    """For `status`, in a validation workflow."""

    def __str__(self) -> str:
        return f"{stamp(self.at)}  {self.kind:8}  {short(self.text, 300)}"

    def document(self) -> dict[str, Any]:
        """An entry of `log --all --json`."""
        return {
            "timestamp": iso_stamp(self.at),
            "kind": self.kind,
            "text": self.text,
            "message_id": self.message.message_id if self.message is not None else None,
            "entry": self.entry,
        }


def log_entry(
    line: Any,
    number: object,
    kind: str,
    rendered: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> dict[str, Any]:
    """An entry of `log --json` for a message, with its whole text as `rendered`."""
    return {
        "entry_id": number,
        "timestamp": iso_stamp(line.at),
        "sender": line.sender,
        "recipient": line.recipient,
        "message_type": kind,
        "message_id": line.message_id,
        "summary": line.summary,
        "status_before": before,
        "status_after": after,
        "iteration": line.iteration,
        "max_iterations": line.max_iterations,
        "rendered": rendered,
    }


def happenings(entries: Iterable[Entry]) -> Iterator[Happening]:
    """Everything recorded, in the order it happened."""
    for entry in entries:
        at = datetime.fromisoformat(entry.body["at"])
        event = entry.body.get("event", {})
        kind = "timer" if event.get("kind") == "deadline-reached" else "event"
        words = [str(event.get("kind", "unknown"))]
        words += [str(event[name]) for name in _TOLD if event.get(name)]
        if event.get("iteration"):
            words.append(f"run {event['iteration']}")
        if by := entry.body.get("by"):
            words.append(f"[{by['ticket']}, fence {by['fence']}, {by['owner']}]")
        yield Happening(at, kind, " ".join(words), entry.seq)
        for evidence in event.get("evidence", ()):
            parts = [f"{evidence['check']}: `{evidence['command']}` exit {evidence.get('exit_code')}"]
            counts = evidence.get("counts") or {}
            if counts.get("total"):
                parts.append(f"{counts.get('passed', 0)} of {counts['total']} passed")
            if evidence.get("coverage_percent") is not None:
                parts.append(f"coverage {evidence['coverage_percent']:g}%")
            if evidence.get("base"):
                parts.append(f"{evidence.get('old', 0)} of its failures old (base {evidence['base'][:7]})")
            if evidence.get("no_baseline"):
                parts.append(f"not compared with the base: {evidence['no_baseline']}")
            if told := Evidence.model_validate(evidence).beforehand:
                parts.append(told)
            if new := evidence.get("new_tests"):
                told = f"{new} new tests, {evidence.get('new_tests_failed_before', 0)} failed before the fix"
                parts.append(told)
            parts += (f"{name} failed and then passed" for name in evidence.get("flaky", ()))
            kept = [
                name
                for name in ("interpreter", "tree", "report_digest", "tests", "canary", "sandbox")
                if evidence.get(name)
            ]
            parts += (f"{name.replace('_', ' ')} {evidence[name]}" for name in kept)
            yield Happening(at, "evidence", ", ".join(parts), entry.seq)
        kind = _NOTES.get(event.get("kind", ""), "note")
        yield from (Happening(at, kind, note, entry.seq) for note in entry.body.get("notes", ()))
        yield from _said_and_changed(at, entry)


def with_ticks(entries: Iterable[Entry], present: Moment) -> Iterator[Happening]:
    """A whole history until `present`, with a tick every two minutes while the main agent is awaited (B30)."""
    listed = list(entries)
    looks = []
    status, held, over = Status.PENDING, False, False
    for entry in listed:
        for change in entry.body.get("transitions", ()):
            status = Status(change["after"])
        kind = entry.body.get("event", {}).get("kind")
        held = kind == "paused" or (held and kind != "continued")
        over = over or kind == "cancelled"
        at = datetime.fromisoformat(entry.body["at"])
        looks.append(Look(entry.seq, at, float(entry.body["clock"]), status, held or over))
    now = Look(0, present.at, present.clock, Status.PENDING)
    found: dict[int, list[Tick]] = {}
    for tick in ticks(looks, now):
        found.setdefault(tick.entry, []).append(tick)
    for entry in listed:
        yield from happenings([entry])
        for tick in found.get(entry.seq, ()):
            text = f"{tick.agent} is {tick.status} for {minutes_seconds(tick.elapsed_seconds)}"
            yield Happening(tick.at, "tick", text, tick.entry)


def _said_and_changed(at: datetime, entry: Entry) -> Iterator[Happening]:
    # There are two recorded lists; the status in each message tells how many changes came before it.
    changes: Sequence[dict[str, Any]] = entry.body.get("transitions", ())
    taken = 0
    for line in said([entry]):
        message = line.message
        current = changes[taken]["before"] if taken < len(changes) else ""
        while (
            taken < len(changes)
            and current != message.status_after.value
            and changes[taken]["specialist"] == message.specialist
        ):
            current = changes[taken]["after"]
            yield _changed(at, changes[taken], entry.seq)
            taken += 1
        ends = f"{message.sender} → {message.recipient}"
        text = f"{ends} · {title(message)} · {message.message_id} · {message.summary}"
        yield Happening(at, "message", text, entry.seq, message)
    yield from (_changed(at, change, entry.seq) for change in changes[taken:])


def _changed(at: datetime, recorded: dict[str, Any], seq: int) -> Happening:
    change = Transition.model_validate(recorded)
    text = f"{change.specialist}: {change.before} → {change.after} by the {change.role}: {change.reason}"
    return Happening(at, "status", text, seq, change=change)
