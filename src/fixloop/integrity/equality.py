"""Values that are equal to everything, or to more than before a fix: a test that asserts on them may no longer fail."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from fixloop.integrity.source import Function, Sign, Source, names_in
from fixloop.protocol.launchers import word_set

RULE: Final = "equals-everything"

_COMPARISONS: Final = frozenset(
    f"__{name}__"
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "contains", "instancecheck", "subclasscheck")
)
BUILT_IN: Final = frozenset(
    ("bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "set", "str", "tuple")
)
_VALUE_TYPES: Final = BUILT_IN - {"object"} | word_set(
    "complex bytearray decimal.Decimal fractions.Fraction datetime.date datetime.datetime datetime.time"
    " datetime.timedelta collections.OrderedDict collections.UserDict collections.UserList collections.UserString"
)
_SPECIAL: Final = re.compile(r"__(?!repr|reduce|init|new|post|class|set|del|exit)\w+__")
"""Methods that Python calls; for numbers, approximate comparison uses `__sub__`."""
_CONSTANT: Final = r"(?:'[^']*'|[\d.]+|true|false|null|! [01]|\[ [^\[\]]*\])"
_BRACES: Final = re.compile(
    r"(?:\b(?:valueOf|toJSON|equals|isEqual|asymmetricMatch)|toPrimitive \]) (?:[:=] )?(?:function )?"
    rf"\( [^()]*\) (?:: \w+ )?(?:=> )?(?:\{{ )?(?:return )?(?:\( )?{_CONSTANT} [;}},)]"
    r"|\bEquals? \( [^()]*\) bool \{ return (?:true|false) \}"
    r"|fn (?:eq|ne) \( [^()]*\) -> bool \{ (?:return )?(?:true|false) (?:; )?\}"
)
_MAKER: Final = re.compile(r"(?:\w+\.)*(?:dataclass|define|frozen|attrs|s)(?:\((?!.*\beq=False).*\))?")
_LEFT_OUT: Final = re.compile(r"\b(?:compare|eq)=False|\bClassVar\b")
_FIELD: Final = re.compile(r"\bself\.(\w+)\b(?! = )")
_WHOLE: Final = re.compile(r"\bself\b(?!\.)|\bsuper\b")
_NEARLY: Final = re.compile(r"\b(?:abs|round|isclose|lower|casefold|strip)(?=\()|(?<= )[<>]=?(?= )")
_KINDS: Final = re.compile(r"\bisinstance\(\w+, ([^()]+|\([^()]*\))\)")
_Equality = tuple[int, set[str], set[str], set[str]]
"""Its line, the fields that it compares, what makes it lenient, and the words of the class that it leaves out."""


def equals_everything(source: Source) -> Iterator[Sign]:
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                place, text = f"{node.name}.", ""
                if name := _constant_comparison(source, statement, node):
                    text = "does not look at what it is compared with"
                elif (name := _equality(statement)) and (value := _value_type(source, node)):
                    text = f"says what equals it, in place of `{value}`"
                if text:
                    yield source.sign(RULE, place + name, statement.lineno, f"`{place}{name}` {text}")
        elif isinstance(node, ast.Call) and source.dotted(node.func) in (
            "type",
            "setattr",
            "types.new_class",
        ):
            # A class created by a call: `type("X", (), {"__eq__": …})`.
            words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            if not _COMPARISONS.isdisjoint(words):
                yield source.sign(RULE, "made", node.lineno, "a comparison is put into a class by a call")
    for found, line in source.shapes(_BRACES):
        name = found[0].removeprefix("fn ").split()[0]
        yield source.sign(RULE, name, line, f"`{name}` returns the same for every value")


def _equality(statement: ast.stmt) -> str:
    """`__eq__` or `__ne__`, if a statement in a class defines it and is not an alias of an existing method."""
    name = statement.name if isinstance(statement, ast.FunctionDef) else ""
    if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Attribute):
        name = ast.unparse(statement.targets[0])
    return name if name in ("__eq__", "__ne__", "__contains__") else ""


def _value_type(source: Source, owner: ast.ClassDef) -> str:
    """The value type that a class derives from, directly or through classes in its file; empty for an enum."""
    above = [node for node in source.nodes if isinstance(node, ast.ClassDef) and node.lineno < owner.lineno]
    nearest = {node.name: node for node in sorted(above, key=lambda each: each.lineno)}
    waiting, seen = [owner], set[str]()
    while waiting:
        new = set(map(source.dotted, waiting.pop().bases)) - seen
        seen |= new
        waiting += [nearest[name] for name in new if name in nearest]
    is_enum = any(name.startswith("enum.") for name in seen)
    return "" if is_enum else min(seen & _VALUE_TYPES, default="")


def _constant_comparison(source: Source, statement: ast.stmt, owner: ast.ClassDef) -> str:
    """The name of a comparison with the same result for every value; empty for another statement."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _COMPARISONS:
            is_plain = isinstance(value, ast.Attribute | ast.Constant) or source.dotted(value) in _COMPARISONS
            return "" if is_plain or (isinstance(value, ast.Lambda) and _uses_other(value)) else name
        case ast.Assign(targets=[ast.Name(id="__class__")]) | ast.FunctionDef(name="__class__"):
            return "__class__"
        case ast.FunctionDef(name=name) if name in _COMPARISONS:
            return "" if _uses_other(statement) else name
        case ast.FunctionDef(name=name) if _SPECIAL.fullmatch(name):
            # A marker such as `MISSING` may always be false; a number or a list may not.
            is_usual = name != "__hash__" and _VALUE_TYPES.isdisjoint(map(source.dotted, owner.bases))
            values = _returned(statement)
            is_constant = bool(values) and all(isinstance(each, ast.Constant) for each in values)
            return name if is_constant and not is_usual else ""
    return ""


def _returned(function: Function | ast.Lambda) -> list[ast.expr]:
    if isinstance(function, ast.Lambda):
        return [function.body]
    returned = (node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    return [each for each in returned if each is not None and ast.unparse(each) != "NotImplemented"]


def _uses_other(function: Function | ast.Lambda) -> bool:
    """Whether the result depends on the other value, or nothing is returned."""
    nodes = list(ast.walk(function))
    arguments = [*function.args.posonlyargs, *function.args.args][1:]
    other = arguments[0].arg if arguments else ""
    unused = {id(each) for node in nodes if _ignores_value(node) for each in ast.walk(node)}
    names = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    is_named = any(name.id == other and id(name) not in unused for name in names)
    is_lenient = any(isinstance(node, ast.If) and _accepts_other_types(node, other) for node in nodes)
    choices = [node for node in nodes if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)]
    is_forced = any(isinstance(each, ast.Constant) and each.value for node in choices for each in node.values)
    return not _returned(function) or (is_named and not is_lenient and not is_forced)


def _ignores_value(node: ast.AST) -> bool:
    """`other` alone on a line, compared with itself, or only tested for a built-in type."""
    if isinstance(node, ast.Compare):
        return all(ast.dump(each) == ast.dump(node.left) for each in node.comparators)
    if isinstance(node, ast.Return | ast.Lambda):
        value = node.value if isinstance(node, ast.Return) else node.body
        kinds = (
            value.args[1:] if isinstance(value, ast.Call) and ast.unparse(value.func) == "isinstance" else []
        )
        return any(names_in(kind) <= BUILT_IN for kind in kinds)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)


def _accepts_other_types(branch: ast.If, other: str) -> bool:
    """`if not isinstance(other, Money): return True`, or the same with `isinstance(other, int)`."""
    is_negated = isinstance(branch.test, ast.UnaryOp)
    call = branch.test.operand if isinstance(branch.test, ast.UnaryOp) else branch.test
    is_kind = (
        isinstance(call, ast.Call) and ast.unparse(call.func) == "isinstance" and other in names_in(call)
    )
    returns_true = any(ast.unparse(each) == "return True" for each in branch.body)
    return is_kind and returns_true and (is_negated or not names_in(call).isdisjoint(BUILT_IN))


def compares_less(old: Source, new: Source) -> Iterator[Sign]:
    """Classes whose equality newly ignores a field that they have, allows for a difference or accepts other types."""
    before = dict(_equalities(old))
    for name, (line, fields, means, left_out) in _equalities(new):
        _, fields_before, means_before, _ = before.get(name, (0, fields, means, left_out))
        if ignored := fields_before & left_out:
            text = f"values of `{name}` with another `{min(ignored)}` are equal now"
            yield new.sign(RULE, name, line, text)
        elif extra := means - means_before:
            yield new.sign(RULE, name, line, f"what equals a `{name}` is decided with `{min(extra)}` now")


def _equalities(source: Source) -> Iterator[tuple[str, _Equality]]:
    for node in (each for each in source.nodes if isinstance(each, ast.ClassDef)):
        name, named = source.scope(node.lineno), set(re.findall(r"\w+", ast.unparse(node)))
        methods = {each.name: each for each in node.body if isinstance(each, Function)}
        bodies = {name: "\n".join(map(ast.unparse, each.body)) for name, each in methods.items()}
        if own := bodies.get("__eq__"):
            text = "\n".join([own, *(bodies.get(method, "") for method in _FIELD.findall(own))])
            # What passes the object itself on, such as `astuple(self)`, may compare everything.
            fields = named if _WHOLE.search(text) else {*_FIELD.findall(text)}
            reached, asked = set[str](), fields
            while asked := asked - reached:
                reached |= asked
                asked = {each for method in asked for each in _FIELD.findall(bodies.get(method, ""))}
            kinds = BUILT_IN.intersection(re.findall(r"\w+", " ".join(_KINDS.findall(text))))
            yield name, (methods["__eq__"].lineno, fields, {*_NEARLY.findall(text), *kinds}, named - reached)
        elif any(_MAKER.fullmatch(ast.unparse(each)) for each in node.decorator_list):
            given = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            left_out = [each for each in given if _LEFT_OUT.search(ast.unparse(each))]
            fields = {ast.unparse(each.target) for each in given if each not in left_out}
            yield name, (left_out[0].lineno if left_out else node.lineno, fields, set(), named - fields)
