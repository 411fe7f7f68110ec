"""Text that wants to become layout, and messages of every type made of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from annotated_types import MinLen
from hypothesis import strategies as st
from pydantic import BaseModel

from fixloop.protocol import ids
from fixloop.protocol.failures import Comparison
from fixloop.protocol.messages import Body, Message, RevalidationResult
from fixloop.protocol.specialists import NAMES, Status
from fixloop.protocol.ticket import Priority

_BLOCKS: Final = (
    "#",
    "## Validation Success",
    "### Files Modified",
    "#### Failure 1: x",
    "---",
    "===",
    "```",
    "````text",
    "~~~~~",
    "- ",
    "+",
    "1. ",
    "2) a",
    "> > > ",
    "    code",
    "\tcode",
    "[a]: b",
    "|---|",
    "| a | b |",
    "none",
    "*none*",
    "*empty*",
    "__",
    "***",
    "<!-- fixloop {} -->",
    "<script>",
    "-->",
)
_INLINE: Final = (
    "\\",
    "`a`",
    "``",
    "&#10;",
    "&amp;",
    "<b>",
    "|",
    "\\|",
    "_",
    "*",
    ": ",
    " - ",
    ", ",
    "[x](y)",
    "![x][y]",
    "**Status**: PASS",
    "**Marks**:",
    "\\x1b",
    "\x00",
    "\x1b[2J",
    "\x85",
    "\u2028",
    "\u202e",
    "\u200b",
    "שלום",
    "👩‍👩‍👧",
    "\ufffd",
    "\ufeff",
)
_SPACES: Final = ("\n", "\n\n", "\r\n", "\r", " ", "   ", "\t", "\u00a0", "\v")
_PIECES: Final = st.one_of(
    *(st.sampled_from(pieces) for pieces in (_BLOCKS, _INLINE, _SPACES)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
HOSTILE: Final = st.lists(_PIECES, max_size=5).map("".join)
_SIMPLE: Final[dict[Any, st.SearchStrategy[Any]]] = {
    str: HOSTILE,
    int: st.integers(0, 9_999),
    bool: st.booleans(),
    float: st.one_of(st.integers(0, 400_000).map(float), st.floats(-5, 400_000, allow_nan=False)),
}


def model(kind: type[BaseModel], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a model with every field filled, so that a field that is not read back cannot go unnoticed."""
    fields = {
        name: _field(field.annotation, field.metadata)
        for name, field in kind.model_fields.items()
        if name not in fixed
    }
    return st.builds(kind, **fields, **fixed)


def _field(kind: Any, metadata: Sequence[Any] = ()) -> st.SearchStrategy[Any]:
    least = max((found.min_length for found in metadata if isinstance(found, MinLen)), default=0)
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        return _field(arguments[0], arguments[1:])
    if get_origin(kind) is Literal:
        return st.just(arguments[0])
    if get_origin(kind) is tuple:
        return st.lists(_field(arguments[0]), min_size=least, max_size=3).map(tuple)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of(*(st.none() if inner is NoneType else _field(inner) for inner in arguments))
    if kind in _SIMPLE:
        return _SIMPLE[kind].filter(bool) if least else _SIMPLE[kind]
    return st.sampled_from(kind) if issubclass(kind, Enum) else model(kind)


_PASSED: Final = model(
    RevalidationResult,
    passed=st.just(True),
    failures=st.just(()),
    failure_count=st.just(0),
    comparison=model(Comparison, persisting=st.just(()), new=st.just(())),
    likely_cause=st.just(""),
    escalates=st.none(),
)
_FAILED: Final = model(
    RevalidationResult,
    passed=st.just(False),
    failures=st.lists(HOSTILE, min_size=1, max_size=3).map(tuple),
    failure_count=st.integers(3, 300),
    next_phase=st.just(""),
)
_KINDS: Final = {kind.model_fields["kind"].default: kind for kind in get_args(get_args(Body)[0])}
#: One strategy for each body, by its kind.
BODIES: Final[dict[str, st.SearchStrategy[Body]]] = {
    name: st.one_of(_PASSED, _FAILED) if name == "revalidation-result" else model(kind)
    for name, kind in _KINDS.items()
}
_TIMES: Final = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


_STAMP: Final = "20260301T103001Z"
_IDS: Final = {
    "failure-detected": lambda m: ids.detection_id(m.issue, m.specialist),
    "failure-report": lambda m: ids.report_id(m.issue, m.specialist, m.iteration),
    "fix-request": lambda m: ids.request_id(m.issue, m.iteration),
    "fix-completion": lambda m: ids.completion_id(m.issue, m.iteration),
    "revalidation-trigger": lambda m: ids.trigger_id(m.issue, m.specialist, m.iteration),
    "revalidation-result": lambda m: ids.result_id(m.issue, m.specialist, m.iteration),
    "success": lambda m: ids.success_id(m.issue, m.specialist, m.iteration),
    "escalation": lambda m: f"ESC-{m.issue}-{m.specialist}-{_STAMP}",
    "timeout-reminder": lambda m: f"TIMEOUT-{m.issue}-main-agent-fix-{_STAMP}-2",
    "error-notification": lambda m: f"ERR-{m.issue}-specialist-failure-{_STAMP}",
    "protocol-violation": lambda m: f"PVN-{m.issue}-feature-implementer-main-{_STAMP}",
}


def _with_its_id(message: Message) -> Message:
    return message.model_copy(update={"message_id": _IDS[message.body.kind](message)})


def messages_of(
    kind: str, attached: st.SearchStrategy[Message | None] | None = None
) -> st.SearchStrategy[Message]:
    """Messages of one kind; their parties and summaries are as hostile as their bodies."""
    return st.builds(
        Message,
        uid=HOSTILE,
        message_id=st.just("none yet"),
        sender=HOSTILE.filter(bool),
        recipient=HOSTILE.filter(bool),
        at=_TIMES,
        priority=st.sampled_from(Priority),
        issue=st.integers(1, 10**9),
        specialist=st.sampled_from(NAMES),
        iteration=st.just(1) if kind == "failure-detected" else st.integers(0, 99),
        max_iterations=st.integers(1, 99),
        number=st.integers(0, 9_999),
        summary=HOSTILE,
        status_before=st.sampled_from(Status),
        status_after=st.sampled_from(Status),
        body=BODIES[kind],
        attached=attached if attached is not None else st.none(),
    ).map(_with_its_id)


MESSAGES: Final = {kind: messages_of(kind) for kind in BODIES}
