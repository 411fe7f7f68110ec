"""A test with one expected constant changed: it has to fail, or what it looks at equals everything.

Changes only what is certain to be compared: the assertion that failed, or one that is always reached, with a constant
that nothing else in the test depends on.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from fixloop.integrity.python_tests import Function, functions, parameters

_EQUALITIES: Final = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertAlmostEqual"}
)
_LEAVES: Final = ("return", "skip", "fail(", "raise ", "xfail", "importorskip")
_SWALLOWS: Final = ("raise", "Raise", "suppress", "warn", "Warn")
FAR: Final = 1_000_003
"""Further than any tolerance."""
_TOLERANT: Final = re.compile(r"approx|isclose|Almost|round")


class Flip(NamedTuple):
    line: int
    """Of the assertion, in the test as it is."""
    old: str
    new: str


class Flipped(NamedTuple):
    """A file's text with flipped constants."""

    text: str
    flips: dict[str, Flip]
    """By the test's name within the file: `TestA::test_b`."""


def flipped(text: str, tests: Mapping[str, int], *, is_near: bool = False) -> Flipped:
    """The file with one constant changed in each of these tests in which there is one: far, or by as little as a value
    that is nearly right would be, where the test itself does not allow for that. `tests`: with the line at which each
    failed, or 0."""
    flips: dict[str, Flip] = {}
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return Flipped("", flips)
    for name, function in functions(module.body, ""):
        if name in tests and (flip := _flip(function, tests[name], is_near)):
            flips[name] = flip
    return Flipped(ast.unparse(module), flips)


def _flip(function: Function, line: int, is_near: bool) -> Flip | None:
    """Changes the first constant that can be."""
    for statement in (*_at(function.body, line), *_reached(function.body)):
        for expected in _expected(statement):
            sources = _sources(function, expected.id) if isinstance(expected, ast.Name) else [expected]
            shown = [statement, *sources]
            old = [ast.unparse(each) for each in shown]
            if is_near and any(map(_TOLERANT.search, old)):
                continue
            if sources and all([_change(source, is_near) for source in sources]):
                sides = zip(old, map(ast.unparse, shown), strict=True)
                return Flip(statement.lineno, *next((was, now) for was, now in sides if was != now))
    return None


def _at(body: list[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """The statement of a line that was reached before, be it in a branch."""
    for node in body:
        if isinstance(node, ast.If | ast.With | ast.AsyncWith):
            if not _swallows(node):
                yield from _at([*node.body, *getattr(node, "orelse", [])], line)
        elif node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def _swallows(node: ast.stmt) -> bool:
    """Whether an assertion within may fail and the test goes on."""
    return any(word in ast.unparse(each) for each in getattr(node, "items", ()) for word in _SWALLOWS)


def _reached(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that are executed whatever happens, up to the first that may be the last."""
    for node in body:
        text = ast.unparse(node)
        if isinstance(node, ast.With | ast.AsyncWith):
            if not _swallows(node):
                yield from _reached(node.body)
        else:
            yield node
        if any(word in text for word in _LEAVES):
            return


def _expected(statement: ast.stmt) -> list[ast.expr]:
    """The sides of an equality that it asserts, where one is computed and the other written."""
    sides: list[ast.expr] = []
    if isinstance(statement, ast.Assert) and isinstance(test := statement.test, ast.Compare):
        if len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            sides = [test.left, test.comparators[0]]
    elif (
        isinstance(statement, ast.Expr)
        and isinstance(call := statement.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _EQUALITIES
    ):
        sides = call.args[:2]
    written = [_is_written(side) for side in sides]
    if written in ([True, False], [False, True]):
        return [sides[written.index(True)]]
    return [side for side in reversed(sides) if isinstance(side, ast.Name)] if not any(written) else []


def _is_written(side: ast.expr) -> bool:
    """Whether it is a literal, as far as its own structure goes, or an approximation of one."""
    if isinstance(side, ast.Call) and ast.unparse(side.func).endswith("approx") and side.args:
        side = side.args[0]
    if isinstance(side, ast.UnaryOp):
        side = side.operand
    return isinstance(side, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set)


def _sources(function: Function, name: str) -> list[ast.expr]:
    """The literals that a name stands for which is read once: a variable's, or a parameter's in each case."""
    used = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    if sum(isinstance(each.ctx, ast.Load) for each in used) != 1:
        return []
    if len(used) == 2:
        values = [
            node.value
            for node in function.body
            if isinstance(node, ast.Assign) and any(target in used for target in node.targets)
        ]
    else:
        tables = (parameters(each, {}) or [] for each in function.decorator_list)
        values = [row[name] for rows in tables for _, row in rows if name in row]
    return values if all(map(_is_written, values)) else []


def _change(node: ast.expr, is_near: bool) -> bool:
    """Changes the first constant in a literal, in place; False where there is none."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant):
            each.value = _other(each.value, is_near)
            return True
        if isinstance(each, ast.List | ast.Tuple | ast.Set) and not each.elts:
            each.elts.append(ast.Constant(value="flipped"))
            return True
        if isinstance(each, ast.Dict) and not each.keys:
            each.keys.append(ast.Constant(value="flipped"))
            each.values.append(ast.Constant(value="flipped"))
            return True
    return False


def _other(value: Any, is_near: bool) -> Any:
    """Another value; near is one less, a tenth less, or one other letter."""
    match value:
        case bool():
            return not value
        case str() if is_near and (letter := next(filter(str.isalpha, value), "")):
            return value.replace(letter, "y" if letter in "xX" else "x", 1)
        case str():
            return f"{value}~"
        case bytes():
            return value + b"~"
        case int() if is_near:
            return value - 1
        case float() if is_near:
            return value * 0.9 or -1.0
        case int() | float() | complex():
            return value + FAR
    return "flipped"
