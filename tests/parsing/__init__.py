"""A rendered message as the message it was rendered from (A22).

    parse(text) -> Message

`document` reads titles, parts and fields, one function for each type picks the facts (`bodies`), and the envelope's
line adds what the layout does not show. What was read is rendered again and must give the same text: so every word that
is derived from a fact, such as the count of a list, is checked.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from fixloop.protocol.messages import Body, Message
from fixloop.protocol.rendering import ENVELOPE, render_whole
from fixloop.protocol.specialists import NAMES
from fixloop.protocol.ticket import Priority
from tests.parsing import bodies
from tests.parsing.document import Document, UnreadableMessage, documents

__all__ = ["LIMIT_CHARACTERS", "LIMIT_LINES", "UnreadableMessage", "parse"]

#: What the largest report comes to, and the work a hostile text can make.
LIMIT_CHARACTERS: Final = 4_000_000
LIMIT_LINES: Final = 50_000

_MOST_MESSAGES: Final = 2
_TYPES: Final[Mapping[str, tuple[str, Callable[[Document], Body]]]] = MappingProxyType(
    {
        "Validation Failure Detected": ("DETECT", bodies.failure_detected),
        "Validation Failure Report": ("VFR", bodies.failure_report),
        "Fix Request": ("FIXREQ", bodies.fix_request),
        "Fix Completion": ("FIXDONE", bodies.fix_completion),
        "Re-validation Trigger": ("REVAL", bodies.revalidation_trigger),
        "Validation Result": ("REVALRES", bodies.revalidation_result),
        "Re-validation Result": ("REVALRES", bodies.revalidation_result),
        "Validation Success": ("SUCCESS", bodies.success),
        "Escalation: Unresolvable Issue": ("ESC", bodies.escalation),
        "Timeout Reminder": ("TIMEOUT", bodies.timeout_reminder),
        "Error Notification": ("ERR", bodies.error_notification),
        "Protocol Violation Notice": ("PVN", bodies.protocol_violation),
    }
)
"""By title: how its ids begin, and what reads its body."""
# Read from the right, because specialists' names contain hyphens (K3); it ends in an iteration or in a time, with `-2`
# where it is the second of its second. The subject is a specialist, an operation, an error type or an agent.
_ID: Final = re.compile(
    r"(?P<prefix>[A-Z]+)-(?P<issue>-?[0-9]+)(?:-(?P<subject>.+?))?"
    r"-(?:[0-9]{8}T[0-9]{6}Z(?:-[0-9]+)?|(?P<iteration>[0-9]+))",
    re.DOTALL,
)
_OF_A_SPECIALIST: Final = frozenset({"DETECT", "VFR", "REVAL", "REVALRES", "SUCCESS", "ESC"})
_LONGEST_ID: Final = 300


def parse(text: str) -> Message:
    """
    The message that `render_whole` made `text` of, with what is attached to it (A22).

    Args:
        text: One rendered message, at most LIMIT_CHARACTERS and LIMIT_LINES; line ends of other systems,
            a byte order mark and a missing last line break are forgiven.

    Raises:
        UnreadableMessage: it is none, or was changed; names the heading, field, section or line.
    """
    text = _normal(text)
    found = documents(text)
    if not found:
        raise UnreadableMessage(f"no message here: no line begins with `## `; known are {', '.join(_TYPES)}")
    if len(found) > _MOST_MESSAGES:
        raise UnreadableMessage(
            f"line {found[_MOST_MESSAGES].line}: a third message; one has at most one other attached"
        )
    message = _message(found[-1], None)
    for document in found[-2::-1]:
        message = _message(document, message)
    expected = _normal(render_whole(message))
    if text != expected:
        rows = zip_longest(text.split("\n"), expected.split("\n"), fillvalue="(the end)")
        row, said, wanted = next((n, one, two) for n, (one, two) in enumerate(rows, 1) if one != two)
        raise UnreadableMessage(
            f"line {row} reads {said[:120]!r}; with the message's own facts it reads {wanted[:120]!r}"
        )
    return message


def _normal(text: str) -> str:
    if len(text) > LIMIT_CHARACTERS:
        raise UnreadableMessage(f"it has {len(text)} characters, the limit is {LIMIT_CHARACTERS}")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if (rows := text.count("\n")) > LIMIT_LINES:
        raise UnreadableMessage(f"it has {rows} lines, the limit is {LIMIT_LINES}")
    return text.rstrip("\n") + "\n"


def _message(document: Document, attached: Message | None) -> Message:
    if document.title not in _TYPES:
        raise UnreadableMessage(
            f'line {document.line}: no message is called "{document.title[:80]}"; '
            f"known are {', '.join(_TYPES)}"
        )
    prefix, reader = _TYPES[document.title]
    header = document.header
    label = "Error ID" if document.title == "Error Notification" else "Message ID"
    try:
        facts: dict[str, Any] = {"message_id": header.field(label)}
        # The header fields that the type's layout shows (A15, K24).
        for name, label in (("sender", "From"), ("recipient", "To")):
            if header.has(label):
                facts[name] = header.field(label)
        if header.has("Priority"):
            facts["priority"] = header.enumerated("Priority", Priority)
        facts |= _envelope(document)
        message = Message.model_validate(facts | {"body": reader(document), "attached": attached})
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, wrong["loc"]))
        raise UnreadableMessage(
            f'message "{document.title}" (line {document.line}): {where}: {wrong["msg"]}'
        ) from None
    _check_id(message, prefix)
    return message


def _check_id(message: Message, prefix: str) -> None:
    shown = message.message_id
    found = _ID.fullmatch(shown) if len(shown) <= _LONGEST_ID else None
    if found is None:
        raise UnreadableMessage(f"{shown[:80]!r} is no message id such as VFR-47-test-runner-1")
    subject, iteration = found["subject"] or "", found["iteration"]
    if found["prefix"] in _OF_A_SPECIALIST and subject not in NAMES:
        raise UnreadableMessage(f"{shown!r} names no specialist; the six are {', '.join(NAMES)}")
    for what, said, wanted in (
        ("type", found["prefix"], prefix),
        ("issue", int(found["issue"]), message.issue),
        ("specialist", subject, message.specialist if subject in NAMES else subject),
        ("iteration", int(iteration) if iteration else None, message.iteration if iteration else None),
    ):
        if said != wanted:
            raise UnreadableMessage(
                f"the id {shown} is of another {what}: {said}, with the envelope {wanted}"
            )


def _envelope(document: Document) -> dict[str, Any]:
    head, tail = ENVELOPE
    for comment in map(str.strip, document.comments):
        if comment.startswith(head) and comment.endswith(tail):
            with suppress(ValueError, RecursionError):
                facts = json.loads(comment.removeprefix(head).removesuffix(tail))
                if isinstance(facts, dict):
                    return facts
    raise UnreadableMessage(
        f'message "{document.title}" (line {document.line}) lacks its envelope, the line `<!-- fixloop {{…}} -->`'
    )
