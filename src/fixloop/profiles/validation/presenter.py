"""Presents the validation loop for commands."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from fixloop.commands import outcome, validation_status
from fixloop.commands.choices import Choice, choices, fix_choices, no_fixer
from fixloop.commands.presenter import Logged, Presenter, clock_line
from fixloop.commands.screen import short
from fixloop.commands.timeline import happenings
from fixloop.engine.profile import load_state
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.failures import count_of
from fixloop.protocol.ids import called, request_id
from fixloop.protocol.log import title
from fixloop.protocol.messages import MAIN_AGENT, USER, Decision
from fixloop.protocol.state import State
from fixloop.store.records import Entry, Snapshot

_TOLD: Final = ("status", "receipt", "decision", "timer", "refusal", "pause", "note")
"""The kinds of records that a commit without a message may have."""


def _happened(entries: Iterable[Entry]) -> Iterator[str]:
    found = list(happenings(entries))
    spoken = {each.entry for each in found if each.message is not None}
    for each in found:
        message = each.message
        if message is not None:
            run = f"{message.specialist} {message.iteration}/{message.max_iterations}"
            yield f"{each.at:%H:%M:%S}  {run}  {title(message)}: {short(message.summary)}"
        elif each.entry not in spoken and each.kind in _TOLD:
            yield f"{each.at:%H:%M:%S}  {short(each.text)}"


def _clocks(found: Snapshot, state: State) -> str:
    elapsed = (state.until if state.ended else found.moment.at) - state.started_at
    operation = state.operation
    at_work = () if operation is None else (f"{operation.name} of {operation.specialist}",)
    turn = f"paused by {state.held.by}" if state.held is not None else f"{state.owner}'s turn"
    return clock_line(found, elapsed, at_work, "" if state.ended else turn)


def _log() -> Any:
    # Imported late: the log's templates take a while to load, and `status` needs none of them.
    from fixloop.profiles.validation import log

    return log


def _items(found: Snapshot, state: State, cache: Path) -> Iterator[dict[str, Any]]:
    """The open items for somebody outside the engine: at most one, because steps follow one another."""
    common = {
        "specialist": state.current,
        "iteration": state.active.iteration,
        "max_iterations": state.active.max_iterations,
    }
    opened = state.escalation
    if state.held is not None:
        yield common | {
            "waits_for": "continue",
            "escalation_id": None,
            "reason": f"paused by {state.held.by}",
            "detail": state.held.reason,
            "target": USER,
            "since": iso_stamp(state.held.at),
            "directory": None,
            "commands": [f"fixloop continue {called(state)}"],
        }
    elif opened is not None:
        manual = opened.decision is Decision.MANUAL_FIX
        yield common | {
            "waits_for": "manual-fix" if manual else "decision",
            "escalation_id": opened.message_id,
            "reason": opened.reason.text,
            "detail": opened.detail,
            "target": opened.target,
            "since": iso_stamp(opened.at),
            "directory": _directory(state, cache) if manual else None,
            **({"findings": [each.model_dump() for each in opened.findings]} if opened.findings else {}),
            **_answers(choices(state)),
        }
    elif outcome.waits_for_agent(state):
        yield common | {
            "waits_for": "fix",
            "escalation_id": None,
            "reason": request_id(state.issue, state.active.iteration),
            "detail": count_of(state.failure_count),
            "target": MAIN_AGENT,
            "since": iso_stamp(outcome.offered_since(found, state)),
            "directory": _directory(state, cache),
            "hint": "; ".join(no_fixer(state)),
            **_answers(fix_choices(state)),
        }


def _answers(found: Iterable[Choice]) -> dict[str, Any]:
    listed = list(found)
    return {"commands": [each.command for each in listed], "choices": [each._asdict() for each in listed]}


def _directory(state: State, cache: Path) -> str | None:
    """The directory for the fix; None until `ack` or `run` has created it on this machine."""
    # Imported late, because only the inbox needs the offers on this machine.
    from fixloop.outside.offer import offered_at

    made = offered_at(state, cache).directory if state.snapshot else None
    return str(made) if made is not None and made.is_dir() else None


def _summary(found: Snapshot, logged: Logged[State]) -> Any:
    from fixloop.summary import Answer, Told, summarize

    state = logged.state
    found_answers = choices(state) or (fix_choices(state) if outcome.waits_for_agent(state) else ())
    answers = tuple(Answer(**each._asdict()) for each in found_answers)
    told = Told(outcome.next_command(state), answers, logged.artifact, logged.diff, logged.texts)
    return summarize(state, logged.entries, found.moment, told)


def _report(found: Snapshot, logged: Logged[State], form: str) -> str:
    from fixloop.summary import as_html, as_markdown

    summary = _summary(found, logged)
    if form == "json":
        return str(summary.model_dump_json(indent=2))
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
    items=_items,
    log_text=lambda logged: _log().log_text(logged),
    log_markdown=lambda logged: _log().log_markdown(logged),
    log_document=lambda logged: _log().log_document(logged),
    report=_report,
    summary=_summary,
)
