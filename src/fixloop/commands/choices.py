"""What a person can decide: why a passing run is held, each answer, what it does, and which is recommended."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fixloop.commands.screen import short
from fixloop.protocol import diagnosis
from fixloop.protocol.checks import Finding
from fixloop.protocol.ids import called
from fixloop.protocol.messages import ON_A_HOLD, Decision, Reason
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OpenEscalation, State

SHOWN_LINES: Final = 12
"""Of each side of a finding; the log has all lines."""


class Choice(NamedTuple):
    """A command and what it does."""

    command: str
    does: str
    because: str = ""
    """Why it is recommended; empty for all others."""
    answer: str = ""
    """The argument of `decide`, if it is a decision."""


_WITH: Final = {decision: ' --reason "…"' for decision in ON_A_HOLD}
"""A reason helps later readers, and the agent that gets the work back."""


def choices(state: State) -> tuple[Choice, ...]:
    """The answers to the open escalation, the recommended one first; none if none is open."""
    opened, issue = state.escalation, called(state)
    if opened is None:
        return ()
    if opened.decision is Decision.MANUAL_FIX:
        return (
            Choice(f"fixloop fixed {issue}", "submits what you changed in the offered directory"),
            Choice(f"fixloop fixed {issue} --here", "submits your checkout, exactly as it is"),
        )
    advice = diagnosis.recommendation(state.active, opened.reason, opened.detail)
    return tuple(
        Choice(
            f"fixloop decide {issue} {decision}{_WITH.get(decision, '')}",
            _does(decision, state, opened),
            advice.rationale if decision is advice.decision else "",
            decision,
        )
        for decision in sorted(opened.reason.decisions, key=lambda decision: decision is not advice.decision)
    )


def fix_choices(state: State) -> tuple[Choice, ...]:
    """The commands that take the open request and answer it."""
    take = f"fixloop mailbox {state.agent}" if state.agent else f"fixloop ack {called(state)}"
    return (
        Choice(take, "shows the request" + ("" if state.agent else " and makes a directory to work in")),
        Choice(f"fixloop fixed {called(state)}", "submits the fix"),
    )


def choice_lines(found: Sequence[Choice]) -> Iterator[str]:
    """A line for each, ready to paste."""
    width = max((len(each.command) for each in found), default=0)
    for each in found:
        why = f" (recommended: {short(each.because, 300)})" if each.because else ""
        yield f"{each.command:{width}}  # {each.does}{why}"


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Why a passing run is held, with both sides; nothing if it is not held."""
    lines = []
    for found in findings:
        place = f"{found.file}:{found.line}" if found.line is not None else found.file
        lines.append(f"  {found.rule}: {short(found.text, 300)}{f' ({short(place)})' if place else ''}")
        for sign, side in (("-", found.old), ("+", found.new)):
            rows = side.splitlines()
            lines += (f"    {sign} {row[:160]}" for row in rows[:SHOWN_LINES])
            lines += [f"    {sign} … {len(rows) - SHOWN_LINES} more lines"] * (len(rows) > SHOWN_LINES)
    return [*lines, "  without these rules the verdict would be: passed"] if lines else []


def no_fixer(state: State) -> Iterator[str]:
    """How to configure a fixer, if there is none."""
    if state.fixer == "outside" and not state.agent:
        yield (
            "no fixer is configured: to have an agent fix it, add [fixer] with its command to fixloop.toml, "
            "or use `fixloop run` with --fixer COMMAND --restart"
        )


def _does(decision: Decision, state: State, opened: OpenEscalation) -> str:
    phase = slot(state.active.name).phase
    if decision is Decision.SKIP:
        return f"continues without {phase}: its failures become known issues"
    if decision is Decision.ABORT:
        return "ends the workflow as not passed; applies nothing"
    if decision is Decision.ACCEPT:
        return "the changes are right: they judge from now on, and the same checks run again"
    if decision is Decision.REJECT:
        return "the findings fail this run and go back with your reason"
    if decision is Decision.EXTEND:
        if opened.reason in (Reason.MAX_ITERATIONS, Reason.DEADLOCK):
            return f"{state.limits.extra_iterations} more iterations (--iterations N)"
        if opened.reason in (Reason.SPECIALIST_ERROR, Reason.INTEGRITY_HOLD):
            return "repeats the run on the same code"
        if opened.reason is Reason.TIMEOUT:
            return f"{state.limits.extend_minutes:g} more minutes (--minutes N)"
        return "sends the same request again"
    if opened.reason is Reason.SPECIALIST_ERROR:
        return "takes your checkout as it is now, with fixloop.toml, and repeats the run"
    return "you make and submit the fix; it is checked once more"
