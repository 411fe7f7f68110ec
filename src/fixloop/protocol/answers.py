"""Reading a Fix Completion that an agent or a person wrote (A8, A31-A34, A71).

Accepts the Markdown of the protocol, tolerant about headings, bold and order, and the same facts as JSON.
Refuses whatever cannot be a completion of the open request, and says everything that is wrong with it at
once. Duration and marks are the engine's measurements and are not taken from an answer.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from fixloop.errors import UsageError
from fixloop.protocol.markdown import NOTHING, unescape
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, FixCompletion
from fixloop.protocol.routes import HANDLES, violation
from fixloop.protocol.specialists import NAMES

__all__ = ["LIMIT_BYTES", "LIMIT_LINES", "InvalidAnswer", "parse_answer"]

LIMIT_BYTES: Final = 1_000_000
#: Markdown costs time by the line; this bounds the worst text that fits LIMIT_BYTES to about a second.
LIMIT_LINES: Final = 20_000
_MOST_VIOLATIONS: Final = 20
_SHOWN: Final = 80
_BELOW_HEADINGS: Final = 7
_SUMMARY, _FIXES, _FILES, _READY = (
    "Completion Summary",
    "Fixes Applied",
    "Files Modified",
    "Ready for Re-validation",
)
_SECTIONS: Final = {
    "completion summary": _SUMMARY,
    "fixes applied": _FIXES,
    "files modified": _FILES,
    "ready for re validation": _READY,
    "ready for revalidation": _READY,
}
_NOT_A_LETTER: Final = re.compile(r"[^a-z]+")
_BOLD: Final = re.compile(r"\*\*([^*]{1,60})\*\*[ \t]*:?(.*)", re.DOTALL)
_PLAIN: Final = re.compile(r"([A-Za-z][A-Za-z -]{1,60}):(.*)", re.DOTALL)
_END: Final = re.compile(r"[-*\s]{0,8}(From|To)\*{0,2}:\*{0,2}\s{0,4}`?(@?[\w-]{1,80})", re.IGNORECASE)
_MESSAGE_ID: Final = re.compile(r"[-*\s]{0,8}Message ID[*:\s]{1,8}`?([^\s`*]{1,200})", re.IGNORECASE)
_INTRODUCTION: Final = re.compile(r"Fixes completed for feature #-?\d+, iteration \d+\.?\s*")
_OWN_FIELD: Final = re.compile(r"\*\*(?:Iteration|Fix Duration):?\*\*:? .*")
_MARKER: Final = re.compile(r"(\s*(?:[-+*]|\d{1,9}[.)]))(\s+|\Z)")
_CODE: Final = re.compile(r"`([^`]+)`.*", re.DOTALL)
_YES: Final = re.compile(r"\W{0,8}(?:(?:yes|true)\b|ready\W*\Z)", re.IGNORECASE)
_NAMED: Final = re.compile(rf"(?<![\w-])({'|'.join(NAMES)})(?:-specialist)?(?![\w-])")
_WORD: Final = re.compile(r"[\w.-]{1,80}", re.ASCII)
# Setext headings would turn the line above a rule into one, references would vanish: neither is meant.
# Deep nesting says nothing here and is what makes a hostile text slow.
_MARKDOWN: Final = MarkdownIt("commonmark", {"maxNesting": 6}).disable(
    ["lheading", "reference", "html_block"]
)
_MARKDOWN.core.ruler.enableOnly(["normalize", "block"])


class InvalidAnswer(UsageError):
    """An answer that is no Fix Completion of the open request (A71)."""

    @property
    def violations(self) -> tuple[str, ...]:
        """Everything that is missing or wrong, one entry each."""
        return tuple(self.args)

    def __str__(self) -> str:
        return f"the answer is not a valid Fix Completion: {'; '.join(self.violations)}"


class _Expected(NamedTuple):
    """The open request that an answer has to fit."""

    issue: int
    iteration: int
    specialist: str


class _Start(NamedTuple):
    """Where a section begins, and what stands on its first line after its name."""

    line: int
    level: int
    name: str
    rest: str


def _none_is_empty(value: object) -> object:
    return () if isinstance(value, str) and value.casefold() in NOTHING else value


_Entries = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=r"\S")], ...], BeforeValidator(_none_is_empty)
]


class _JsonAnswer(BaseModel):
    """The facts of a Fix Completion as JSON."""

    model_config = ConfigDict(extra="forbid")

    message_id: str
    specialist: str | None = None
    summary: str = ""
    fixes: _Entries
    files: _Entries
    ready: bool


def parse_answer(text: str, *, issue: int, iteration: int, specialist: str) -> FixCompletion:
    """
    Read `text`, the answer to `FIXREQ-{issue}-{iteration}` of `specialist`.

    Args:
        text: Markdown or JSON, at most LIMIT_BYTES and LIMIT_LINES.
        issue: The issue of the open request.
        iteration: The number of the failed run that the open request answers.
        specialist: The short name of the specialist to run again.

    Raises:
        InvalidAnswer: with everything that is missing or wrong; nothing else is ever raised.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LIMIT_BYTES:
        raise InvalidAnswer(f"it has {size} bytes, the limit is {LIMIT_BYTES}; shorten it")
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (rows := text.count("\n")) > LIMIT_LINES:
        raise InvalidAnswer(f"it has {rows} lines, the limit is {LIMIT_LINES}; shorten it")
    text = _unwrapped(text)
    expected = _Expected(issue, iteration, specialist)
    if text.lstrip().startswith("{"):
        return _from_json(text, expected)
    return _from_markdown(text, expected)


def _unwrapped(text: str) -> str:
    """The content of the one fence that some agents put around a whole answer."""
    if text.lstrip().startswith(("```", "~~~")):
        tokens = _MARKDOWN.parse(text)
        if len(tokens) == 1 and tokens[0].type == "fence":
            return tokens[0].content
    return text


def _from_markdown(text: str, expected: _Expected) -> FixCompletion:
    document = text.split("\n")
    starts = _starts(document)
    sections = {start.name: body for start, body in _bodies(document, starts)}
    fixes = _entries(sections.get(_FIXES, ""))
    files = _entries(sections.get(_FILES, ""), each_line=True)
    violations = [
        *_id_violations(_message_id(document, starts), expected),
        *_route_violations(_header(document, starts)),
        *_section_violations(starts),
        *(
            _empty(name)
            for name, found in ((_FIXES, fixes), (_FILES, files))
            if name in sections and found is None
        ),
        *(_readiness_violations(sections[_READY], expected) if _READY in sections else ()),
    ]
    if violations:
        raise InvalidAnswer(*violations)
    return FixCompletion(
        specialist=expected.specialist,
        summary=_summary(sections[_SUMMARY]),
        fixes=tuple(map(unescape, fixes or ())),
        files=tuple(map(_path, files or ())),
    )


def _starts(document: list[str]) -> list[_Start]:
    """Every known section and every foreign boundary, in the order of the lines."""
    tokens = _MARKDOWN.parse("\n".join(document))
    found = list(_block_starts(tokens))
    fenced = {number for token in tokens if token.type == "fence" for number in range(*_span(token))}
    open_lines = [(number, text) for number, text in enumerate(document) if number not in fenced]
    # A looser form counts only for names that no stricter one has: `Files Modified: x` may be part of a text.
    for form in (_BOLD, _PLAIN):
        known = {start.name for start in found}
        found += [start for start in _line_starts(open_lines, form) if start.name not in known]
    return sorted(found)


def _block_starts(tokens: list[Token]) -> Iterator[_Start]:
    for index, token in enumerate(tokens):
        if token.level == 0 and token.type == "hr":
            yield _Start(_span(token)[0], 0, "", "")
        elif token.level == 0 and token.type == "heading_open":
            name, _, rest = tokens[index + 1].content.partition(":")
            yield _Start(_span(token)[0], int(token.tag[1:]), _section(name), rest)


def _line_starts(open_lines: list[tuple[int, str]], form: re.Pattern[str]) -> Iterator[_Start]:
    for number, text in open_lines:
        match = form.match(text)
        if match and (name := _section(match[1])):
            yield _Start(number, _BELOW_HEADINGS, name, match[2])


def _bodies(document: list[str], starts: list[_Start]) -> Iterator[tuple[_Start, str]]:
    for index, start in enumerate(starts):
        if start.name:
            ends = (after.line for after in starts[index + 1 :] if after.name or after.level <= start.level)
            end = next(ends, len(document))
            yield start, "\n".join([start.rest.strip(), *document[start.line + 1 : end]]).strip("\n")


def _entries(body: str, *, each_line: bool = False) -> tuple[str, ...] | None:
    """The raw items of a section: empty where it says `none`, None where it says nothing at all."""
    rows = body.split("\n")
    items = [
        _item(rows[slice(*_span(token))])
        for token in _MARKDOWN.parse(body)
        if token.type == "list_item_open" and token.level == 1
    ]
    if not items:
        items = rows if each_line else [body]
    items = [item for item in items if item.strip()]
    if len(items) == 1 and items[0].strip().casefold() in NOTHING:
        return ()
    return tuple(items) or None


def _item(rows: list[str]) -> str:
    """One list item without its marker and the indentation that the marker asks for."""
    marker = _MARKER.match(rows[0])
    width = marker.end() if marker else 0
    rest = [row[width:] if not row[:width].strip() else row.lstrip() for row in rows[1:]]
    return "\n".join([rows[0][width:], *rest]).rstrip("\n ")


def _path(item: str) -> str:
    code = _CODE.fullmatch(item)
    return code[1] if code else unescape(item.strip())


def _summary(body: str) -> str:
    text = _INTRODUCTION.sub("", body, count=1) if _INTRODUCTION.match(body) else body
    text = text.partition("**Marks**:")[0]
    return unescape("\n".join(row for row in text.split("\n") if not _OWN_FIELD.fullmatch(row)).strip())


def _message_id(document: list[str], starts: list[_Start]) -> str | None:
    matches = (_MESSAGE_ID.match(row) for row in _header(document, starts))
    return next((match[1] for match in matches if match), None)


def _header(document: list[str], starts: list[_Start]) -> list[str]:
    """The rows above the first section."""
    return document[: next((start.line for start in starts if start.name), len(document))]


def _route_violations(header: list[str]) -> Iterator[str]:
    """A completion to a specialist is refused (A3); who signs with a name of its own is the main agent."""
    named = {match[1].lower(): match[2] for match in map(_END.match, header) if match}
    ends = {end: handle for end, handle in named.items() if handle in HANDLES}
    found = violation(
        "validation", "fix-completion", ends.get("from", MAIN_AGENT), ends.get("to", ORCHESTRATOR)
    )
    if found:
        yield found


def _id_violations(found: str | None, expected: _Expected) -> Iterator[str]:
    wanted = f"FIXDONE-{expected.issue}-{expected.iteration}"
    if found is None:
        yield f'missing field "Message ID"; it is {wanted}'
    elif found != wanted:
        yield f"id {_shown(found)} while FIXREQ-{expected.issue}-{expected.iteration} is open; it is {wanted}"


def _section_violations(starts: list[_Start]) -> Iterator[str]:
    names = [start.name for start in starts]
    for name in (_SUMMARY, _FIXES, _FILES, _READY):
        if name not in names:
            yield f'missing section "{name}"'
        elif names.count(name) > 1:
            yield f'section "{name}" appears {names.count(name)} times; write it once'


def _readiness_violations(body: str, expected: _Expected) -> Iterator[str]:
    """Not ready is no progress (A33); nor is an answer that is ready for somebody else."""
    if not _YES.match(body):
        yield f'not ready: "{_READY}" says {_shown(body)}, not yes'
    named = set(_NAMED.findall(body))
    if expected.specialist in NAMES and named and expected.specialist not in named:
        yield f'"{_READY}" names {", ".join(sorted(named))}, but {expected.specialist} is to run again'


def _from_json(text: str, expected: _Expected) -> FixCompletion:
    try:
        answer = _JsonAnswer.model_validate_json(text)
    except ValidationError as error:
        details = error.errors()[:_MOST_VIOLATIONS]
        more = error.error_count() - len(details)
        rest = [f"{more} more of the kind"] if more else []
        raise InvalidAnswer(*map(_json_violation, details), *rest) from None
    violations = [*_id_violations(answer.message_id, expected)]
    if not answer.ready:
        violations.append('not ready: field "ready" is false')
    if answer.specialist not in (None, expected.specialist):
        violations.append(f'field "specialist" is {_shown(answer.specialist)}; it is {expected.specialist}')
    if violations:
        raise InvalidAnswer(*violations)
    return FixCompletion(
        specialist=expected.specialist, summary=answer.summary, fixes=answer.fixes, files=answer.files
    )


def _json_violation(detail: ErrorDetails) -> str:
    field = _shown(".".join(map(str, detail["loc"])))
    match detail["type"]:
        case "json_invalid":
            return f"it is not valid JSON: {_shown(detail['msg'])}"
        case "missing":
            return f"missing field {field}"
        case "extra_forbidden":
            return f"unknown field {field}; the fields are {', '.join(_JsonAnswer.model_fields)}"
        case "string_pattern_mismatch":
            return f"field {field} is blank"
        case _:
            return f"field {field}: {detail['msg']}"


def _empty(name: str) -> str:
    return f'section "{name}" is empty; list the entries, or write none'


def _section(title: str) -> str:
    """The section that `title` names, however it is numbered or decorated; empty for any other title."""
    return _SECTIONS.get(_NOT_A_LETTER.sub(" ", title.lower()).strip(), "")


def _span(token: Token) -> tuple[int, int]:
    first, end = token.map or (0, 0)
    return first, end


def _shown(text: str) -> str:
    """A piece of the answer, safe to quote in one line."""
    if _WORD.fullmatch(text):
        return text
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
