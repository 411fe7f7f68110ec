"""Equality that a fix narrows: values of a class that differed before are equal now."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from fixloop.integrity.equality import BUILT_IN, RULE
from fixloop.integrity.source import Function, Sign, Source

_MAKER: Final = re.compile(r"(?:\w+\.)*(?:dataclass|define|frozen|attrs|s)(?:\((?!.*\beq=False).*\))?")
_LEFT_OUT: Final = re.compile(r"\b(?:compare|eq)=False|\bClassVar\b")
_FIELD: Final = re.compile(r"\bself\.(\w+)")
_WHOLE: Final = re.compile(r"\bself\b(?!\.)|\bsuper\b")
_NEARLY: Final = re.compile(r"\b(?:abs|round|isclose|lower|casefold|strip)(?=\()|(?<= )[<>]=?(?= )")
_KINDS: Final = re.compile(r"\bisinstance\(\w+, ([^()]+|\([^()]*\))\)")


_Equality = tuple[int, set[str], set[str], set[str]]
"""Its line, the fields that it compares, what makes it lenient, and all words of the class."""


def compares_less(old: Source, new: Source) -> Iterator[Sign]:
    """Classes whose equality newly ignores a field that they have, allows for a difference or accepts other types."""
    before = dict(_equalities(old))
    for name, (line, fields, means, words) in _equalities(new):
        _, fields_before, means_before, _ = before.get(name, (0, fields, means, words))
        if ignored := (fields_before - fields) & words:
            yield new.sign(
                RULE, name, line, f"values of `{name}` with another `{min(ignored)}` are equal now"
            )
        elif extra := means - means_before:
            yield new.sign(RULE, name, line, f"what equals a `{name}` is decided with `{min(extra)}` now")


def _equalities(source: Source) -> Iterator[tuple[str, _Equality]]:
    for node in (each for each in source.nodes if isinstance(each, ast.ClassDef)):
        name, words = source.scope(node.lineno), set(re.findall(r"\w+", ast.unparse(node)))
        methods = {each.name: each for each in node.body if isinstance(each, Function)}
        bodies = {name: "\n".join(map(ast.unparse, each.body)) for name, each in methods.items()}
        if own := bodies.get("__eq__"):
            text = "\n".join([own, *(bodies.get(method, "") for method in _FIELD.findall(own))])
            # What passes the object itself on, such as `astuple(self)`, may compare everything.
            fields = words if _WHOLE.search(text) else {*_FIELD.findall(text)}
            kinds = BUILT_IN.intersection(re.findall(r"\w+", " ".join(_KINDS.findall(text))))
            yield name, (methods["__eq__"].lineno, fields, {*_NEARLY.findall(text), *kinds}, words)
        elif any(_MAKER.fullmatch(ast.unparse(each)) for each in node.decorator_list):
            given = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            left_out = [each for each in given if _LEFT_OUT.search(ast.unparse(each))]
            fields = {ast.unparse(each.target) for each in given if each not in left_out}
            yield name, (left_out[0].lineno if left_out else node.lineno, fields, set(), words)
