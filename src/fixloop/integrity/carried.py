"""Answers that are remembered from one call to another: a function that could be asked alone before now answers by what
was asked of the product first, or by what a value carries beside itself.
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
    """The lines of `call_replay` on the functions that have come to answer so, one for each; `has_state`: the product
    kept something between calls before, so that their order may matter by right."""
    before = {each["name"] for each in _told(old)}
    new_ones = (each for each in reversed([*_told(new)]) if each["name"] not in before)
    yield from {each["name"]: each for each in new_ones if not (has_state and each["by"] == "order")}.values()


def keeps_state(sources: Iterable[Source]) -> bool:
    """Whether a module or a class has a collection that is filled later, or functions set what is the module's."""
    nodes = [node for source in sources for node in source.nodes]
    owners = (node for node in nodes if isinstance(node, ast.Module | ast.ClassDef))
    placed = (getattr(node, "value", None) for owner in owners for node in owner.body)
    is_filled = any(isinstance(value, ast.expr) and _EMPTY.fullmatch(ast.unparse(value)) for value in placed)
    return is_filled or any(isinstance(node, ast.Global) for node in nodes)


def _told(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        # Another kind of line, or one that was cut off, says nothing of it.
        with suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict) and {"name", "file", "shown", "answer", "alone", "by"} <= told.keys():
                yield told
