"""The coordination log and the texts of `send_input`, drawn from records (C24-C29, C32, K14, K16)."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Final

from fixloop.errors import UsageError
from fixloop.profiles.cycle.messages import Input
from fixloop.profiles.cycle.records import Blocker, DecisionRecord, InputKind
from fixloop.profiles.cycle.sending import primary
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import key_of, worker

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def coordination_log(state: Cycle) -> str:
    """`feedback.md`: timeline, decisions, blockers and dependencies, as they stand (C24-C29)."""
    zone = timezone(timedelta(minutes=state.limits.utc_offset_minutes))
    sections = (
        ("Timeline", _timeline(state, zone)),
        ("Decision Records", _joined(_decision(record, zone) for record in state.decisions)),
        ("Blockers & Resolutions", _joined(_blocker(record, zone) for record in state.blockers)),
        ("Cross-Agent Dependencies", _dependencies(state)),
    )
    head = f"# Feedback & Coordination Log - Version {state.version}\n"
    return head + "".join(f"\n## {title}\n{_lines(lines)}" for title, lines in sections)


def _lines(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _joined(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(line for group in groups for line in group)


def _timeline(state: Cycle, zone: timezone) -> tuple[str, ...]:
    return tuple(
        f"- [{_time(entry.at, zone)}] {entry.actor}: {_line(entry.text)}" for entry in state.timeline
    )


def _decision(record: DecisionRecord, zone: timezone) -> tuple[str, ...]:
    return (
        f"- [{_time(record.at, zone)}] {record.made_by.upper()}: {_line(record.description)}",
        f"  - Decision: {_line(record.chosen_option)}",
        f"  - Rationale: {_line(record.rationale)}",
        f"  - Impact: {_line(record.impact)}",
    )


def _blocker(record: Blocker, zone: timezone) -> tuple[str, ...]:
    return (
        f"- [{_time(record.at, zone)}] Blocker: {_line(record.description)}",
        f"  - Reported by: {worker(record.reported_by).name}",
        f"  - Resolution: {_line(record.resolution) or 'none yet'}",
        f"  - Status: {record.status.capitalize()}",
    )


def _dependencies(state: Cycle) -> tuple[str, ...]:
    return tuple(
        f"- {worker(agent.key).name} depends on: {_named(state, other)}"
        for agent in state.agents
        for other in agent.depends_on
    )


_OUTPUTS: Final = {"ra": "RA requirements", "ep": "EP plan", "cd": "CD code changes", "vas": "VAS results"}


def _named(state: Cycle, key: str) -> str:
    version = f" (v{primary(state, key)[1]})" if state.documents_of(key) else ""
    return _OUTPUTS.get(key, worker(key).name) + version


def _time(at: datetime, zone: timezone) -> str:
    return f"{at.astimezone(zone):%H:%M:%S}"


def _line(text: str) -> str:
    """Agents' words as one line, so that none can begin a section of its own."""
    return _CONTROLS.sub(" ", " ".join(text.split()))


def input_text(body: Input) -> str:
    """A `send_input` as its recipient reads it: six sections, in this order (C32, K16)."""
    actions = "\n".join(f"{number}. {_line(text)}" for number, text in enumerate(body.actions, 1))
    criteria = "\n".join(f"- [ ] {_line(text)}" for text in body.criteria)
    title = "FEEDBACK" if body.input is InputKind.FEEDBACK else body.input.upper()
    return (
        f"## {title} FROM {body.source.upper()}\n\n{_line(body.summary)}\n\n"
        f"## REFERENCED OUTPUT\nFile: {body.file or 'none'}\nVersion: {body.version}\n\n"
        f"## REQUIRED ACTION\n\n{actions}\n\n"
        f"## SUCCESS CRITERIA\n\n{criteria}\n\n"
        f"## NEXT STEP\n{body.next_step}\n\n"
        f"## CONTEXT\n\nPrevious iteration: {body.previous_iteration}\nCurrent iteration: {body.current_iteration}\n"
    )


_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_FROM: Final = re.compile(r"(FEEDBACK|READY|CLARIFICATION|CONVERGENCE) FROM (.+)")
_NUMBERED: Final = re.compile(r"^(?:\d+[.)]|[-*](?: \[ \])?) +(.+)$", re.MULTILINE)
_PAIR: Final = re.compile(r"^([A-Z][A-Za-z ]+): *(.+)$", re.MULTILINE)


def read_feedback(text: str) -> Input:
    """
    A `send_input` read back; the short form without references and context is read too (K16).

    Raises:
        UsageError: a section that both forms have is missing.
    """
    sections = dict(_sections(text))
    head = next((found for title in sections if (found := _FROM.fullmatch(title))), None)
    missing = [name for name in ("REQUIRED ACTION", "NEXT STEP") if name not in sections]
    if head is None or missing:
        what = ", ".join(missing) or "heading FEEDBACK FROM …"
        raise UsageError(
            f"this message has no {what}; a feedback has at least that, an action and a next step"
        )
    pairs = dict(_PAIR.findall(sections.get("REFERENCED OUTPUT", "") + "\n" + sections.get("CONTEXT", "")))
    action = sections["REQUIRED ACTION"]
    previous = int(pairs.get("Previous iteration", "1"))
    return Input(
        input=InputKind(head[1].lower()),
        source=_known(head[2]),
        summary=sections[head[0]].strip(),
        file="" if pairs.get("File", "none") == "none" else pairs["File"],
        version=pairs.get("Version", ""),
        actions=tuple(_NUMBERED.findall(action)) or (action.strip(),),
        criteria=tuple(_NUMBERED.findall(sections.get("SUCCESS CRITERIA", ""))),
        next_step=sections["NEXT STEP"].strip(),
        previous_iteration=previous,
        current_iteration=int(pairs.get("Current iteration", previous + 1)),
    )


def _known(name: str) -> str:
    try:
        return worker(key_of(name)).name
    except UsageError:
        return name.strip()


def _sections(text: str) -> Iterator[tuple[str, str]]:
    heads = list(_SECTION.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        yield head[1].strip(), text[head.end() : following.start() if following else len(text)]
