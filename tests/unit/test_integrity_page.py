"""docs/integrity.md has a section for each rule in the code, and for no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "integrity.md"
FOLDERS: Final = ("src/fixloop/integrity", "src/fixloop/protocol", "workers/commands")
MAKERS: Final = frozenset({"Finding", "sign", "_finding"})
"""Functions called with a rule's name, as `rule=` or as the first argument."""
ERRORS: Final = frozenset({"environment"})
"""These report no finding, but an error of the run."""


def constants_of(tree: ast.Module) -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def rules_in(tree: ast.Module, known: dict[str, dict[str, str]]) -> Iterator[str]:
    """`known`: the constants of all modules, by the last part of a module's name."""
    constants = constants_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            of_module = known.get(node.module.rpartition(".")[2], {})
            constants |= {each.name: of_module[each.name] for each in node.names if each.name in of_module}
            for each in node.names:
                constants |= {f"{each.name}.{name}": text for name, text in known.get(each.name, {}).items()}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        given = [word.value for word in call.keywords if word.arg == "rule"] or call.args[:1]
        for value in given if name in MAKERS else ():
            named = value.value if isinstance(value, ast.Constant) else constants.get(ast.unparse(value))
            if isinstance(named, str):
                yield named


@pytest.mark.heavy
def test_the_page_has_a_section_for_each_rule_and_for_no_other() -> None:
    modules = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    trees = [ast.parse(path.read_bytes()) for path in modules]
    known: dict[str, dict[str, str]] = {}
    for path, tree in zip(modules, trees, strict=True):
        known.setdefault(path.stem, {}).update(constants_of(tree))
    rules = {rule for tree in trees for rule in rules_in(tree, known)}

    sections = re.findall(r"^### `([a-z-]+)`$", PAGE.read_text(), re.MULTILINE)

    assert len(sections) == len(set(sections))
    assert set(sections) - ERRORS == rules


def test_each_section_says_in_one_line_how_to_allow_it() -> None:
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]

    for section in sections:
        name = section.partition("`\n")[0].strip("`")
        (allowing,) = re.findall(r"^Allow it: .*$", section, re.MULTILINE)
        assert name in allowing or name == "apart"
