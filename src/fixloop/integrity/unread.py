"""Parameters in whose place a fix passes on a constant: a pool that takes `workers` and has a single one."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from fixloop.integrity.source import Function, Sign, Source, names_in

RULE: Final = "unread-parameter"
_CONSTANT: Final = re.compile(r"-?\d[\w.]*|'[^']*'|True|False|None")


def unread(old: Source, new: Source) -> Iterator[Sign]:
    """Parameters that a function still takes and no longer reads: what they were passed to gets a constant."""
    before = _functions(old)
    for name, (line, ignored, passed) in _functions(new).items():
        for place, value in before[name][-1].items() if name in before else ():
            if value in ignored and _CONSTANT.fullmatch(now := passed.get(place, "")):
                text = f"`{name}` still takes `{value}`, and passes on `{now}` in its place"
                yield new.sign(RULE, f"{name} {value}", line, text)


def _functions(source: Source) -> dict[str, tuple[int, set[str], dict[str, str]]]:
    """Line, parameters that are never read, and what is passed on, by place; of all functions of a name."""
    found: dict[str, tuple[int, set[str], dict[str, str]]] = {}
    for node in (each for each in source.nodes if isinstance(each, Function)):
        given = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        ignored = given.difference(*map(names_in, node.body))
        passed: dict[str, str] = {}
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            places = [*enumerate(call.args), *((each.arg, each.value) for each in call.keywords)]
            passed |= {f"{ast.unparse(call.func)} {at}": ast.unparse(value) for at, value in places}
        _, others, more = found.get(source.scope(node.lineno), (0, ignored, {}))
        found[source.scope(node.lineno)] = node.lineno, ignored & others, more | passed
    return found
