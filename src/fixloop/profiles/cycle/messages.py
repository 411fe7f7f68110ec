"""Messages between a cycle's orchestrator, its agents and its user (C3, C20, C32-C34, K16, K26, K30)."""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field

from fixloop.errors import ProtocolError
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.records import InputKind
from fixloop.protocol.event import ORCHESTRATOR, USER, Value


class Input(Value):
    """A `send_input`: what happened, what to do, and when it is done (C21, C32)."""

    kind: Literal["cycle.input"] = "cycle.input"
    input: InputKind
    source: str
    """The author of the findings."""
    summary: str
    file: str = ""
    version: str = ""
    """The version of the referenced output; a message names a file and never contains it (U13)."""
    actions: tuple[str, ...]
    criteria: tuple[str, ...]
    next_step: str
    previous_iteration: int
    current_iteration: int


class Reported(Value):
    """An agent's PHASE_RESULT (C33)."""

    kind: Literal["cycle.phase-result"] = "cycle.phase-result"
    result: PhaseResult
    version: str


class Violation(Value):
    """An invalid answer, and the expected form (C35)."""

    kind: Literal["cycle.violation"] = "cycle.violation"
    problem: str


class Escalation(Value):
    """A question to a person (C57)."""

    kind: Literal["cycle.escalation"] = "cycle.escalation"
    escalation_id: str
    reason: str
    detail: str
    agents: tuple[str, ...]
    remaining_issues: tuple[str, ...] = ()


class Guidance(Value):
    """A person's decision (C57)."""

    kind: Literal["cycle.guidance"] = "cycle.guidance"
    escalation_id: str
    decision: str
    text: str


class Ended(Value):
    """How the cycle ended (C50)."""

    kind: Literal["cycle.ended"] = "cycle.ended"
    outcome: str
    version: str
    iterations: int
    remaining_issues: tuple[str, ...] = ()


Body = Annotated[Input | Reported | Violation | Escalation | Guidance | Ended, Field(discriminator="kind")]


class Message(Value):
    """One message with its envelope (K3)."""

    uid: str
    message_id: Annotated[str, Field(min_length=1)]
    sender: Annotated[str, Field(min_length=1)]
    recipient: Annotated[str, Field(min_length=1)]
    at: AwareDatetime
    issue: int
    iteration: int
    max_iterations: int
    number: int
    """The line's number in its workflow."""
    summary: str
    body: Body

    def recorded(self) -> dict[str, Any]:
        """The form in the history: always with the kind of its body."""
        kept = self.model_dump(mode="json", exclude_defaults=True)
        kept["body"]["kind"] = self.body.kind
        return kept


_AGENT: Final = "agent"
"""Stands for every agent in the table."""
_ROUTES: Final = frozenset(
    {
        ("cycle.input", ORCHESTRATOR, _AGENT),
        ("cycle.violation", ORCHESTRATOR, _AGENT),
        ("cycle.phase-result", _AGENT, ORCHESTRATOR),
        ("cycle.escalation", ORCHESTRATOR, USER),
        ("cycle.guidance", USER, ORCHESTRATOR),
        ("cycle.ended", ORCHESTRATOR, USER),
    }
)


def check_route(kind: str, sender: str, recipient: str) -> None:
    """Refuse (ProtocolError) a message without a route: one end is always the orchestrator (C3, C20, C58, K26)."""
    ends = (party if party in (ORCHESTRATOR, USER) else _AGENT for party in (sender, recipient))
    if (kind, *ends) not in _ROUTES:
        told = f"{kind} from {sender} to {recipient} is on no route"
        raise ProtocolError(f"{told}; a cycle's agents talk to the orchestrator only")


_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def one_line(text: str) -> str:
    """An agent's text on one line, so that it cannot start a section."""
    return _CONTROLS.sub(" ", " ".join(text.split()))


def message_text(message: Message) -> str:
    """The whole text of a message."""
    match message.body:
        case Input() as body:
            return input_text(body)
        case Reported(result=result):
            return result_text(result)
        case Violation(problem=problem):
            return f"{problem}\n\nEnd your answer with exactly one PHASE_RESULT.\n"
        case Escalation() as body:
            head = f"{body.escalation_id}: {body.reason}\n\n{body.detail}\n\n"
            issues = "".join(f"- {issue}\n" for issue in body.remaining_issues)
            return f"{head}Standing still: {', '.join(body.agents)}\n{issues}"
        case Guidance() as body:
            return f"{body.escalation_id}: {body.decision}\n\n{body.text or 'no reason was given'}\n"
        case Ended() as body:
            issues = "".join(f"- known issue: {issue}\n" for issue in body.remaining_issues)
            return f"{body.outcome}, v{body.version} after {body.iterations} iterations\n{issues}"


def input_text(body: Input) -> str:
    """The text of a `send_input`: six sections, in this order (C32, K16)."""
    actions = "\n".join(f"{number}. {one_line(text)}" for number, text in enumerate(body.actions, 1))
    criteria = "\n".join(f"- [ ] {one_line(text)}" for text in body.criteria)
    title = "FEEDBACK" if body.input is InputKind.FEEDBACK else body.input.upper()
    return (
        f"## {title} FROM {body.source.upper()}\n\n{one_line(body.summary)}\n\n"
        f"## REFERENCED OUTPUT\nFile: {body.file or 'none'}\nVersion: {body.version}\n\n"
        f"## REQUIRED ACTION\n\n{actions}\n\n"
        f"## SUCCESS CRITERIA\n\n{criteria}\n\n"
        f"## NEXT STEP\n{body.next_step}\n\n"
        f"## CONTEXT\n\nPrevious iteration: {body.previous_iteration}\nCurrent iteration: {body.current_iteration}\n"
    )


def result_text(result: PhaseResult) -> str:
    """A PHASE_RESULT in the form that ends an agent's run (C33, C34)."""
    lines = [
        "PHASE_RESULT:",
        f"- phase: {result.phase}",
        f"- status: {result.status}",
        f"- files_written: {_listed(result.files_written)}",
        f"- summary: {result.summary}",
        *(f"- {name}: {_listed(value)}" for name, value in result.fields.items()),
        f"- issues: {_listed(result.issues)}",
        *([f"\nPHASE_DETAILS:\n{result.details}"] if result.details else []),
    ]
    return "\n".join(lines) + "\n"


def _listed(values: str | tuple[str, ...]) -> str:
    """On one line, or on separate lines if an item contains a comma; a text unchanged."""
    if isinstance(values, str):
        return values
    if any("," in value for value in values):
        return "".join(f"\n  - {value}" for value in values)
    return f"[{', '.join(values)}]"
