"""Tests that a fix adds: which they are, and whether anything in them can fail.

A test that passes when the product's functions do nothing does not test them. `emptied` makes such a product; its
functions do nothing only during test calls, so that imports and fixtures still work.
"""

import ast
from collections.abc import Collection, Mapping
from typing import Final

from fixloop.integrity.python_tests import Function, functions, parsed

SWITCH: Final = "fixloop_emptied"
"""The name in `builtins` of the function that makes the return value of emptied functions."""
_RETURN_EARLY: Final = f"""
if {SWITCH!r} in __import__('builtins').__dict__:
    return __import__('builtins').__dict__[{SWITCH!r}]()
"""
_WORDS: Final = ("assert", "raises", "warns", "fail", "check", "expect", "verify")


def new_or_changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """The tests, as `tests/test_a.py::TestB::test_c`, whose body no file contained before under any name."""
    known = {_body(each) for text in before.values() for _, each in _functions(text, "")}
    return {
        name
        for path, text in after.items()
        for name, function in _functions(text, f"{path}::")
        if name.rpartition("::")[2].startswith("test") and _body(function) not in known
    }


def emptied(text: str) -> str:
    """A module whose functions do nothing while the switch is set; unchanged if it cannot be parsed."""
    module = parsed(text)
    if module is None:
        return text
    for node in ast.walk(module):
        # Special methods must return what Python expects, and an asynchronous generator cannot return a value.
        if not isinstance(node, Function) or node.name.startswith("__"):
            continue
        yields = any(isinstance(each, ast.Yield) for each in ast.walk(node))
        if not (yields and isinstance(node, ast.AsyncFunctionDef)):
            place = int(ast.get_docstring(node, clean=False) is not None)
            node.body[place:place] = ast.parse(_RETURN_EARLY).body
    return ast.unparse(ast.fix_missing_locations(module))


def without(text: str, tests: Collection[str]) -> str:
    """A file without these tests, named as `TestB::test_c`."""
    module = parsed(text)
    if module is None:
        return text
    _remove(module.body, "", tests)
    return ast.unparse(module)


def seems_to_check(text: str, test: str) -> bool:
    """Whether the test contains a word such as `assert`."""
    found = dict(_functions(text, "")).get(test)
    return found is not None and any(word in ast.unparse(found).lower() for word in _WORDS)


def _body(function: Function) -> str:
    body = function.body[ast.get_docstring(function, clean=False) is not None :]
    return "".join(map(ast.dump, (function.args, *function.decorator_list, *body)))


def _functions(text: str, prefix: str) -> list[tuple[str, Function]]:
    module = parsed(text)
    return [] if module is None else list(functions(module.body, prefix))


def _remove(body: list[ast.stmt], prefix: str, tests: Collection[str]) -> None:
    for node in list(body):
        if isinstance(node, ast.ClassDef):
            _remove(node.body, f"{prefix}{node.name}::", tests)
        elif isinstance(node, Function) and f"{prefix}{node.name}" in tests:
            body[body.index(node)] = ast.Pass()
