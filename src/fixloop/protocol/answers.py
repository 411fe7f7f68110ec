"""Reads a Fix Completion that an agent or a person wrote (A8, A31-A34, A71).

Accepts Markdown and JSON; a refusal names everything that is wrong. Duration and marks are measured by the engine and
not taken from an answer; the files are the agent's claim, to be compared with the real change (`claims`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol import answer_json, answer_sections as parts, declining, ids
from fixloop.protocol.answer_json import shown
from fixloop.protocol.declining import Kind
from fixloop.protocol.markdown import unescape, unitem
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR
from fixloop.protocol.roles import HANDLES, violation
from fixloop.protocol.specialists import NAMES

LIMIT_BYTES: Final = 1_000_000
#: Parsing Markdown takes time per line; this limits the worst text of LIMIT_BYTES to about a second.
LIMIT_LINES: Final = 20_000
_MOST_LINES: Final = 5
_INTRODUCTION: Final = re.compile(r"Fixes completed for feature #-?\d+, iteration \d+\.?\s*")
_OWN_FIELD: Final = re.compile(r"\*\*(?:Iteration|Fix Duration):?\*\*:? .*")
_CODE: Final = re.compile(r"`([^`]+)`.*", re.DOTALL)
_LEAD: Final = r"[\s*_>+✅☑️-]{0,8}(?:\[[xX✓]\])?[\s*_✅-]{0,8}"
_YES: Final = re.compile(rf"{_LEAD}(?:(?:yes|true)\b|ready\W*\Z)", re.IGNORECASE)
#: A plain no. "No further failures" is not one, and an unclear answer is asked for again, not escalated.
_NO: Final = re.compile(
    r"[\W_]{0,8}(?:false\b|not (?:yet|ready|done|complete)\b"
    r"|no\b(?!\s+(?:further|more|remaining|known|open|other|blockers?|issues?|problems?|failures?|errors?)\b))"
    r"[*_]{0,2}\s*[-–—.,;:!]?\s*",
    re.IGNORECASE,
)
_DECLINED: Final = re.compile(r"\s{0,99}BLOCKED:\s{0,99}(\S(?:.{0,9999}\S)?)\s{0,99}", re.DOTALL)
_OPEN_BOX: Final = re.compile(r"[\s*_+-]{0,8}\[\s*\]")
_NAMED: Final = re.compile(rf"(?<![\w-])({'|'.join(NAMES)})(?:-specialist)?(?![\w-])")


class InvalidAnswer(UsageError):
    """An answer that is no Fix Completion for the open request (A71)."""

    @property
    def violations(self) -> tuple[str, ...]:
        """Everything that is missing or wrong, one entry each."""
        return tuple(self.args)

    def __str__(self) -> str:
        return f"the answer is not a valid Fix Completion: {'; '.join(self.violations)}"


class AnsweredAlready(InvalidAnswer):
    """An answer to an earlier request of the same specialist: a repeated answer (R8)."""

    def __str__(self) -> str:
        return f"this was answered already: {'; '.join(self.violations)}; nothing was changed"


class Answer(NamedTuple):
    """The content of an answer."""

    summary: str
    fixes: tuple[str, ...]
    files: tuple[str, ...]
    """As the agent named them."""
    ready: bool = True
    reason: str = ""
    """Why it is not ready, in the agent's words."""
    declined: Kind | None = None
    """The kind of refusal, if it declines to make a fix."""

    @property
    def blocker(self) -> str:
        """The blocker that a completion signals if it is not ready (A33, G8)."""
        if self.declined:
            return self.reason
        return f"not ready: {self.reason or self.summary or 'the answer does not say why'}"


class _Expected(NamedTuple):
    """The open request that an answer has to match."""

    issue: int
    iteration: int
    specialist: str


def decode_answer(raw: bytes) -> str:
    """Decode an answer of at most LIMIT_BYTES: UTF-8, or UTF-16 if it has a byte order mark."""
    if len(raw) > LIMIT_BYTES:
        raise InvalidAnswer(f"it has more than {LIMIT_BYTES} bytes, the limit; shorten it")
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        found = f"0x{raw[error.start]:02x}" if error.start < len(raw) else "an unfinished character"
        raise InvalidAnswer(f"it is not {encoding.upper()} text: {found} at byte {error.start}") from None


def parse_answer(text: str, *, issue: int, iteration: int, specialist: str) -> Answer:
    """Read the answer to `FIXREQ-{issue}-{iteration}` of `specialist`. It is Markdown or JSON, possibly in one fence;
    or it declines (see `declining`) or says `BLOCKED:` and why, which need no other field (A33). Raises only
    InvalidAnswer, with everything that is missing or wrong."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LIMIT_BYTES:
        raise InvalidAnswer(f"it has {size} bytes, the limit is {LIMIT_BYTES}; shorten it")
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (rows := text.count("\n")) > LIMIT_LINES:
        raise InvalidAnswer(f"it has {rows} lines, the limit is {LIMIT_LINES}; shorten it")
    first = 1
    if not text.lstrip().startswith("{") and not parts.sections(text):
        # Some agents put their answer in a fence.
        inside = [
            (line, content)
            for line, content in parts.fences(text)
            if content.lstrip().startswith("{") or parts.sections(content)
        ]
        if len(inside) > 1:
            lines = ", ".join(str(line) for line, _ in inside[:_MOST_LINES])
            raise InvalidAnswer(f"it has {len(inside)} answers, in the fences at lines {lines}; write one")
        if inside:
            first, text = inside[0]
    expected = _Expected(issue, iteration, specialist)
    try:
        refused = declining.declined(text)
    except UsageError as error:
        raise InvalidAnswer(str(error)) from None
    if refused is not None:
        return Answer(refused.text, (), (), ready=False, reason=refused.text, declined=refused.kind)
    if declined := _DECLINED.fullmatch(text):
        return Answer(declined[1], (), (), ready=False, reason=declined[1])
    if text.lstrip().startswith("{"):
        return _from_json(text, expected)
    return _from_markdown(text, first, expected)


def _from_markdown(text: str, first: int, expected: _Expected) -> Answer:
    found = [section._replace(line=section.line + first - 1) for section in parts.sections(text)]
    by_name = {section.name: section for section in found}
    head = parts.header(text, found[0].line - first + 1 if found else text.count("\n") + 2)
    violations = [
        *_id_violations(*head.message_id, expected, first),
        *_route_violations(head, first),
        *_section_violations(found),
    ]
    lists: dict[str, tuple[str, ...]] = {}
    for name in (parts.FIXES, parts.FILES):
        if name in by_name:
            items = parts.entries(by_name[name].body, each_line=name == parts.FILES)
            lists[name] = items or ()
            if items is None:
                told = f'{_at(by_name[name].line)}section "{name}" is empty; list the entries, or write none'
                violations.append(told)
    ready, reason = True, ""
    if parts.READY in by_name:
        ready, reason, wrong = _readiness(by_name[parts.READY].body, expected)
        violations += [f"{_at(by_name[parts.READY].line)}{violation}" for violation in wrong]
    if violations:
        raise InvalidAnswer(*violations)
    body = by_name[parts.SUMMARY].body
    body = body[opening.end() :] if (opening := _INTRODUCTION.match(body)) else body
    rows = body.partition("**Marks**:")[0].split("\n")
    return Answer(
        summary=unescape("\n".join(row for row in rows if not _OWN_FIELD.fullmatch(row)).strip()),
        fixes=tuple(map(unitem, lists[parts.FIXES])),
        files=tuple(
            code[1] if (code := _CODE.fullmatch(item)) else unitem(item.strip())
            for item in lists[parts.FILES]
        ),
        ready=ready,
        reason=reason,
    )


def _from_json(text: str, expected: _Expected) -> Answer:
    facts, violations = answer_json.read(text)
    if "message_id" in facts:
        violations = [*_id_violations(facts["message_id"], 0, expected), *violations]
    ready, reason = facts.get("ready", True), facts.get("reason", "")
    if isinstance(ready, str):
        ready, said, wrong = _readiness(ready, expected)
        reason = reason or said
        violations += wrong
    if facts.get("specialist") not in (None, expected.specialist, f"{expected.specialist}-specialist"):
        found = shown(str(facts["specialist"]))
        violations.append(f'field "specialist" is {found}; it is {expected.specialist}')
    if violations:
        raise InvalidAnswer(*violations)
    return Answer(
        facts["summary"], tuple(facts["fixes"]), tuple(facts["files"]), ready, "" if ready else reason
    )


def _id_violations(found: str, line: int, expected: _Expected, first: int = 1) -> Iterator[str]:
    wanted = ids.completion_id(expected.issue, expected.iteration)
    where = _at(line, first) if line else ""
    if not found:
        yield f'missing field "Message ID"; it is {wanted}'
    elif found != wanted:
        opened = ids.request_id(expected.issue, expected.iteration)
        violation = f"{where}id {shown(found)} while {opened} is open; it is {wanted}"
        earlier = (ids.completion_id(expected.issue, number) for number in range(1, expected.iteration))
        if found in earlier:
            raise AnsweredAlready(violation)
        yield violation


def _route_violations(head: parts.Header, first: int) -> Iterator[str]:
    """A completion to a specialist is refused (A3); a signature that is no known handle is the main agent's."""
    sender, recipient = (end if end[0] in HANDLES else None for end in (head.sender, head.recipient))
    found = violation(
        "validation",
        "fix-completion",
        sender[0] if sender is not None else MAIN_AGENT,
        recipient[0] if recipient is not None else ORCHESTRATOR,
    )
    if found:
        yield f"{_at((recipient or sender or ('', 1))[1], first)}{found}"


def _section_violations(found: Sequence[parts.Section]) -> Iterator[str]:
    for name in parts.SECTIONS:
        lines = [section.line for section in found if section.name == name]
        if not lines:
            yield f'missing section "{name}"'
        elif len(lines) > 1:
            where = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
            yield f'section "{name}" appears {len(lines)} times (lines {where}); write it once'


def _readiness(words: str, expected: _Expected) -> tuple[bool, str, list[str]]:
    wrong = []
    unticked = _OPEN_BOX.match(words) is not None
    ready = _YES.match(words) is not None and not unticked
    refused = None if unticked else _NO.match(words)
    if not ready and refused is None:
        wrong.append(f'"{parts.READY}" says {shown(words)}, neither yes nor no')
    named = set(_NAMED.findall(words))
    if expected.specialist in NAMES and named and expected.specialist not in named:
        told = f'"{parts.READY}" names {", ".join(sorted(named))}, but {expected.specialist} is to run again'
        wrong.append(told)
    reason = "" if ready or refused is None else unescape(words[refused.end() :].strip())
    return ready, reason, wrong


def _at(line: int, first: int = 1) -> str:
    """The location, counted in the whole answer; `first` is the first line of its Markdown."""
    return f"line {line + first - 1}: "
