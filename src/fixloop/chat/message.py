"""A message file: `{seq}-to-{role}.md`, its front matter, its header line and its body (E6 to E13)."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from fixloop.chat import string_yaml
from fixloop.chat.sections import misplaced, missing, sections
from fixloop.chat.vocabulary import Finding, Level, Role, shown

KEYS: Final = ("from", "to", "chat", "seq", "ts", "purpose")
"""The keys of the front matter, in the order of writing (E7)."""

MAX_SEQ: Final = 999

CHAT_NAME: Final = re.compile(r"[0-9]{4}-[a-z]{2}-[a-z0-9-]+")
"""The name of a chat's directory (E9)."""

_NAME: Final = re.compile(rf"([0-9]{{3}})-to-({'|'.join(Role)})\.md")
_ALMOST: Final = re.compile(r"([0-9]*)[-_ ]*to[-_ ].*\.(?:md|markdown|txt)", re.IGNORECASE)
_HEADER: Final = re.compile(r"--\s*TO\s+(\w+)\s*:?\s*", re.IGNORECASE)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_TIME: Final = re.compile(r"[0-9].*T[0-9].*")
_ROLES: Final = ", ".join(Role)
_FENCE: Final = "---"
_MAX_FRONT_LINES: Final = 100


class FileName(NamedTuple):
    """The parts of a message's file name."""

    seq: int
    role: Role


class Front(NamedTuple):
    """A message's front matter, complete and typed."""

    sender: Role
    recipient: Role
    chat: str
    seq: int
    ts: datetime
    """Aware; a time without a zone is taken as UTC."""
    purpose: str


class Message(NamedTuple):
    """A message file as it was read."""

    has_front: bool
    """False: it is from before the protocol, or wrong."""
    front: Front | None
    """None if it is invalid."""
    body: tuple[str, ...]
    """The lines below the header."""
    findings: tuple[Finding, ...]


def lines_of(text: str) -> list[str]:
    """The lines of a text with any line ends; other separators do not end a line."""
    return _LINE_END.split(text)


def stamp(at: datetime) -> str:
    """ISO 8601 in UTC to the second, such as `2025-09-06T00:00:00Z` (K14)."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime | None:
    """The time of an ISO 8601 text, or None. Without a zone it is UTC."""
    if not _TIME.fullmatch(text):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def file_name(seq: int, role: Role) -> str:
    return f"{seq:03}-to-{role}.md"


def read_name(name: str) -> FileName | None:
    """The parts of `name` if it is a message's name; else None."""
    hit = _NAME.fullmatch(name)
    return FileName(int(hit[1]), Role(hit[2])) if hit else None


def loose_number(name: str) -> int | None:
    """The number of a file that was meant as a message; 0 without one, None if it was not meant as a message."""
    hit = _ALMOST.fullmatch(name)
    return None if hit is None else int(hit[1][:9] or 0)


def header(role: Role) -> str:
    return f"-- TO {role.upper()}:"


def front_text(front: Front) -> str:
    """The front matter with its two fences; `seq` as in the file's name, text that YAML could misread is quoted."""
    values = {
        "from": front.sender,
        "to": front.recipient,
        "chat": front.chat,
        "seq": f"{front.seq:03}",
        "ts": string_yaml.quoted(stamp(front.ts)),
        "purpose": string_yaml.quoted(front.purpose),
    }
    return "\n".join([_FENCE, *(f"{key}: {value}" for key, value in values.items()), _FENCE, ""])


def rendered(front: Front, body: str) -> str:
    """The complete file of a new message."""
    return f"{front_text(front)}\n{header(front.recipient)}\n\n{body.strip(chr(10))}\n"


def read_message(text: str, name: FileName, chat: str, file: str) -> Message:
    """The message in `text` of the chat `chat`, with every finding; `file` is its path in findings."""
    lines = lines_of(text)
    opening = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[opening].rstrip() != _FENCE:
        told = f"it has no front matter: the first line has to be ---, and is {shown(lines[opening])}"
        return Message(False, None, tuple(lines), (Finding("front-matter", file, told, opening + 1),))
    fences = range(opening + 1, min(len(lines), opening + _MAX_FRONT_LINES))
    closing = next((number for number in fences if lines[number].rstrip() in (_FENCE, "...")), None)
    if closing is None:
        told = "the front matter does not end: a second line --- is missing"
        return Message(True, None, (), (Finding("front-matter", file, told, opening + 1),))
    try:
        entries = string_yaml.load("\n".join(lines[opening + 1 : closing]))
    except string_yaml.YamlError as error:
        line = opening + 1 + error.line
        broken = Finding("front-matter", file, f"the front matter cannot be read: {error}", line)
        return Message(True, None, (), (broken,))
    found = list(_front_findings(entries, opening + 1, name, chat, file))
    ts = moment(_text(entries, "ts"))
    front = None
    if not found and ts is not None:
        sender, recipient, purpose = (_text(entries, key) for key in ("from", "to", "purpose"))
        front = Front(Role(sender), Role(recipient), chat, name.seq, ts, purpose)
    body_start, misheaded = _headed(lines, closing + 1, name, file)
    body = tuple(lines[body_start:])
    found += misheaded
    role = _role(_text(entries, "from"))
    if role is not None and not misheaded:
        named = sections(body)
        if pair := misplaced(named, role):
            told = f"section {pair[1].title} comes after {pair[0].title}; {role}'s template has it before"
            found.append(Finding("sections", file, told, body_start + pair[1].line + 1))
        if absent := missing(named, role):
            told = f"sections of {role}'s template are missing: {', '.join(absent)}"
            found.append(Finding("sections", file, told, body_start or 1, Level.WARNING))
    return Message(True, front, body, tuple(found))


def _front_findings(
    entries: string_yaml.Mapping, above: int, name: FileName, chat: str, file: str
) -> Iterator[Finding]:
    """All errors in the front matter; `above` is the number of lines before it."""
    last = above + max((entry.line for entry in entries.values()), default=0)
    for key in KEYS:
        if key not in entries:
            yield Finding("front-matter", file, f"{key} is missing in the front matter", last, field=key)
    for key, entry in entries.items():
        told = _complaint(entries, key, name, chat)
        if told:
            rule = "timestamp" if key == "ts" else "front-matter"
            value = _text(entries, key)
            yield Finding(rule, file, told, above + entry.line, field=key, value=value)


def _complaint(entries: string_yaml.Mapping, key: str, name: FileName, chat: str) -> str:
    value = _text(entries, key)
    if key in ("from", "to"):
        role = _role(value)
        if role is None:
            return f"{key} is {shown(value)}; it has to be one of {_ROLES}"
        if key == "to" and role is not name.role:
            return f"to is {shown(value)}, but the file's name says {name.role}"
        same = key == "from" and value == _text(entries, "to")
        return f"from and to are both {value}; a message goes to somebody else" if same else ""
    if key == "chat" and value != chat:
        return f"chat is {shown(value)}, but the directory is {shown(chat)}"
    if key == "seq" and (not re.fullmatch("[0-9]{1,3}", value) or int(value) != name.seq):
        return f"seq is {shown(value)}, but the file's name says {name.seq:03}"
    if key == "ts" and moment(value) is None:
        return f"ts is {shown(value)}; it has to be ISO 8601, such as 2025-09-06T00:00:00Z"
    if key == "purpose" and not value.strip():
        return "purpose is empty; it has to say what the message is for"
    return "" if key in KEYS else f"{key} is no key of the front matter; it has {', '.join(KEYS)}"


def _text(entries: string_yaml.Mapping, key: str) -> str:
    value = entries[key].value if key in entries else ""
    return value if isinstance(value, str) else str(string_yaml.plain(value))


def _role(value: str) -> Role | None:
    return Role(value) if value in tuple(Role) else None


def _headed(lines: Sequence[str], start: int, name: FileName, file: str) -> tuple[int, list[Finding]]:
    first = next((number for number in range(start, len(lines)) if lines[number].strip()), start)
    wanted = header(name.role)
    line = lines[first].strip().lstrip("\ufeff") if first < len(lines) else ""
    if line == _FENCE:
        told = f"a second front matter begins here; a message has one, and then its header {wanted}"
        return first, [Finding("front-matter", file, told, first + 1, value=line)]
    hit = _HEADER.fullmatch(line)
    if hit is None:
        told = f"the header line is missing: {wanted} has to be the first line below the front matter"
        return first, [Finding("header", file, told, first + 1)]
    if line != header(name.role):
        told = f"the header is {shown(line)}, but the file is for {name.role}: {wanted}"
        return first + 1, [Finding("header", file, told, first + 1, value=line)]
    return first + 1, []
