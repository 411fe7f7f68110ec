"""What a Python test does, to identify it under another name, in another file or with parameters.

Two tests do the same if the same statements run after normalization: parameters and variables that are assigned once
are replaced by their values, unittest's assertions by `assert`, a loop over a table that is written out by its rounds,
and parameters from another table by a loop over it. Fixtures and helpers are ignored: a fix that changes them is judged
with those of the snapshot.
"""

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = Mapping[str, ast.expr]
_Values = Mapping[str, ast.expr]

_PLAIN: Final = {
    "assertTrue": "({})", "assertFalse": "not ({})", "assertIsNone": "({}) is None",
    "assertIsNotNone": "({}) is not None", "assertEqual": "({}) == ({})", "assertEquals": "({}) == ({})",
    "assertListEqual": "({}) == ({})", "assertDictEqual": "({}) == ({})", "assertNotEqual": "({}) != ({})",
    "assertIs": "({}) is ({})", "assertIsNot": "({}) is not ({})", "assertIn": "({}) in ({})",
    "assertNotIn": "({}) not in ({})", "assertGreater": "({}) > ({})", "assertLess": "({}) < ({})",
    "assertIsInstance": "isinstance({}, {})",
}  # fmt: skip
"""unittest's assertions as expressions."""
_HARMLESS_MARK: Final = re.compile(r"(pytest\.)?mark\.(?!parametrize|usefixtures)")
"""A mark that does not change what the test does."""
_RAISES: Final = ast.dump(ast.parse("pytest.raises", mode="eval").body)
_CHECK: Final = re.compile(rf"Assert\(|With\(items=\[withitem\(context_expr=Call\(func={re.escape(_RAISES)}")
_LEAVES: Final = ast.For | ast.AsyncFor | ast.While | ast.Break | ast.Continue | ast.Return
_MOST_ROWS: Final = 500


class Row(NamedTuple):
    """A test with the parameters of one case."""

    suffix: str
    """As pytest shows it in brackets; empty without parameters, or if they cannot be read."""
    does: tuple[str, ...]

    def is_held_by(self, other: "Row") -> bool:
        """Whether `other` does all of this in this order, and otherwise only asserts."""
        rest = iter(self.does)
        expected = next(rest, None)
        for each in other.does:
            if each == expected:
                expected = next(rest, None)
            elif not _CHECK.match(each):
                return False
        return expected is None

    def parts(self) -> tuple["Row", ...]:
        """One row for each assertion, without the others; the row itself if it asserts nothing."""
        checks = [bool(_CHECK.match(each)) for each in self.does]
        return tuple(
            Row(self.suffix, tuple(each for at, each in enumerate(self.does) if at == kept or not checks[at]))
            for kept in (at for at, is_check in enumerate(checks) if is_check and sum(checks) <= _MOST_ROWS)
        ) or (self,)


class PythonTests:
    """The functions of one file, by their names in reports."""

    def __init__(self, path: str, text: str) -> None:
        self.functions: dict[str, Function] = {}
        self._scope: dict[str, ast.expr] = {}
        module = parsed(text)
        if module is None:
            return
        self.functions = dict(functions(module.body, f"{path}::"))
        for node in module.body:
            if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
                self._scope[target.id] = node.value

    def rows(self, name: str) -> tuple[Row, ...]:
        """What the function does in each of its cases; one row if its parameters cannot be read."""
        function, tables, marks = self.functions[name], [], []
        body = function.body[ast.get_docstring(function, clean=False) is not None :]
        for decorator in function.decorator_list:
            cases, text = parameters(decorator, self._scope), ast.unparse(decorator)
            if cases is not None:
                tables.append(cases)
            elif loop := _as_loop(decorator, body):
                body = [loop]
            elif not _HARMLESS_MARK.match(text):
                marks.append(text)
        found = []
        # pytest counts the decorator next to the function first.
        for row in itertools.islice(itertools.product(*reversed(tables)), _MOST_ROWS):
            values = {name: value for _, bound in row for name, value in bound.items()}
            does = (*marks, *_statements(function, body, values, self._scope))
            found.append(Row("-".join(label for label, _ in row), does))
        return tuple(found)


def parsed(text: str) -> ast.Module | None:
    """None for a text that this Python cannot parse."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    """All functions and methods, with their qualified names after `prefix`: `TestA::test_b`."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, Function):
            yield f"{prefix}{node.name}", node


def parameters(decorator: ast.expr, scope: _Scope) -> list[tuple[str, _Values]] | None:
    """The cases of a `parametrize`, with their labels; None if it is another decorator or not written out."""
    if not isinstance(decorator, ast.Call) or {each.arg for each in decorator.keywords} - {"ids"}:
        return None
    names, rows = decorator.args if len(decorator.args) == 2 else (decorator, decorator)
    if isinstance(rows, ast.Name):
        rows = scope.get(rows.id, rows)
    if not ast.unparse(decorator.func).endswith("parametrize") or not isinstance(rows, ast.List | ast.Tuple):
        return None
    given = [names] if isinstance(names, ast.Constant) else getattr(names, "elts", [])
    fields = [name.strip() for each in given for name in str(getattr(each, "value", "")).split(",")]
    found: list[tuple[str, _Values]] = []
    for number, entry in enumerate(rows.elts):
        values = entry.elts if len(fields) > 1 and isinstance(entry, ast.Tuple | ast.List) else [entry]
        if isinstance(entry, ast.Call) and ast.unparse(entry.func).endswith("param"):
            values = entry.args if all(each.arg == "id" for each in entry.keywords) else []
        if len(values) != len(fields):
            return None
        named = list(zip(fields, values, strict=True))
        found.append(("-".join(_label(value, f"{name}{number}") for name, value in named), dict(named)))
    return found


def _label(value: ast.expr, otherwise: str) -> str:
    try:
        constant = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError):
        return otherwise
    return str(constant) if isinstance(constant, str | int | float | bool | None) else otherwise


def _as_loop(decorator: ast.expr, body: list[ast.stmt]) -> ast.For | None:
    """A `parametrize` whose table is not written out, as the loop over that table that a test may have had instead."""
    match decorator:
        case ast.Call(args=[names, table]) if ast.unparse(decorator.func).endswith("parametrize"):
            given = ", ".join(str(getattr(each, "value", "")) for each in getattr(names, "elts", [names]))
            is_plain = all(map(str.isidentifier, re.split(r",\s*", given)))
            loop = ast.parse(f"for {given if is_plain else '_'} in {ast.unparse(table)}: ...").body[0]
            if (
                is_plain
                and {each.arg for each in decorator.keywords} <= {"ids"}
                and isinstance(loop, ast.For)
            ):
                loop.body = body
                return loop
    return None


def _statements(function: Function, body: list[ast.stmt], values: _Values, scope: _Scope) -> Iterator[str]:
    named = [each for each in ast.walk(function) if isinstance(each, ast.Name)]
    loaded = {each.id for each in named if isinstance(each.ctx, ast.Load)}
    stored = [each.id for each in named if not isinstance(each.ctx, ast.Load)]
    once = {name for name in stored if stored.count(name) == 1}
    known = {name: value for name, value in values.items() if name not in stored}
    yield from _flat(body, known, (once, loaded), scope)


def _flat(
    body: list[ast.stmt], known: dict[str, ast.expr], names: tuple[set[str], set[str]], scope: _Scope
) -> Iterator[str]:
    """`names`: those that are assigned once, and those that are read."""
    once, loaded = names
    for node in body:
        rounds = _rounds(node, once, {**scope, **known}) if isinstance(node, ast.For) else []
        around = [_self_method(each.context_expr) for each in getattr(node, "items", ())]
        rounds = [{}] if around == ["subTest"] else rounds
        for bound in rounds:
            yield from _flat(getattr(node, "body", []), {**known, **bound}, names, scope)
        if rounds:
            continue
        plain = _Plain(known).visit(ast.parse(ast.unparse(node)).body[0])
        target = plain.targets[0] if isinstance(plain, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id in once & loaded:
            known[target.id] = plain.value
        else:
            yield ast.dump(plain)


def _rounds(loop: ast.For, once: set[str], scope: _Scope) -> list[dict[str, ast.expr]]:
    """What a loop binds in each round; empty if its table is not written out, or if it may end early."""
    table = scope.get(loop.iter.id, loop.iter) if isinstance(loop.iter, ast.Name) else loop.iter
    is_many = isinstance(loop.target, ast.Tuple)
    names = [getattr(each, "id", "") for each in getattr(loop.target, "elts", [loop.target])]
    rows = [getattr(each, "elts", ()) if is_many else [each] for each in getattr(table, "elts", ())]
    may_end = loop.orelse or any(isinstance(each, _LEAVES) for part in loop.body for each in ast.walk(part))
    is_open = any(isinstance(each, ast.Starred) for row in rows for each in row) or len(rows) > _MOST_ROWS
    if may_end or is_open or not once.issuperset(names) or {*map(len, rows)} - {len(names)}:
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]


class _Plain(ast.NodeTransformer):
    """Replaces names by their values, and unittest's assertions by `assert`."""

    def __init__(self, known: _Values) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._known.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """`f"{name}.txt"` is the text that it makes, if all its values are known."""
        self.generic_visit(node)
        parts = [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values]
        texts = [str(each.value) for each in parts if isinstance(each, ast.Constant)]
        forms = [(getattr(one, "conversion", -1), getattr(one, "format_spec", None)) for one in node.values]
        return node if {*forms} - {(-1, None)} or len(texts) < len(parts) else ast.Constant("".join(texts))

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        test = self.visit(node.test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            # The expected value may come first.
            left, right = sorted((test.left, test.comparators[0]), key=ast.dump)
            test = ast.Compare(left=left, ops=test.ops, comparators=[right])
        return ast.Assert(test=test, msg=None)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        form = _PLAIN.get(_self_method(call), "")
        if not form or not isinstance(call, ast.Call) or len(call.args) < form.count("{"):
            self.generic_visit(node)
            return node
        assertion = ast.parse(f"assert {form.format(*map(ast.unparse, call.args))}").body[0]
        assert isinstance(assertion, ast.Assert)
        return self.visit_Assert(assertion)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        written = [each.value if isinstance(each, ast.Starred) else None for each in node.args]
        shown = zip(node.args, written, strict=True)
        node.args = [part for each, table in shown for part in getattr(table, "elts", [each])]
        if _self_method(node) == "assertRaises":
            node.func = ast.parse("pytest.raises", mode="eval").body
        return node


def _self_method(node: ast.expr) -> str:
    """The method name in `self.method(…)`; empty for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return node.func.attr if isinstance(owner, ast.Name) and owner.id == "self" else ""
    return ""
