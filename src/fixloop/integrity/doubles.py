"""Code that recognises what tests pass in place of the real thing: by an attribute or a class that only tests define,
by its type, or because a function of the library was replaced."""

import ast
import io
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fixloop.integrity.source import Function, Sign, Source, names_in, strings_of
from fixloop.integrity.watched import RULE

ASKED: Final = "asked for"
"""The `kin` of a sign that counts only if nothing but tests defines the name that is its key."""

_USUAL_TYPES: Final = (*(str, bytes, int, float, list, dict, set), io.TextIOWrapper, io.BytesIO, pathlib.Path)
_USUAL_NAMES: Final = frozenset(name for each in _USUAL_TYPES for name in dir(each))
_REPLACED: Final = re.compile(
    r"time\.(?:time|sleep|monotonic|perf_counter)(?:_ns)?|datetime\.(?:date\.today|datetime\.(?:now|utcnow|today))"
    r"|random\.[a-z]+|uuid\.uuid\d|os\.(?:getcwd|urandom|getenv)|subprocess\.(?:run|call|check_\w+)|open|input|print"
)
_ASKS: Final = frozenset({"hasattr", "getattr", "isinstance", "type", "id", "vars", "dir"})
_MAKERS: Final = re.compile(r"\b(?:SimpleNamespace|\w*Mock)$")
_NAMES_OF: Final = re.compile(r"\b(?:vars|dir)\(|\.__(?:dict|name|qualname)__")
Pair = tuple[str, str]


def doubles(source: Source) -> Iterator[Sign]:
    """Each question that tells a test's double from what the product itself uses."""
    usual = {pair for node in source.nodes for pair in _made_by_default(node)}
    calls = [node.func for node in source.nodes if isinstance(node, ast.Call)]
    called = {ast.unparse(each).rpartition(".")[2] for each in calls}
    for node in source.nodes:
        if isinstance(node, ast.Assign) and names_in(node.targets[0]) & called:
            # An optional method, such as a hook.
            called |= {*_asked_for(node.value)}
    for node in source.nodes:
        line = getattr(node, "lineno", 1)
        for name in {*_asked_for(node)} - called - _USUAL_NAMES:
            text = f"product code asks whether something has `{name}`, which only tests define"
            yield source.sign(RULE, name, line, text, kin=ASKED)
        for name in _examined(source, node):
            yield source.sign(RULE, name, line, f"product code asks whether `{name}` was replaced")
        doubted = _doubted(node) if isinstance(node, Function) else []
        for what, kind in {*usual.intersection(_types_tested(node)), *doubted}:
            text = f"product code asks whether `{what}` is really the `{kind}` that it should be"
            yield source.sign(RULE, f"really {kind}", line, text)


def only_in_tests(names: Iterable[str], tests: Iterable[Source], product: Iterable[Source]) -> set[str]:
    """Those names of attributes and classes that these tests define and no product file mentions."""
    defined = {name for test in tests for node in test.nodes for name in _defined(node)}
    nodes = [node for each in product for node in each.nodes]
    # A local variable or a parameter says nothing about attributes.
    fields = (ast.iter_fields(node) for node in nodes if not isinstance(node, ast.Name | ast.arg))
    mentioned = {word for each in fields for _, word in each if isinstance(word, str)}
    return defined.intersection(names) - mentioned - {name for node in nodes for name in _defined(node)}


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name, body=body):
            yield name
            for each in body:
                yield from names_in(each) if hasattr(each, "value") else [getattr(each, "name", "")]
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.Call(func=maker, keywords=[_, *_] as keywords) if _MAKERS.search(ast.unparse(maker)):
            yield from (each.arg for each in keywords if each.arg)


def _asked_for(node: ast.AST) -> Iterator[str]:
    """The attributes and class names that an expression asks about."""
    match node:
        case ast.Call(func=ast.Name("hasattr" | "getattr"), args=[what, name, *_]):
            # What asks about its own class has subclasses.
            yield from strings_of(name) if ast.unparse(what) not in ("self", "cls") else ()
        case ast.Compare(left=left, comparators=[right]) if _NAMES_OF.search(ast.unparse(node)):
            yield from (text for side in (left, right) for text in strings_of(side))


def _examined(source: Source, node: ast.AST) -> Iterator[str]:
    """The functions of the library that an expression looks at instead of calling them."""
    about: Sequence[ast.expr] = ()
    if isinstance(node, ast.Call) and source.dotted(node.func) in _ASKS:
        about = node.args[:1]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        about = (node.left, *node.comparators)
    elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
        about = (node.value,)
    yield from (name for name in map(source.dotted, about) if _REPLACED.fullmatch(name))


def _made_by_default(node: ast.AST) -> Iterator[Pair]:
    """A name and the class that is made for it if nothing else is given: `clock = clock or SystemClock()`."""
    pairs: Iterable[tuple[ast.AST, ast.AST]] = ()
    match node:
        case (
            ast.Assign(targets=[target], value=ast.BoolOp() | ast.IfExp() as value)
            | ast.If(test=ast.Compare(ops=[ast.Is()]), body=[ast.Assign(targets=[target], value=value)])
        ):
            pairs = ((target, each) for each in (value, *ast.iter_child_nodes(value)))
        case ast.arguments(args=given, defaults=defaults):
            pairs = zip((ast.Name(each.arg) for each in given[::-1]), defaults[::-1], strict=False)
    for what, made in pairs:
        if isinstance(made, ast.Call) and not made.args:
            yield _end(what), ast.unparse(made.func)


def _doubted(function: Function) -> Iterator[Pair]:
    """Parameters that a branch tests for the class that their annotation names, unless it refuses others."""
    given = [each for each in ast.walk(function.args) if isinstance(each, ast.arg) and each.annotation]
    typed = {(each.arg, ast.unparse(each).partition(": ")[2]) for each in given}
    for branch in ast.walk(function):
        if isinstance(branch, ast.If | ast.IfExp):
            pairs = {pair for node in ast.walk(branch.test) for pair in _types_tested(node)} & typed
            is_refused = bool(pairs) and re.search(r"\b(?:raise|NotImplemented)\b", ast.unparse(branch))
            yield from (pair for pair in pairs if pair[1].rpartition(".")[2][:1].isupper() and not is_refused)


def _types_tested(node: ast.AST) -> Iterator[Pair]:
    match node:
        case ast.Call(func=ast.Name("isinstance"), args=[what, kind]):
            yield _end(what), ast.unparse(kind)
        case ast.Compare(left=ast.Call(func=ast.Name("type"), args=[what]), comparators=[kind]):
            yield _end(what), ast.unparse(kind)


def _end(node: ast.AST) -> str:
    """A name without what stands before its last dot."""
    return ast.unparse(node).rpartition(".")[2]
