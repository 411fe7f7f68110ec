"""The log of a validation workflow: its messages, as lines, in full or as data, and other events."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fixloop.commands.presenter import Logged
from fixloop.commands.screen import short
from fixloop.commands.timeline import Happening, happenings, log_entry, with_ticks
from fixloop.engine.history import Said, said
from fixloop.errors import UsageError
from fixloop.protocol import documents, log, markdown
from fixloop.protocol.durations import stamp
from fixloop.protocol.log import flow_log
from fixloop.protocol.specialists import Status, specialist as slot
from fixloop.protocol.state import State, WorkflowOutcome

_RULE: Final = "\n---\n"


def log_text(logged: Logged[State]) -> str:
    """One line per message, and the statistics; for one specialist its flow."""
    if logged.agent:
        return _flow(logged, _lines(logged))
    if logged.everything:
        lines = list(map(str, with_ticks(logged.entries, logged.moment)))
    else:
        spoken = (each for each in happenings(logged.entries) if each.message is not None)
        lines = [f"{stamp(each.at)}  {short(each.text, 300)}" for each in spoken]
    lines.append("")
    for name, value in _statistics(logged.state, _lines(logged)).model_dump().items():
        shown = name.replace("_", " ").replace("revalidation", "re-validation").capitalize()
        lines.append(f"{shown}: {value}")
    return "\n".join(lines)


def log_markdown(logged: Logged[State]) -> str:
    """Every message in full."""
    lines = _lines(logged)
    if logged.agent:
        return _RULE.join([_flow(logged, lines), *map(_in_full, lines)])
    state = logged.state
    parts = [
        log.full_log(
            [line.message for line in lines],
            issue=state.issue,
            feature=state.name,
            outcome=_outcome_of(state),
            started=state.started_at,
            completed=state.until,
        )
    ]
    if logged.everything:
        history = list(with_ticks(logged.entries, logged.moment))
        listed = (f"- {markdown.line(str(each))}" for each in history)
        parts += ["\n".join(("## History", "", *listed, "")), *_every_record(logged, lines, history)]
    else:
        parts += map(_in_full, lines)
    return _RULE.join(parts)


def log_document(logged: Logged[State]) -> dict[str, Any]:
    """`log --json`."""
    lines = _lines(logged)
    document: dict[str, Any] = {
        "issue": logged.state.issue,
        "name": logged.state.name,
        "workflow_id": logged.state.workflow,
        "entries": list(map(json_entry, lines)),
        "statistics": _statistics(logged.state, lines).model_dump(),
    }
    if logged.agent:
        document |= {"specialist": slot(logged.agent).name, "flow": _flow(logged, lines)}
    if logged.everything:
        document["history"] = [each.document() for each in with_ticks(logged.entries, logged.moment)]
    return document


def json_entry(line: Said) -> dict[str, Any]:
    """An entry of `log --json`; `rendered` includes a line's attachment (A85)."""
    m, text = line.message, line.rendered
    before, after = m.status_before.value, m.status_after.value
    return log_entry(m, m.entry_id, m.body.kind, text, before=before, after=after)


def _lines(logged: Logged[State]) -> list[Said]:
    """The messages of all specialists or of one. UsageError: the specialist is unknown, or has said nothing yet."""
    found = list(said(logged.entries))
    if not logged.agent:
        return found
    own = [line for line in found if line.message.specialist == slot(logged.agent).name]
    if not own:
        raise UsageError(f"{logged.agent} has said nothing in #{logged.state.issue} yet")
    return own


def _flow(logged: Logged[State], lines: Sequence[Said]) -> str:
    messages, name = [line.message for line in lines], slot(logged.agent).name
    state, entry = logged.state, logged.state.specialist(name)
    # The result of a person's decision on the specialist's loop; empty if there was none.
    outcome = ""
    if entry.skipped:
        outcome = log.outcome_text(WorkflowOutcome.SKIPPED)
    elif state.outcome in (WorkflowOutcome.ABORTED, WorkflowOutcome.CANCELLED):
        outcome = log.outcome_text(state.outcome) if entry.status is not Status.COMPLETED else ""
    return flow_log(messages, name, outcome=outcome)


def _statistics(state: State, lines: Sequence[Said]) -> log.Statistics:
    return log.statistics([line.message for line in lines], outcome=_outcome_of(state))


def _outcome_of(state: State) -> str | None:
    if state.outcome is None:
        return "escalated" if state.paused else None
    return state.outcome.value


def _every_record(
    logged: Logged[State], said_lines: Sequence[Said], history: Sequence[Happening]
) -> Iterator[str]:
    """Status changes and messages in chronological order, each in its record."""
    lines = iter(said_lines)
    for each in history:
        if each.change is not None:
            yield documents.status_change(each.change)
        elif each.message is not None:
            line = next(lines)
            kind = line.message.body.kind
            if kind == "failure-report":
                sent = documents.sending(line.message, line.rendered)
                yield f"{log.render_entry(line.message)}{_RULE}{sent}"
            else:
                yield _in_full(line)
            if kind == "fix-completion":
                yield documents.confirmation(line.message)
    waited_for = documents.waiting(logged.state, logged.moment.clock)
    if waited_for is not None:
        yield waited_for


def _in_full(line: Said) -> str:
    """The line's log entry, and below it the message (A77, A85)."""
    return f"{log.render_entry(line.message)}{_RULE}{line.rendered}"
