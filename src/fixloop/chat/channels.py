"""The output of agents: every line goes through a channel, and a log of such lines can be checked (K32, E42 to E44).

A line reads `{role}/{channel}: {text}`. Lines without that prefix are not an agent's, but a worker's or a runner's.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from fixloop.chat.message import lines_of
from fixloop.chat.vocabulary import Finding, Level, Role, shown
from fixloop.machine.terminal_text import visible

TO_USER: Final = ("TO USER:", "STATUS:", "ACTION NEEDED:", "CONTEXT:")
"""The beginnings of the lines of a TO USER block, in order (E20)."""

_HEAD: Final = re.compile(rf"\s*({'|'.join(Role)})/(\w+):(?: (.*)|$)", re.IGNORECASE)
_CHAT_LINK: Final = re.compile(r"[0-9]{4}-[a-z]{2}-[a-z0-9-]+")


class Channel(StrEnum):
    """The kind of a line: said by the agent, printed by a command that it ran, about a failure, or for a person."""

    AGENT = "agent"
    TOOL = "tool"
    ERROR = "error"
    TO_USER = "to_user"


class Line(NamedTuple):
    """A tagged line of a log."""

    number: int
    """From 1."""
    role: Role
    channel: str
    text: str


def tagged(role: Role, channel: Channel, text: str) -> list[str]:
    """`text` as lines of a log."""
    return [f"{role}/{channel}: {visible(line)}".rstrip() for line in lines_of(text)]


def to_user(status: str, action: str, chat: str) -> str:
    """The architect's block for a person; `chat` is the path of the directory."""
    values = ("", status, action, chat)
    return "\n".join(f"{head} {value}".rstrip() for head, value in zip(TO_USER, values, strict=True))


def log_findings(text: str, file: str) -> list[Finding]:
    """The forbidden output of the agents in the log `text`; `file` is its name in findings."""
    lines = []
    for number, raw in enumerate(lines_of(text), 1):
        hit = _HEAD.match(raw)
        if hit is not None:
            lines.append(Line(number, Role(hit[1].lower()), hit[2].lower(), hit[3] or ""))
    if not lines:
        told = "no line reads {role}/{channel}: {text}, so it shows nothing of what agents printed"
        return [Finding("output", file, told, level=Level.WARNING)]
    found: list[Finding] = []
    for (role, channel), told_lines in groupby(lines, key=lambda line: (line.role, line.channel)):
        if channel == Channel.TO_USER and role is Role.ARCHITECT:
            found += _blocks(list(told_lines), file)
        elif channel not in (Channel.TOOL, Channel.ERROR):
            # One finding for each line: each is a violation.
            for line in told_lines:
                if line.text.strip():
                    known = channel if channel in tuple(Channel) else f"{channel}, which is none,"
                    told = f"{role} printed on channel {known} {shown(line.text)}; messages go into files"
                    found.append(Finding("output", file, told, line.number, value=line.text))
    return found


def _blocks(lines: Sequence[Line], file: str) -> Iterator[Finding]:
    """Each `TO USER:` line starts a block; lines before the first one belong to none."""
    wrong = partial(Finding, "output", file)
    starts = [at for at, line in enumerate(lines) if line.text.strip().startswith(TO_USER[0])]
    for line in lines[: starts[0] if starts else len(lines)]:
        if line.text.strip():
            yield wrong(f"{shown(line.text)} stands outside a TO USER block", line.number, value=line.text)
    for start, end in pairwise([*starts, len(lines)]):
        block = lines[start:end]
        heads = [next((head for head in TO_USER if line.text.strip().startswith(head)), "") for line in block]
        present = [head for head in heads if head]
        for absent in (head for head in TO_USER if head not in present):
            yield wrong(f"the TO USER block has no line {absent}", block[0].number, field=absent)
        if len(present) == len(TO_USER) and tuple(present) != TO_USER:
            yield wrong(
                f"the lines of a TO USER block are {', '.join(TO_USER)}, in this order", block[0].number
            )
        for line, head in zip(block, heads, strict=True):
            value = line.text.strip().removeprefix(head).strip()
            if not head and value:
                yield wrong(f"{shown(value)} is no line of a TO USER block", line.number, value=value)
            elif head in TO_USER[1:] and not value:
                yield wrong(f"{head} says nothing", line.number, field=head)
            elif head == "CONTEXT:" and not _CHAT_LINK.search(value):
                told = f"CONTEXT is {shown(value)}; it has to be the path of the chat's directory"
                yield wrong(told, line.number, field=head, value=value)
