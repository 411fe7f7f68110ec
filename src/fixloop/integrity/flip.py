"""Changes one expected constant in a test: the test must then fail, unless the value under test equals everything.

Changes only constants that are certainly compared: in the assertion that failed or one that always runs, where nothing
else in the test depends on the constant.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from fixloop.integrity.python_tests import Function, functions, parameters, parsed

_EQUALITIES: Final = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertAlmostEqual"}
)
_MAY_END: Final = ("return", "skip", "fail(", "raise ", "xfail", "importorskip")
_SWALLOWS: Final = ("raise", "Raise", "suppress", "warn", "Warn")
FAR: Final = 1_000_003
"""Exceeds any tolerance."""
_TOLERANT: Final = re.compile(r"approx|isclose|Almost|round")


class Flip(NamedTuple):
    line: int
    """The assertion's line in the unchanged test."""
    old: str
    new: str
    is_always_run: bool = True
    """Not within a branch, which only some of the test's cases may take."""


class Flipped(NamedTuple):
    """A file's text with flipped constants."""

    text: str
    flips: dict[str, Flip]
    """By test name within the file: `TestA::test_b`."""


def flipped(text: str, tests: Mapping[str, int], *, is_near: bool = False) -> Flipped:
    """The file with one constant changed in each of these tests that has a suitable one. The change is large, or with
    `is_near` small, where the test itself has no tolerance. `tests`: the line at which each failed, or 0."""
    flips: dict[str, Flip] = {}
    if (module := parsed(text)) is None:
        return Flipped("", flips)
    for name, function in functions(module.body, ""):
        if name in tests and (flip := _flip(function, tests[name], is_near)):
            flips[name] = flip
    return Flipped(ast.unparse(module), flips)


def _flip(function: Function, line: int, is_near: bool) -> Flip | None:
    """Change the first suitable constant."""
    always_run = [*_always_run(function.body)]
    for statement in (*_statement_at(function.body, line), *always_run):
        for expected in _expected(statement):
            sources = _sources(function, expected.id) if isinstance(expected, ast.Name) else [expected]
            shown = [statement, *sources]
            old = [ast.unparse(each) for each in shown]
            if is_near and any(map(_TOLERANT.search, old)):
                continue
            if sources and all([_change(source, is_near) for source in sources]):
                sides = zip(old, map(ast.unparse, shown), strict=True)
                was, now = next((was, now) for was, now in sides if was != now)
                return Flip(statement.lineno, was, now, statement in always_run)
    return None


def _statement_at(body: list[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """The statement at a line that ran before, also within a branch."""
    for node in body:
        if isinstance(node, ast.If | ast.With | ast.AsyncWith):
            if not _swallows(node):
                yield from _statement_at([*node.body, *getattr(node, "orelse", [])], line)
        elif node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def _swallows(node: ast.stmt) -> bool:
    """Whether the test may continue after an assertion in the block fails."""
    return any(word in ast.unparse(each) for each in getattr(node, "items", ()) for word in _SWALLOWS)


def _always_run(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that always run, up to the first that may end the test."""
    for node in body:
        text = ast.unparse(node)
        if isinstance(node, ast.With | ast.AsyncWith):
            if not _swallows(node):
                yield from _always_run(node.body)
        else:
            yield node
        if any(word in text for word in _MAY_END):
            return


def _expected(statement: ast.stmt) -> list[ast.expr]:
    """The only literal side of an asserted equality; if neither side is a literal, the sides that are names."""
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
    is_literal = [_is_literal(side) for side in sides]
    if is_literal in ([True, False], [False, True]):
        return [sides[is_literal.index(True)]]
    return [side for side in reversed(sides) if isinstance(side, ast.Name)] if not any(is_literal) else []


def _is_literal(side: ast.expr) -> bool:
    """Whether it is a literal, judged by its outermost node, or `approx` of one."""
    if isinstance(side, ast.Call) and ast.unparse(side.func).endswith("approx") and side.args:
        side = side.args[0]
    if isinstance(side, ast.UnaryOp):
        side = side.operand
    return isinstance(side, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set)


def _sources(function: Function, name: str) -> list[ast.expr]:
    """The literals assigned to a name that is read once: a variable, or a parameter in each of its cases."""
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
    return values if all(map(_is_literal, values)) else []


def _change(node: ast.expr, is_near: bool) -> bool:
    """Change the first constant in a literal, in place; False if there is none."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant):
            each.value = _changed(each.value, is_near)
            return True
        if isinstance(each, ast.List | ast.Tuple | ast.Set) and not each.elts:
            each.elts.append(ast.Constant(value="flipped"))
            return True
        if isinstance(each, ast.Dict) and not each.keys:
            each.keys.append(ast.Constant(value="flipped"))
            each.values.append(ast.Constant(value="flipped"))
            return True
    return False


def _changed(value: Any, is_near: bool) -> Any:
    """Another value; near is one less, 10 % less, or one different letter."""
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
