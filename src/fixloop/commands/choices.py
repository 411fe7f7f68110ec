"""What a person can decide: each answer to an escalation with what it does, and the one to think of first."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fixloop.commands.screen import short
from fixloop.protocol import diagnosis
from fixloop.protocol.ids import called
from fixloop.protocol.messages import ON_A_HOLD, Decision, Reason
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OpenEscalation, State


class Choice(NamedTuple):
    """A command and what it does."""

    command: str
    does: str
    because: str = ""
    """Why it is the one to think of first; empty for all others."""
    answer: str = ""
    """What `decide` is given, where it decides."""


_WITH: Final = {decision: ' --reason "…"' for decision in ON_A_HOLD}
"""A reason helps those who read it later, and the agent that gets it back."""


def choices(state: State) -> tuple[Choice, ...]:
    """What answers the open escalation, the recommended one first; nothing where none is open."""
    opened, issue = state.escalation, called(state)
    if opened is None:
        return ()
    if opened.decision is Decision.MANUAL_FIX:
        return (
            Choice(f"fixloop fixed {issue}", "hands in what you changed in the directory that was offered"),
            Choice(f"fixloop fixed {issue} --here", "hands in your checkout, exactly as it is"),
        )
    advice = diagnosis.recommendation(state.active, opened.reason, opened.detail)
    ordered = sorted(opened.reason.decisions, key=lambda decision: decision is not advice.decision)
    return tuple(
        Choice(
            f"fixloop decide {issue} {decision}{_WITH.get(decision, '')}",
            _does(decision, state, opened),
            advice.rationale if decision is advice.decision else "",
            decision,
        )
        for decision in ordered
    )


def fix_choices(state: State) -> tuple[Choice, ...]:
    """What takes the open request, and what answers it."""
    take = f"fixloop mailbox {state.agent}" if state.agent else f"fixloop ack {called(state)}"
    return (
        Choice(take, "shows the request" + ("" if state.agent else " and makes a directory to work in")),
        Choice(f"fixloop fixed {called(state)}", "hands the fix in"),
    )


def choice_lines(found: Sequence[Choice]) -> Iterator[str]:
    """A line for each, ready to paste."""
    width = max((len(each.command) for each in found), default=0)
    for each in found:
        why = f" (recommended: {short(each.because, 300)})" if each.because else ""
        yield f"{each.command:{width}}  # {each.does}{why}"


def no_fixer(state: State) -> Iterator[str]:
    """A hint on how to configure a fixer, where there is none."""
    if state.fixer == "outside" and not state.agent:
        yield (
            "no fixer is configured: to have an agent do it, add [fixer] with its command to fixloop.toml, "
            "or call `fixloop run` with --fixer COMMAND --restart"
        )


def _does(decision: Decision, state: State, opened: OpenEscalation) -> str:
    phase = slot(state.active.name).phase
    if decision is Decision.SKIP:
        return f"goes on without {phase}: what fails there becomes a known issue"
    if decision is Decision.ABORT:
        return "ends it as not passed; nothing is applied"
    if decision is Decision.ACCEPT:
        return "what changed is right: it judges from now on, and the same checks run again"
    if decision is Decision.REJECT:
        return "what was found fails this run, and goes back with your reason"
    if decision is Decision.EXTEND:
        if opened.reason in (Reason.MAX_ITERATIONS, Reason.DEADLOCK):
            return f"{state.limits.extra_iterations} more iterations (--iterations N)"
        if opened.reason in (Reason.SPECIALIST_ERROR, Reason.INTEGRITY_HOLD):
            return "makes the same run again, on the same code"
        if opened.reason is Reason.TIMEOUT:
            return f"{state.limits.extend_minutes:g} more minutes (--minutes N)"
        return "sends the same request out again"
    if opened.reason is Reason.SPECIALIST_ERROR:
        return "takes your checkout as it is now, fixloop.toml included, and makes the same run again"
    return "you make the fix and hand it in; it is checked once more"
