"""Type information that a fix removes: dropped annotations, `Any`, casts, and code hidden from the type checker."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from fixloop.integrity.source import Function, Sign, Source, names_in

RULE: Final = "types-given-away"

_TYPESCRIPT: Final = re.compile(r"\bas (?:any|unknown as \w+|never)\b|< any >")
_BELIEVED: Final = re.compile(
    r"(?:(?<!\S)(?!(?:return|typeof|case|in|of|void|await|yield|else|do|throw|delete) )[\w$]+|[)\]]) ! (?=[.;,)\]\[])"
    r"|(?<=[\w)\]}] )as (?:[A-Z]\w*|string|number|boolean|object)\b(?: [^;(){}]{0,80}?)? (?=[;).\]])"
)
"""What a type checker is told to believe, `a!` and `a as Item`: usual, but no answer to what it found."""
_ANY_TYPES: Final = frozenset({"Any", "typing.Any", "t.Any", "Incomplete"})
_TRIP: Final = re.compile(r"""(?:\w+\.loads|ast\.literal_eval) (?:[\w.]*(?:dumps|repr|str)\(|['"])""")


def given_away(old: Source | None, new: Source, *, had_failures: bool = False) -> Iterator[Sign]:
    """Function annotations that were removed or became `Any`, casts, code only the type checker sees, and unchecked
    functions; in a TypeScript file that `had_failures`, also `a!` and `a as Item`."""
    before, after = (_annotations(each) if each else {} for each in (old, new))
    for place, (was, _) in before.items():
        now, line = after.get(place, (was, 0))
        if was and was not in _ANY_TYPES and (not now or now in _ANY_TYPES):
            text = f"the type of {_described(place)} was `{was}` and is {'`Any`' if now else 'not given'} now"
            yield new.sign(RULE, f"{place[0]} {place[1]}", line, text)
    is_typed = bool(before) and all(was for (_, name), (was, _) in before.items() if not name)
    for place, (now, line) in after.items():
        if is_typed and place not in before and not place[1] and (not now or now in _ANY_TYPES):
            yield new.sign(RULE, f"{place[0]} ", line, f"the type of {_described(place)} is not given")
    for node in new.nodes:
        if (text := _override(new, node)) and isinstance(node, ast.stmt | ast.expr):
            yield new.sign(RULE, text, node.lineno, text)
    is_typescript = new.ending in ("ts", "tsx", "mts", "cts")
    for found, line in new.shapes(_TYPESCRIPT) if is_typescript else ():
        yield new.sign(RULE, found[0], line, f"`{found[0]}` gives a type away")
    for found, line in new.shapes(_BELIEVED) if is_typescript and had_failures else ():
        yield new.sign(RULE, found[0], line, f"`{found[0]}` tells the type checker what to believe")


def _described(place: tuple[str, str]) -> str:
    return f"{place[0]}({place[1]})" if place[1] else f"what {place[0]} returns"


def _override(source: Source, node: ast.AST) -> str:
    """How a statement or expression overrides the type checker; usually empty."""
    match node:
        case ast.Call(args=[kind, _]) if source.dotted(node.func).endswith("typing.cast"):
            is_any = ast.unparse(kind) in _ANY_TYPES or source.dotted(kind) in _ANY_TYPES
            return f"a value is cast to `{'Any' if is_any else ast.unparse(kind)}`"
        case ast.AnnAssign(annotation=kind, value=ast.expr()) if _ANY_TYPES & {
            ast.unparse(kind),
            source.dotted(kind),
        }:
            return "a value is declared as `Any`"
        case ast.Call(args=[given, *_]) if _TRIP.match(f"{source.dotted(node.func)} {ast.unparse(given)}"):
            return f"a value loses its type on its way through `{source.dotted(node.func)}`"
        case ast.Subscript(
            value=ast.Attribute(attr="__dict__") | ast.Call(func=ast.Name("vars")), ctx=ast.Load()
        ):
            return "an attribute is read without its type"
        case ast.If() | ast.IfExp() if "TYPE_CHECKING" in names_in(node.test):
            shown = (*node.body, *node.orelse) if isinstance(node, ast.If) else (node,)
            if not all(isinstance(each, ast.Import | ast.ImportFrom | ast.Pass) for each in shown):
                return "the type checker is shown other code than what runs"
        case ast.Name() | ast.Attribute() if source.dotted(node).endswith("typing.no_type_check"):
            return "a function is left out of type checking"
        case ast.FunctionDef(returns=ast.Subscript(value=kind), args=ast.arguments(args=[*_, given])) if (
            source.dotted(kind).endswith(("TypeGuard", "TypeIs"))
            and not any(given.arg in names_in(each) for each in node.body)
        ):
            return f"`{node.name}` says of which type something is without a look at it"
        case ast.FunctionDef(name="__getattr__"):
            return "every attribute is there, as far as a type checker knows"
    return ""


def _annotations(source: Source) -> dict[tuple[str, str], tuple[str, int]]:
    """The annotation and line of each parameter, by function and name; the return annotation has an empty name."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for node in source.nodes:
        if isinstance(node, Function):
            scope, arguments = source.scope(node.lineno), node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            for each in (*named, *(star for star in (arguments.vararg, arguments.kwarg) if star)):
                found[scope, each.arg] = (
                    ast.unparse(each.annotation) if each.annotation else "",
                    each.lineno,
                )
            found[scope, ""] = (ast.unparse(node.returns) if node.returns else "", node.lineno)
    return found
