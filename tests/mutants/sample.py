"""Picks random requirements and finds the code of each, for `make mutants SAMPLE=40 SEED=7`."""

import ast
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.mutants.rules import LISTED, Rule
from tests.proofs import ROOT, collect, statements

FOLDERS: Final = ("src/fixloop", "workers", "workflows")
SECTIONS: Final = "ABCDE"
"""The seeds' requirements; others say how this project is built."""
SHOWN: Final = 6


def drawn(sample: int, seed: int) -> list[str]:
    """`sample` of the seeds' requirements, the same ones for the same seed."""
    known = [number for told in statements().values() for number in told if number[0] in SECTIONS]
    return random.Random(seed).sample(sorted(known), min(sample, len(known)))


def asked(number: str, rules: list[Rule]) -> str:
    """The request for a rule if this requirement has none: its sentence, its code and its tests; else empty."""
    if any(number in rule.requirements for rule in rules):
        return ""
    told = next(told[number] for told in statements().values() if number in told)
    proofs = [proof for proof in collect() if number in proof.requirements]
    places = list(_cited(number)) or sorted({file for proof in proofs for file in _imported(proof.path)})
    lines = [f"{number}: {told}", *(f"    code  {place}" for place in places[:SHOWN])]
    lines += [f"    test  {proof.node}" for proof in proofs[:SHOWN]]
    return "\n".join([*lines, f"    no rule is of it: add one to {LISTED.relative_to(ROOT)}"])


def _cited(number: str) -> Iterator[str]:
    """The places where a docstring or comment names it, alone or in a range such as D24-D31."""
    for file, lines in _sources().items():
        for line, text in lines:
            if number in _numbers(text):
                yield f"{file}:{line}"


@cache
def _sources() -> dict[str, list[tuple[int, str]]]:
    """The lines of every source that name a requirement."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): _naming(file) for file in files}


def _naming(file: Path) -> list[tuple[int, str]]:
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    return [(number, text) for number, text in lines if re.search(r"[(, -][A-E]\d+[),.: -]", text)]


def _numbers(text: str) -> set[str]:
    found = set(re.findall(r"\b[A-E]\d+\b", text))
    for letter, first, same, last in re.findall(r"\b([A-E])(\d+)-([A-E])(\d+)\b", text):
        if letter == same:
            found |= {f"{letter}{each}" for each in range(int(first), int(last) + 1)}
    return found


@cache
def _imported(path: str) -> frozenset[str]:
    """The project's own modules that a test file imports."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
    files = {f"{name.replace('.', '/')}.py" for name in names if name.startswith(("fixloop", "workers"))}
    found = {f"src/{file}" if file.startswith("fixloop") else file for file in files}
    return frozenset(file for file in found if (ROOT / file).is_file())
