"""State carried between calls: after a fix, an answer depends on earlier calls of the product or on an attribute of a
value, and did not before.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from fixloop.integrity.source import Source

REMEMBERED: Final = "remembered-answer"

_EMPTY: Final = re.compile(
    r"\[\]|\{\}|(?:\w+\.)*(?:dict|list|set|OrderedDict|defaultdict|Counter|deque)\(.*\)"
)


def carried(old: Iterable[str], new: Iterable[str], *, has_state: bool) -> Iterator[dict[str, Any]]:
    """One line of `call_replay` for each function that newly does so; `has_state`: the product kept state between calls
    before, so their order may legitimately matter."""
    before = {each["name"] for each in _entries(old)}
    new_ones = (each for each in reversed([*_entries(new)]) if each["name"] not in before)
    yield from {each["name"]: each for each in new_ones if not (has_state and each["by"] == "order")}.values()


def keeps_state(sources: Iterable[Source]) -> bool:
    """Whether a module or class has a collection to be filled later, or functions set globals."""
    nodes = [node for source in sources for node in source.nodes]
    owners = (node for node in nodes if isinstance(node, ast.Module | ast.ClassDef))
    values = (getattr(node, "value", None) for owner in owners for node in owner.body)
    is_filled = any(isinstance(value, ast.expr) and _EMPTY.fullmatch(ast.unparse(value)) for value in values)
    return is_filled or any(isinstance(node, ast.Global) for node in nodes)


def _entries(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        # Skip lines of another kind and truncated lines.
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and {"name", "file", "shown", "answer", "alone", "by"} <= entry.keys():
                yield entry
