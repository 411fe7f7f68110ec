"""Types given away: what a type checker knew before and is now told to believe."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from fixloop.integrity.source import Function, Sign, Source

RULE: Final = "types-given-away"

_BRACES: Final = re.compile(r"\bas (?:any|unknown as \w+|never)\b|< any >")
_ANYTHING: Final = frozenset({"Any", "typing.Any", "t.Any", "Incomplete"})


def given_away(old: Source | None, new: Source) -> Iterator[Sign]:
    """Annotations of functions that are gone or say `Any`, casts to `Any`, functions that are not checked."""
    before, after = (_annotated(each) if each else {} for each in (old, new))
    for place, (was, _) in before.items():
        now, line = after.get(place, (was, 0))
        if was and was not in _ANYTHING and (not now or now in _ANYTHING):
            name = f"{place[0]}({place[1]})" if place[1] else f"what {place[0]} returns"
            text = f"the type of {name} was `{was}` and is {'`Any`' if now else 'not given'} now"
            yield new.sign(RULE, f"{place[0]} {place[1]}", line, text)
    for node in new.nodes:
        if isinstance(node, ast.Call) and new.dotted(node.func).endswith("typing.cast") and node.args:
            if ast.unparse(node.args[0]) in _ANYTHING or new.dotted(node.args[0]) in _ANYTHING:
                yield new.sign(RULE, "cast", node.lineno, "a value is cast to `Any`")
        elif isinstance(node, ast.Name | ast.Attribute) and new.dotted(node).endswith("typing.no_type_check"):
            yield new.sign(RULE, "no_type_check", node.lineno, "a function is left out of type checking")
    for found, line in new.shapes(_BRACES) if new.ending in ("ts", "tsx", "mts", "cts") else ():
        yield new.sign(RULE, found[0], line, f"`{found[0]}` gives a type away")


def _annotated(source: Source) -> dict[tuple[str, str], tuple[str, int]]:
    """The annotation of each parameter of each function, and under no name that of its result, with their lines."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for node in source.nodes:
        if isinstance(node, Function):
            scope, arguments = source.scope(node.lineno), node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            for each in (*named, *(star for star in (arguments.vararg, arguments.kwarg) if star)):
                found[scope, each.arg] = (_written(each.annotation), each.lineno)
            found[scope, ""] = (_written(node.returns), node.lineno)
    return found


def _written(annotation: ast.expr | None) -> str:
    return ast.unparse(annotation) if annotation is not None else ""
