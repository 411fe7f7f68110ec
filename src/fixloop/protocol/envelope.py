"""The facts of a message that its layout does not show, in a comment below it (A22, K3, K24).

The protocol's layouts name ids, parties and times; that a message is the seventh line of its workflow, what
it changed and its uid are on the envelope. The comment carries them, so that a rendered message is a whole one.
"""

import json
from datetime import datetime
from typing import Any, Final

from fixloop.protocol.messages import Message

_HEAD, _TAIL = "<!-- fixloop ", " -->"
_FACTS: Final = (
    "uid",
    "at",
    "issue",
    "specialist",
    "iteration",
    "max_iterations",
    "number",
    "summary",
    "status_before",
    "status_after",
)


def envelope_line(message: Message) -> str:
    """`message`'s envelope as one line, an HTML comment that no text in it can end."""
    facts = {name: _plain(getattr(message, name)) for name in _FACTS}
    written = json.dumps(facts)
    return f"{_HEAD}{written.replace('<', _code('<')).replace('>', _code('>'))}{_TAIL}"


def envelope_facts(comment: str) -> dict[str, Any] | None:
    """The facts in a line that `envelope_line` wrote; None for any other text."""
    written = comment.strip()
    if not (written.startswith(_HEAD) and written.endswith(_TAIL)):
        return None
    try:
        facts = json.loads(written[len(_HEAD) : -len(_TAIL)])
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}"
