"""The log of a profile whose steps are agent runs: its messages as lines, and what else happened."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.commands.presenter import Logged
from fixloop.commands.screen import short
from fixloop.commands.timeline import Happening, log_entry
from fixloop.errors import UsageError
from fixloop.protocol import markdown
from fixloop.protocol.durations import hours_minutes_seconds, stamp
from fixloop.store.records import Entry

_RULE: Final = "\n---\n"
_NOTES: Final = {
    "event-refused": "refusal",
    "decision-made": "decision",
    "answered": "decision",
    "deadline-reached": "timer",
    "paused": "pause",
    "continued": "pause",
}
_FACTS: Final = ("agent", "recipient", "name", "decision", "answer", "resource", "field", "refused", "reason")
_TOLD: Final = ("status", "decision", "timer", "refusal", "pause", "note")
"""What a watcher is shown of a commit without a message."""


class Line(NamedTuple):
    """One message as a log shows it."""

    number: int
    at: datetime
    sender: str
    recipient: str
    kind: str
    message_id: str
    summary: str
    iteration: int
    max_iterations: int
    text: str
    """In full."""

    def __str__(self) -> str:
        return f"{self.sender} → {self.recipient} · {self.kind} · {self.message_id} · {self.summary}"

    def document(self) -> dict[str, Any]:
        """An entry of `log --json`; these messages carry no status of the workflow."""
        return log_entry(self, self.number, self.kind, self.text)


class Speech(NamedTuple):
    """How a profile shows its messages."""

    line: Callable[[dict[str, Any], Any], Line]
    """A recorded message as a line; the second argument is the workflow's state."""
    statistics: Callable[[Any, Sequence[Line]], dict[str, Any]]
    """Figures in addition to message count and duration."""

    def happened(self, entries: Iterable[Entry]) -> Iterator[str]:
        """What `watch` prints for new entries: each message, or what a commit without one changed."""
        for entry in entries:
            for kept in entry.body.get("messages", ()):
                said = self.line(kept, None)
                ends = f"{said.sender} → {said.recipient}"
                yield f"{said.at:%H:%M:%S}  {short(f'{ends}  {said.kind}: {said.summary}')}"
            for each in _happenings(entry, self.line, None) if not entry.body.get("messages") else ():
                if each.kind in _TOLD:
                    yield f"{each.at:%H:%M:%S}  {short(each.text)}"

    def log_text(self, logged: Logged[Any]) -> str:
        """One line per message, and the statistics."""
        said = self._said(logged)
        shown = [f"{stamp(line.at)}  {short(str(line), 300)}" for line in said]
        if logged.everything:
            shown = list(map(str, self._history(logged)))
        figures = self._statistics(logged, said).items()
        return "\n".join([*shown, "", *(f"{_label(name)}: {_value(value)}" for name, value in figures)])

    def log_markdown(self, logged: Logged[Any]) -> str:
        """The statistics as a table, then every message in full."""
        said = self._said(logged)
        figures = self._statistics(logged, said).items()
        rows = (f"| {_label(name)} | {markdown.cell(_value(value))} |" for name, value in figures)
        head = f"## Full Communication Log: #{logged.state.issue} {markdown.line(logged.state.name)}"
        parts = ["\n".join([head, "", "| | |", "|---|---|", *rows, ""])]
        if logged.everything:
            listed = (f"- {markdown.line(str(each))}" for each in self._history(logged))
            parts.append("\n".join(["## History", "", *listed, ""]))
        for each in said:
            ends = f"{markdown.line(each.sender)} → {markdown.line(each.recipient)}"
            iteration = f"iteration {each.iteration} of {each.max_iterations}"
            facts = f"{stamp(each.at)} UTC · {each.message_id} · {iteration}"
            message = markdown.fence(each.text.rstrip())
            parts.append(f"### {each.number}. {ends}: {each.kind}\n\n{facts}\n\n{message}\n")
        return _RULE.join(parts)

    def log_document(self, logged: Logged[Any]) -> dict[str, Any]:
        """`log --json`."""
        said = self._said(logged)
        made: dict[str, Any] = {
            "issue": logged.state.issue,
            "name": logged.state.name,
            "workflow_id": logged.state.workflow,
            "profile": logged.state.profile,
            "entries": [line.document() for line in said],
            "statistics": self._statistics(logged, said),
        }
        if logged.agent:
            made["agent"] = logged.agent
        if logged.everything:
            made["history"] = [each.document() for each in self._history(logged)]
        return made

    def _said(self, logged: Logged[Any]) -> list[Line]:
        """Every message, or those of one agent; refuses a name without messages."""
        found = [
            self.line(kept, logged.state)
            for entry in logged.entries
            for kept in entry.body.get("messages", ())
        ]
        if not logged.agent:
            return found
        name = logged.agent.lower()
        own = [line for line in found if name in (line.sender, line.recipient)]
        if not own:
            known = dict.fromkeys(end for line in found for end in (line.sender, line.recipient))
            raise UsageError(
                f"{logged.agent} has no messages in #{logged.state.issue}; "
                f"there are {', '.join(known) or 'no messages yet'}"
            )
        return own

    def _statistics(self, logged: Logged[Any], said: Sequence[Line]) -> dict[str, Any]:
        state = logged.state
        until = state.ended_at or logged.moment.at
        return {
            "total_messages": len(said),
            "messages_by_type": dict(Counter(line.kind for line in said)),
            **self.statistics(state, said),
            "duration": hours_minutes_seconds((until - state.started_at).total_seconds()),
            "final_status": state.outcome or state.status,
        }

    def _history(self, logged: Logged[Any]) -> Iterator[Happening]:
        for entry in logged.entries:
            yield from _happenings(entry, self.line, logged.state)


def _happenings(entry: Entry, line: Callable[[dict[str, Any], Any], Line], state: Any) -> Iterator[Happening]:
    """Everything one commit recorded: its event, changes, notes and messages."""
    at = datetime.fromisoformat(entry.body["at"])
    event = entry.body.get("event", {})
    kind = str(event.get("kind", "unknown"))
    words = [kind, *(str(event[name]) for name in _FACTS if event.get(name) not in (None, ""))]
    if event.get("sender"):
        words.append(f"from {event['sender']}")
    if by := entry.body.get("by", {}):
        words.append(f"[{by['ticket']}, fence {by['fence']}, {by['owner']}]")
    yield Happening(at, "timer" if kind == "deadline-reached" else "event", " ".join(words), entry.seq)
    for change in entry.body.get("transitions", ()):
        yield Happening(at, "status", f"{change['agent']}: {change['before']} → {change['after']}", entry.seq)
    for note in entry.body.get("notes", ()):
        yield Happening(at, _NOTES.get(kind, "note"), note, entry.seq)
    if kind in ("paused", "continued"):
        reason = f": {event['reason']}" if event.get("reason") else ""
        yield Happening(at, "pause", f"{kind} by {event.get('sender', 'user')}{reason}", entry.seq)
    for kept in entry.body.get("messages", ()):
        said = line(kept, state)
        yield Happening(said.at, "message", str(said), entry.seq, said)


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {amount}" for name, amount in value.items()) or "none"
    return str(value)
