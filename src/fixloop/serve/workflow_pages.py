"""The pages of one workflow: its progress, the decisions of people on it, and two of its runs side by side."""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from fixloop.commands.handlers import Answer
from fixloop.commands.presenter import deadline_of
from fixloop.serve.access import DECIDE, LINK, SUBMIT
from fixloop.serve.api import LONGEST_TEXT, Workflow
from fixloop.serve.pages import READING
from fixloop.serve.problems import Problem
from fixloop.serve.rendering import page
from fixloop.serve.requests import Form, Known, Serving, once
from fixloop.serve.service import DECIDABLE, Look
from fixloop.summary import packet
from fixloop.summary.chart import chart
from fixloop.summary.model import Phase, Summary
from fixloop.summary.pages import Cut, trimmed

SHOWN_LINES: Final = 100
"""Messages on a page; earlier ones are on previous pages."""
PART: Final = 0.25
PART_OF_ALL: Final = 0.12
"""The part of a report's texts and lists that is shown, for one phase and on the page of all."""
_COMMANDS: Final = ("pause", "continue", "cancel")
_MOST_DIGITS: Final = 9

Escalation = Annotated[str, Path(max_length=200)]
Number = Annotated[int, Query(ge=0, le=1_000_000)]
Runs = Annotated[str, Path(pattern=r"^\d{1,6}\.\.\d{1,6}$", examples=["1..2"])]
Specialist = Annotated[str, Query(max_length=40)]
router = APIRouter(prefix="/w/{workflow}", include_in_schema=False, default_response_class=HTMLResponse)


@router.api_route("", methods=READING)
def workflow(
    request: Request, caller: Known, service: Serving, workflow: Workflow, messages: Number = 0
) -> Response:
    """Its progress; `messages` is the number before which to show the conversation."""
    before = messages or getattr(service.seen(caller, workflow).state, "lines", 0)
    look = service.look(caller, workflow, range(max(1, before - SHOWN_LINES + 1), before + 1))
    standing = look.seen.standing
    told: dict[str, Any] = {
        **_common(look),
        "standing": standing,
        "may_command": caller.may(SUBMIT) and not standing.outcome,
        "waiting": [item for item in service.inbox(caller) if item["workflow_id"] == workflow],
        "artifacts": packet.artifacts(look.logged.entries),
        "key": uuid.uuid4().hex,
    }
    if look.summary is None:
        said = look.seen.presenter.log_document(look.logged)["entries"]
        details = look.seen.presenter.details(look.seen.found, look.seen.state, False)
        told |= {"details": list(details), "lines": _page_of(said, messages), "count": len(said)}
        return page(request, "agents", caller, **told)
    lines = look.summary.lines
    cut = trimmed(look.summary.model_copy(update={"lines": _page_of(lines, messages)}), Cut(PART_OF_ALL))
    told |= {"s": cut, "whole": look.summary, "chart": chart(cut), "lines": cut.lines, "count": len(lines)}
    return page(request, "workflow", caller, **told)


@router.post("/commands")
def command(caller: Known, service: Serving, workflow: Workflow, given: Form) -> Response:
    """Pause, continue or cancel it."""
    word, reason, key = (given.get(name, "") for name in ("command", "reason", "key"))
    if word not in _COMMANDS:
        raise Problem("invalid", f"there is no command {word[:40]!r}")
    service.command(caller, workflow, word, reason[:LONGEST_TEXT], once(key))
    return RedirectResponse(f"/w/{workflow}", 303)


@router.api_route("/decide/{escalation}", methods=READING)
def decision(
    request: Request,
    caller: Known,
    service: Serving,
    workflow: Workflow,
    escalation: Escalation,
    answer: Annotated[str, Query(max_length=LONGEST_TEXT)] = "",
    seen: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """The question, and the effect of each answer; `seen` is the version that is shown. Decides nothing. A link decides
    for the version it was sent for, and only shows later ones."""
    look = service.look(caller, workflow)
    changed = bool(seen) and seen != look.seen.found.version
    item = service.item(caller, workflow, escalation)
    others = (each for each in service.inbox(caller) if each["escalation_id"] != escalation)
    told: dict[str, Any] = {
        **_common(look),
        "escalation": escalation,
        "item": item,
        "decided": None if item else service.decided(look, escalation),
        "waiting": [each for each in others if each["can_decide"]],
        "changed": changed,
        "chosen": answer,
        "s": None,
    }
    if item is not None:
        state, is_asked = look.seen.state, item["waits_for"] in DECIDABLE
        told |= {
            "choices": packet.choices(item, getattr(state, "agent", "")),
            "may_decide": caller.may(DECIDE) and is_asked and not (changed and caller.token == LINK),
            "is_asked": is_asked,
            "key": uuid.uuid4().hex,
        }
        if look.summary is not None:
            cut = trimmed(look.summary, Cut(PART))
            phase, full = (_phase(each, state.current) for each in (cut, look.summary))
            told |= {"s": cut, "phase": phase, "full": full, "grid": packet.grid(phase)}
            told |= {"best": packet.best(phase), "causes": packet.causes(state)}
    return page(request, "decision", caller, **told)


@router.post("/decide/{escalation}")
def decide(
    request: Request, caller: Known, service: Serving, workflow: Workflow, escalation: Escalation, given: Form
) -> Response:
    """Answer it, for the version in the form."""
    try:
        answer = answer_in(given, escalation)
        version, key = int(_number(given, "version")), once(given.get("key", ""))
        service.decide(caller, workflow, version, answer, key)
    except Problem as problem:
        problem.written = given.get("reason", "")[:LONGEST_TEXT]
        raise
    return RedirectResponse(request.url.path, 303)


def answer_in(given: dict[str, str], escalation: str) -> Answer:
    """The content of a decision's form. Problem: nothing was chosen, or a number is malformed."""
    word = given.get("decision", "")[:LONGEST_TEXT]
    if not word:
        raise Problem("invalid", "no answer was chosen; choose one, then confirm")
    more = int(_number(given, "iterations")) or None, _number(given, "minutes") or None
    reason, until, owner = (given.get(name, "")[:LONGEST_TEXT] for name in ("reason", "until", "owner"))
    return Answer(word, reason, *more, escalation, until.strip(), owner.strip()[:200])


def _number(given: dict[str, str], name: str) -> float:
    text = given.get(name, "").strip()
    if len(text) > _MOST_DIGITS or (text and not text.replace(".", "", 1).isdigit()):
        raise Problem("invalid", f"{name} is {text[:40]!r}; use a number")
    return float(text or 0)


@router.api_route("/compare/{runs}", methods=READING)
def compare(
    request: Request,
    caller: Known,
    service: Serving,
    workflow: Workflow,
    runs: Runs,
    specialist: Specialist = "",
) -> Response:
    """The failures of one run compared with a later run, and the changes between them."""
    look = service.look(caller, workflow)
    phase, found, numbers = compared(look, runs, specialist)
    return page(request, "compare", caller, **_common(look), phase=phase, found=found, numbers=numbers)


def compared(look: Look, runs: str, specialist: str) -> tuple[Phase, packet.Comparison, Sequence[int]]:
    """The phase, the comparison of its failures in two of its runs (`1..3`), and the numbers of all runs. Problem:
    there are no such runs."""
    if look.summary is None:
        raise Problem("not-found", f"{look.seen.state.profile} workflows have no runs of specialists")
    name = specialist or look.seen.state.current
    entry = next((each for each in look.seen.state.specialists if each.name == name), None)
    first, second = (int(each) for each in runs.split(".."))
    by_number = {run.number: run for run in entry.runs} if entry is not None else {}
    if first not in by_number or second not in by_number or first >= second:
        told = f"{name[:40]} has no runs {first} and {second} with the first before the second"
        raise Problem("not-found", told)
    phase = _phase(trimmed(look.summary, Cut(PART)), name)
    return phase, packet.compared(by_number[first], by_number[second], phase.fixes), sorted(by_number)


def _common(look: Look) -> dict[str, Any]:
    found, state = look.seen.found, look.seen.state
    return {
        "workflow": found.workflow,
        "version": found.version,
        "issue": state.issue,
        "name": state.name,
        "deadline": deadline_of(found),
    }


def _phase(summary: Summary, name: str) -> Phase:
    return next(phase for phase in summary.phases if phase.name == name)


def _page_of(lines: Any, before: int) -> Any:
    """The lines of one page, up to the number `before`; the last ones for 0."""
    end = min(before, len(lines)) or len(lines)
    return lines[max(0, end - SHOWN_LINES) : end]
