"""Finds the test for each requirement in the test files' text, without importing or running anything."""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

ROOT: Final = Path(__file__).resolve().parents[1]
LISTED: Final = ROOT / "docs" / "requirements.toml"
MOST: Final = 4
"""One test proves at most so many requirements: a test that shows everything shows nothing when it fails."""


class Proof(NamedTuple):
    """One test function and the requirements its marker cites."""

    path: str
    """Relative to the root, with forward slashes."""
    name: str
    requirements: tuple[str, ...]
    is_slow: bool

    @property
    def node(self) -> str:
        """The pytest argument that runs it."""
        return f"{self.path}::{self.name}"


@cache
def every() -> tuple[Proof, ...]:
    """Every test, in the order of the files."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return tuple(proof for file in files for proof in read(file.read_text(encoding="utf-8"), _relative(file)))


def collect() -> list[Proof]:
    """The tests with a `proves` marker."""
    return [proof for proof in every() if proof.requirements]


def read(text: str, path: str) -> Iterator[Proof]:
    """
    The tests of one file, and the requirements each proves.

    Raises:
        ValueError: a marker is where it would not be seen: on a class, a module or an assignment.
    """
    tree = ast.parse(text)
    tests = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    seen = {id(mark) for test in tests for mark in test.decorator_list if _is_mark(mark, "proves")}
    # Walking every node takes a second for all tests, so only if the text has more markers than were seen.
    for node in ast.walk(tree) if text.count(".proves(") > len(seen) else ():
        if _is_mark(node, "proves") and id(node) not in seen:
            raise ValueError(f"{path}: put `proves` on a test function, not on {ast.unparse(node)}")
    module_is_slow = _is_slow([node.value for node in tree.body if isinstance(node, ast.Assign)])
    for test in tests:
        cited = [mark for mark in test.decorator_list if _is_mark(mark, "proves")]
        requirements = tuple(_word(word) for mark in cited for word in mark.args)
        yield Proof(path, test.name, requirements, module_is_slow or _is_slow(test.decorator_list))


@cache
def statements() -> dict[str, dict[str, str]]:
    """The text of each requirement, by section and number."""
    return tomllib.loads(LISTED.read_text(encoding="utf-8"))


def _relative(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _is_mark(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name):
        return False
    return ast.unparse(node.func) == f"pytest.mark.{name}"


def _is_slow(marks: Sequence[ast.AST]) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "slow" and ast.unparse(node) == "pytest.mark.slow"
        for mark in marks
        for node in ast.walk(mark)
    )


def _word(node: ast.expr) -> str:
    word = ast.literal_eval(node)
    if not isinstance(word, str):
        raise ValueError(f"a requirement is a word such as A1, not {word!r}")
    return word
