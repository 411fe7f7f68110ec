"""A rendered message as the message it was rendered from (A22).

    parse(text) -> Message

markdown-it reads the structure (`blocks`), `document` gives it titles, parts and fields, one function for each
type picks the facts (`failures`, `fixes`, `alarms`), and the envelope's line adds what the layout does not
show. What was read is rendered again and must give the same text: so every word that is derived from a fact,
a count beside a list for instance, is checked against it.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from fixloop.errors import UsageError
from fixloop.protocol.messages import Body, Message, Priority
from fixloop.protocol.rendering import ENVELOPE, render_whole
from fixloop.protocol.specialists import NAMES
from fixloop.testing.parsing import alarms, failures, fixes
from fixloop.testing.parsing.document import Document, UnreadableMessage, documents
from fixloop.testing.parsing.values import enumerated, read_id

__all__ = ["LIMIT_CHARACTERS", "LIMIT_LINES", "UnreadableMessage", "parse"]

#: What the largest report comes to, and the work a hostile text can make.
LIMIT_CHARACTERS: Final = 4_000_000
LIMIT_LINES: Final = 50_000

_MOST_MESSAGES: Final = 2
_READERS: Final[Mapping[str, Callable[[Document], Body]]] = MappingProxyType(
    {
        "Validation Failure Detected": failures.failure_detected,
        "Validation Failure Report": failures.failure_report,
        "Fix Request": failures.fix_request,
        "Fix Completion": fixes.fix_completion,
        "Re-validation Trigger": fixes.revalidation_trigger,
        "Validation Result": fixes.revalidation_result,
        "Re-validation Result": fixes.revalidation_result,
        "Validation Success": fixes.success,
        "Escalation: Unresolvable Issue": alarms.escalation,
        "Timeout Reminder": alarms.timeout_reminder,
        "Error Notification": alarms.error_notification,
        "Protocol Violation Notice": alarms.protocol_violation,
    }
)
_PREFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failure-detected": "DETECT",
        "failure-report": "VFR",
        "fix-request": "FIXREQ",
        "fix-completion": "FIXDONE",
        "revalidation-trigger": "REVAL",
        "revalidation-result": "REVALRES",
        "success": "SUCCESS",
        "escalation": "ESC",
        "timeout-reminder": "TIMEOUT",
        "error-notification": "ERR",
        "protocol-violation": "PVN",
    }
)


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
        raise UnreadableMessage(
            f"no message here: no line begins with `## `; known are {', '.join(_READERS)}"
        )
    if len(found) > _MOST_MESSAGES:
        raise UnreadableMessage(
            f"line {found[_MOST_MESSAGES].line}: a third message; one has at most one other attached"
        )
    message: Message | None = None
    for document in reversed(found):
        message = _message(document, message)
    assert message is not None, "there is at least one document"
    _compare(text, _normal(render_whole(message)))
    return message


def _normal(text: str) -> str:
    if len(text) > LIMIT_CHARACTERS:
        raise UnreadableMessage(f"it has {len(text)} characters, the limit is {LIMIT_CHARACTERS}")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if (rows := text.count("\n")) > LIMIT_LINES:
        raise UnreadableMessage(f"it has {rows} lines, the limit is {LIMIT_LINES}")
    return text.rstrip("\n") + "\n"


def _message(document: Document, attached: Message | None) -> Message:
    reader = _READERS.get(document.title)
    if reader is None:
        raise UnreadableMessage(
            f'line {document.line}: no message is called "{document.title[:80]}"; '
            f"known are {', '.join(_READERS)}"
        )
    try:
        facts = _header(document) | _envelope(document)
        message = Message.model_validate(facts | {"body": reader(document), "attached": attached})
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, wrong["loc"]))
        raise UnreadableMessage(
            f'message "{document.title}" (line {document.line}): {where}: {wrong["msg"]}'
        ) from None
    _check_id(message)
    return message


def _check_id(message: Message) -> None:
    """Refuse an id that belongs to another message than its envelope says."""
    try:
        said = read_id(message.message_id)
    except UsageError as error:
        raise UnreadableMessage(str(error)) from None
    for what, found, wanted in (
        ("type", said.prefix, _PREFIXES[message.body.kind]),
        ("issue", said.issue, message.issue),
        ("specialist", said.subject, message.specialist if said.subject in NAMES else said.subject),
        ("iteration", said.iteration, message.iteration if said.iteration is not None else None),
    ):
        if found != wanted:
            raise UnreadableMessage(
                f"the id {message.message_id} is of another {what}: {found}, with the envelope {wanted}"
            )


def _header(document: Document) -> dict[str, Any]:
    """The header fields that the type's layout shows (A15, K24)."""
    header = document.header
    label = "Error ID" if document.title == "Error Notification" else "Message ID"
    facts: dict[str, Any] = {"message_id": header.field(label)}
    for name, label in (("sender", "From"), ("recipient", "To")):
        if header.has(label):
            facts[name] = header.field(label)
    if header.has("Priority"):
        facts["priority"] = enumerated(header.field("Priority"), Priority, header, "Priority")
    return facts


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


def _compare(text: str, expected: str) -> None:
    """Refuse a text that says something else than its own facts."""
    if text == expected:
        return
    rows = zip_longest(text.split("\n"), expected.split("\n"), fillvalue="(the end)")
    for number, (found, wanted) in enumerate(rows, 1):
        if found != wanted:
            raise UnreadableMessage(
                f"line {number} reads {found[:120]!r}; with the message's own facts it reads {wanted[:120]!r}"
            )
