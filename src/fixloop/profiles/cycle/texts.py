"""What each message of a cycle says in full, as its recipient reads it (C21, C32-C34, K16). Pure text."""

import re
from contextlib import suppress
from typing import Final

from fixloop.errors import UsageError
from fixloop.profiles.cycle import messages as msg
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.workers import key_of, worker

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def one_line(text: str) -> str:
    """An agent's text on one line, so that it cannot begin a section."""
    return _CONTROLS.sub(" ", " ".join(text.split()))


def message_text(message: msg.Message) -> str:
    """The whole text of a message."""
    match message.body:
        case msg.Input() as body:
            return input_text(body)
        case msg.Reported(result=result):
            return result_text(result)
        case msg.Violation(problem=problem):
            return f"{problem}\n\nEnd your answer with exactly one PHASE_RESULT.\n"
        case msg.Escalation() as body:
            head = f"{body.escalation_id}: {body.reason}\n\n{body.detail}\n\n"
            issues = "".join(f"- {issue}\n" for issue in body.remaining_issues)
            return f"{head}Standing still: {', '.join(body.agents)}\n{issues}"
        case msg.Guidance() as body:
            return f"{body.escalation_id}: {body.decision}\n\n{body.text or 'no reason was given'}\n"
        case msg.Ended() as body:
            issues = "".join(f"- known issue: {issue}\n" for issue in body.remaining_issues)
            return f"{body.outcome}, v{body.version} after {body.iterations} iterations\n{issues}"


def input_text(body: msg.Input) -> str:
    """A `send_input` as its recipient reads it: six sections, in this order (C32, K16)."""
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
    """A PHASE_RESULT as an agent ends its run with (C33, C34)."""
    lines = [
        "PHASE_RESULT:",
        f"- phase: {result.phase}",
        f"- status: {result.status}",
        f"- files_written: {_listed(result.files_written)}",
        f"- summary: {result.summary}",
        *(
            f"- {name}: {value if isinstance(value, str) else _listed(value)}"
            for name, value in result.fields.items()
        ),
        f"- issues: {_listed(result.issues)}",
        *([f"\nPHASE_DETAILS:\n{result.details}"] if result.details else []),
    ]
    return "\n".join(lines) + "\n"


def _listed(values: tuple[str, ...]) -> str:
    """On one line, or on a line each where one has a comma in it."""
    if any("," in value for value in values):
        return "".join(f"\n  - {value}" for value in values)
    return f"[{', '.join(values)}]"


_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_FROM: Final = re.compile(r"(FEEDBACK|READY|CLARIFICATION|CONVERGENCE) FROM (.+)")
_NUMBERED: Final = re.compile(r"^(?:\d+[.)]|[-*](?: \[ \])?) +(.+)$", re.MULTILINE)
_PAIR: Final = re.compile(r"^([A-Z][A-Za-z ]+): *(.+)$", re.MULTILINE)


def read_feedback(text: str) -> msg.Input:
    """
    A `send_input` read back; the short form without references and context is read too (K16).

    Raises:
        UsageError: a section that both forms have is missing.
    """
    _, *parts = _SECTION.split(text)
    sections = {title.strip(): content for title, content in zip(parts[::2], parts[1::2], strict=True)}
    head = next((found for title in sections if (found := _FROM.fullmatch(title))), None)
    missing = [name for name in ("REQUIRED ACTION", "NEXT STEP") if name not in sections]
    if head is None or missing:
        what = ", ".join(missing) or "heading FEEDBACK FROM …"
        raise UsageError(
            f"this message has no {what}; a feedback has at least that, an action and a next step"
        )
    source = head[2].strip()
    with suppress(UsageError):
        source = worker(key_of(source)).name
    pairs = dict(_PAIR.findall(sections.get("REFERENCED OUTPUT", "") + "\n" + sections.get("CONTEXT", "")))
    action = sections["REQUIRED ACTION"]
    previous = int(pairs.get("Previous iteration", "1"))
    return msg.Input(
        input=InputKind(head[1].lower()),
        source=source,
        summary=sections[head[0]].strip(),
        file="" if pairs.get("File", "none") == "none" else pairs["File"],
        version=pairs.get("Version", ""),
        actions=tuple(_NUMBERED.findall(action)) or (action.strip(),),
        criteria=tuple(_NUMBERED.findall(sections.get("SUCCESS CRITERIA", ""))),
        next_step=sections["NEXT STEP"].strip(),
        previous_iteration=previous,
        current_iteration=int(pairs.get("Current iteration", previous + 1)),
    )
