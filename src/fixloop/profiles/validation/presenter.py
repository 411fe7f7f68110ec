"""The validation loop as commands show it."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fixloop.commands import outcome, validation_status
from fixloop.commands.choices import choices, fix_choices
from fixloop.commands.clocks import deadline_of
from fixloop.commands.presenter import Logged, Presenter
from fixloop.commands.screen import short
from fixloop.commands.timeline import Happening, happenings
from fixloop.engine.snapshots import load_state
from fixloop.profiles.validation.items import items
from fixloop.protocol.durations import hours_minutes_seconds, minutes_seconds
from fixloop.protocol.log import title
from fixloop.protocol.state import State
from fixloop.store.records import Entry, Snapshot

_TOLD: Final = ("status", "receipt", "decision", "timer", "refusal", "pause", "note")
"""What a commit without a message has to tell."""


def _happened(entries: Iterable[Entry]) -> Iterator[str]:
    """A line for each message, and for a commit without one what it changed."""
    found = list(happenings(entries))
    spoken = {each.entry for each in found if each.message is not None}
    for each in found:
        if each.message is not None or (each.entry not in spoken and each.kind in _TOLD):
            yield f"{each.at:%H:%M:%S}  {_said(each)}"


def _said(each: Happening) -> str:
    if each.message is None:
        return short(each.text)
    message = each.message
    run = f"{message.specialist} {message.iteration}/{message.max_iterations}"
    return f"{run}  {title(message)}: {short(message.summary)}"


def _clocks(found: Snapshot, state: State) -> str:
    now = state.until if state.ended else found.moment.at
    parts = [f"elapsed {hours_minutes_seconds((now - state.started_at).total_seconds())}"]
    if state.operation is not None:
        parts.append(f"{state.operation.name} of {state.operation.specialist}")
    due = deadline_of(found)
    if due is not None:
        parts.append(f"deadline in {minutes_seconds((due - found.moment.at).total_seconds())}")
    if not state.ended:
        parts.append(f"paused by {state.held.by}" if state.held is not None else f"{state.owner}'s turn")
    return " · ".join(parts)


def _log_text(logged: Logged[State]) -> str:
    # The log's texts take a while to load, and `status` needs none of them.
    from fixloop.profiles.validation.log import log_text

    return log_text(logged)


def _log_markdown(logged: Logged[State]) -> str:
    from fixloop.profiles.validation.log import log_markdown

    return log_markdown(logged)


def _log_document(logged: Logged[State]) -> dict[str, Any]:
    from fixloop.profiles.validation.log import log_document

    return log_document(logged)


def _report(found: Snapshot, logged: Logged[State], form: str) -> str:
    from fixloop.summary import Answer, Told, as_html, as_markdown, summarize

    state = logged.state
    found_answers = choices(state) or (fix_choices(state) if outcome.waits_for_agent(state) else ())
    answers = tuple(Answer(**each._asdict()) for each in found_answers)
    told = Told(outcome.next_command(state), answers, logged.artifact, logged.diff)
    summary = summarize(state, logged.entries, found.moment, told)
    if form == "json":
        return summary.model_dump_json(indent=2)
    return as_html(summary) if form == "html" else as_markdown(summary)


PRESENTER: Final[Presenter[State]] = Presenter(
    load=load_state,
    standing=outcome.standing,
    document=validation_status.status_document,
    details=validation_status.details,
    table=validation_status.phases_table,
    clocks=_clocks,
    happened=_happened,
    result=outcome.result_lines,
    items=items,
    log_text=_log_text,
    log_markdown=_log_markdown,
    log_document=_log_document,
    report=_report,
)
