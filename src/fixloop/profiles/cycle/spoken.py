"""What each message of a cycle says in full, as its recipient reads it (C21, C32, C33). Pure text."""

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from fixloop.profiles.cycle import messages as msg
from fixloop.profiles.cycle.feedback_log import input_text
from fixloop.profiles.cycle.phase_result import PhaseResult


def message_text(message: msg.Message) -> str:
    """The whole text of a message."""
    return _TEXTS[type(message.body)](message.body)


def result_text(result: PhaseResult) -> str:
    """A PHASE_RESULT as an agent ends its run with (C33, C34)."""
    return "\n".join(["PHASE_RESULT:", *_lines(result)]) + "\n"


def _lines(result: PhaseResult) -> Iterator[str]:
    yield f"- phase: {result.phase}"
    yield f"- status: {result.status}"
    yield f"- files_written: {_listed(result.files_written)}"
    yield f"- summary: {result.summary}"
    for name, value in result.fields.items():
        yield f"- {name}: {value if isinstance(value, str) else _listed(value)}"
    yield f"- issues: {_listed(result.issues)}"
    if result.details:
        yield f"\nPHASE_DETAILS:\n{result.details}"


def _listed(values: tuple[str, ...]) -> str:
    """On lines of their own where a comma would part one."""
    if any("," in value for value in values):
        return "".join(f"\n  - {value}" for value in values)
    return f"[{', '.join(values)}]"


def _violation(body: msg.Violation) -> str:
    return f"{body.problem}\n\nEnd your answer with exactly one PHASE_RESULT.\n"


def _escalation(body: msg.Escalation) -> str:
    issues = "".join(f"- {issue}\n" for issue in body.remaining_issues)
    waiting = ", ".join(body.agents)
    return f"{body.escalation_id}: {body.reason}\n\n{body.detail}\n\nStanding still: {waiting}\n{issues}"


def _guidance(body: msg.Guidance) -> str:
    return f"{body.escalation_id}: {body.decision}\n\n{body.text or 'no reason was given'}\n"


def _ended(body: msg.Ended) -> str:
    issues = "".join(f"- known issue: {issue}\n" for issue in body.remaining_issues)
    return f"{body.outcome}, v{body.version} after {body.iterations} iterations\n{issues}"


_TEXTS: Final = cast(
    dict[type, Callable[[Any], str]],
    {
        msg.Input: input_text,
        msg.Reported: lambda body: result_text(body.result),
        msg.Violation: _violation,
        msg.Escalation: _escalation,
        msg.Guidance: _guidance,
        msg.Ended: _ended,
    },
)
