"""Answers that are remembered from one call to another: a function that could be asked alone before now answers by what
was asked of the product first, or by what a value carries beside itself.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fixloop.integrity.source import Source

RULE: Final = "remembered-answer"

_EMPTY: Final = re.compile(
    r"\[\]|\{\}|(?:\w+\.)*(?:dict|list|set|OrderedDict|defaultdict|Counter|deque)\(.*\)"
)


class Carried(NamedTuple):
    """A function one of whose calls is answered by what was left for it."""

    file: str
    name: str
    shown: str
    left: str
    """The answer where something was left for the call."""
    alone: str
    """The answer to the same call without that."""
    by: str
    """What leaves it: "order", calls before it; "value", a value of a class of its own."""


def carried(old: Iterable[str], new: Iterable[str], *, has_state: bool) -> Iterator[Carried]:
    """The functions that have come to answer so, each once. `old`, `new`: the lines of `call_replay`; `has_state`: the
    product kept something between calls before, so that the order of calls may matter by right."""
    before = {each.name for each in _told(old)}
    found = {
        each.name: each
        for each in reversed([*_told(new)])
        if each.name not in before and not (has_state and each.by == "order")
    }
    yield from found.values()


def keeps_state(sources: Iterable[Source]) -> bool:
    """Whether a module or a class has a collection that is filled later, or functions set what is the module's."""
    for source in sources:
        owners = (node for node in source.nodes if isinstance(node, ast.Module | ast.ClassDef))
        placed = (
            node for owner in owners for node in owner.body if isinstance(node, ast.Assign | ast.AnnAssign)
        )
        if any(_EMPTY.fullmatch(ast.unparse(each.value)) for each in placed if each.value):
            return True
        if any(isinstance(node, ast.Global) for node in source.nodes):
            return True
    return False


def _told(lines: Iterable[str]) -> Iterator[Carried]:
    for line in lines:
        try:
            told = json.loads(line)
            yield Carried(*(str(told[field]) for field in Carried._fields))
        except (ValueError, KeyError, TypeError):
            # Another kind of line, or one that was cut off.
            continue
