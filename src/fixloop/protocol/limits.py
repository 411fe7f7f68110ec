"""Limits how much of a tool's text is kept, and in which form (K41).

The first failures are kept in full up to a size, further ones on one line each; counts stay exact. Any tool output
becomes valid UTF-8 without control characters. Secrets must be removed before a text is cut, or half of one could
remain at the edge of the cut.
"""

import hashlib
import re
from collections.abc import Container, Iterable, Sequence
from typing import Final

from pydantic import TypeAdapter

from fixloop.protocol.failures import Failure

FULL_FAILURES: Final = 50
FAILURE_BYTES: Final = 8 * 1024
CONTEXT_BYTES: Final = 2 * 1024
SUGGESTION_BYTES: Final = 500
LIST_BYTES: Final = 4 * 1024 * 1024
LINE_BYTES: Final = 200
NAME_BYTES: Final = 512

# Two runs of this size can still be compared; it is ten times what a legacy project's first lint finds.
MAX_FAILURES: Final = 100_000

_MARKER_BYTES: Final = 40
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
# pytest writes ESC as `#x1B`, other tools drop it and leave the rest. `[5m]` may be a test's parameter.
_COLOURS: Final = re.compile(
    r"(?:#x1[bB]|&#(?:27|x1[bB]);)\[[0-9;]*[A-Za-z]|\[(?:\d|[1-9]\d|10[0-7])(?:;\d{1,3})*m(?![\]-])"
)
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_CONTROLS: Final = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


def clean(text: str) -> str:
    """`text` without terminal escapes, control characters and lone surrogates; line ends become `\\n`."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _SURROGATES.sub("\ufffd", text.translate(_CONTROLS))


def plain(text: str) -> str:
    """A message's `text` as `clean` returns it, without the colour codes that remain when XML writers drop ESC."""
    return _COLOURS.sub("", clean(text))


def cut(text: str, limit_bytes: int) -> str:
    """
    `text` in at most `limit_bytes` bytes of UTF-8, cut in the middle.

    The beginning says where, the end says what: tracebacks and summaries end with the error.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit_bytes:
        return text
    room = max(limit_bytes - _MARKER_BYTES, 0)
    head = data[: room * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - room // 3 :].decode("utf-8", "ignore")
    gone = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}… [{gone} bytes cut]{' … ' + tail if tail else ''}"


def tail(text: str, limit_bytes: int) -> str:
    """The end of `text`, after a line that says how much was cut."""
    data = text.rstrip().encode()
    if len(data) <= limit_bytes:
        return data.decode()
    return f"… [{len(data) - limit_bytes} bytes cut]\n{data[-limit_bytes:].decode('utf-8', 'ignore')}"


def one_line(text: str, limit_bytes: int = LINE_BYTES) -> str:
    """The first non-blank line of `text`, cut to `limit_bytes`."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return cut(line, limit_bytes)


def short_name(text: str) -> str:
    """`text` as a failure's name: one line; a long name ends in a digest, so that two names stay distinct (K7)."""
    name = " ".join(clean(text).split())
    data = name.encode()
    if len(data) <= NAME_BYTES:
        return name
    return f"{cut(name, NAME_BYTES - 11)} #{hashlib.sha256(data).hexdigest()[:8]}"


def bound(failures: Iterable[Failure], examples: Container[int]) -> tuple[Failure, ...]:
    """The same number of failures: those at the positions `examples` in full up to a size, others on one line (K41)."""
    bounded = []
    for place, failure in enumerate(failures):
        if place in examples:
            bounded.append(in_full(failure))
            continue
        line, suggestion = one_line(failure.message), one_line(failure.suggestion)
        short = {"message": line, "context": "", "suggestion": suggestion, "source": "", "rerun": ""}
        bounded.append(failure.model_copy(update=short))
    return tuple(bounded)


def in_full(failure: Failure) -> Failure:
    """A failure with the most text that is ever kept."""
    context = cut(failure.context, CONTEXT_BYTES)
    message = cut(failure.message, FAILURE_BYTES - len(context.encode("utf-8", "replace")))
    suggestion = cut(failure.suggestion, SUGGESTION_BYTES)
    return failure.model_copy(update={"message": message, "context": context, "suggestion": suggestion})


def failures_json(failures: Sequence[Failure]) -> bytes:
    """A JSON list of failures for lookup; if there are very many, each is shortened."""
    room = LIST_BYTES // max(len(failures), 1)
    kept = [
        failure.model_copy(update={"message": cut(failure.message, max(room, LINE_BYTES))})
        for failure in failures
    ]
    return TypeAdapter(list[Failure]).dump_json(kept, exclude_defaults=True)
