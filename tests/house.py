"""Measures the size and the coupling of the code: `python -m tests.house`.

Rooms are the entries of the library's folder (a package or a loose module, without its `__init__.py`) and the
application's root folders; an arrow is one room that imports another, at once or later. A circle is a set of rooms, or
of files that need each other to be imported. Exit code 1 if a figure is worse than in `tests/house.toml`: circles and
loose modules exactly, sizes by more than 5 %.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIMITS: Final = ROOT / "tests" / "house.toml"
APPLICATION: Final = ("workers", "workflows", "config")
OUTSIDE_TESTS: Final = ("src", *APPLICATION, "bench", "examples")
GROWTH: Final = 1.05
MAY_GROW: Final = frozenset({"lines", "single_caller_percent"})

Graph = Mapping[str, set[str]]


def main() -> int:
    """Print each figure and its limit; returns the exit code."""
    found, limits = figures(), tomllib.loads(LIMITS.read_text())
    for name, value in found.items():
        most = limits[name] * (GROWTH if name in MAY_GROW else 1)
        print(f"{name:<22} {value:>9,.10g} (at most {limits[name]:,}){'' if value <= most else '  WORSE'}")
    return int(any(found[name] > limits[name] * (GROWTH if name in MAY_GROW else 1) for name in found))


def figures() -> dict[str, float]:
    """Each figure by its name in `house.toml`."""
    trees = _trees()
    between = _between(trees)
    at_import = {
        name: set(_imported(_statements(tree, at_import=True), trees)) - {name}
        for name, tree in trees.items()
    }
    functions, single = _functions(trees.values())
    return {
        "lines": sum(len(path.read_bytes().splitlines()) for path in _files(*OUTSIDE_TESTS)),
        "loose_modules": sum(1 for path in (ROOT / "src" / "fixloop").glob("*.py")),
        "rooms": len(between),
        "arrows": sum(map(len, between.values())),
        "circles_of_files": len(circles(at_import)),
        "circles_of_rooms": len(circles(between)),
        "single_caller_percent": round(100 * single / functions, 1),
    }


def rooms() -> dict[str, set[str]]:
    """Each room with those that it imports."""
    return _between(_trees())


def _between(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {_room(name): set() for name in trees.keys() - {"fixloop"}}
    for name, tree in trees.items():
        wanted = {_room(each) for each in _imported(_statements(tree), trees)}
        found.get(_room(name), set()).update((wanted & found.keys()) - {_room(name)})
    return found


def circles(graph: Graph) -> list[set[str]]:
    """The sets of nodes that reach each other."""
    beyond = {node: reached(graph, node) for node in graph}
    found = {frozenset({a, *(b for b in beyond[a] if a in beyond.get(b, ()))}) for a in graph}
    return [set(each) for each in found if len(each) > 1]


def reached(graph: Graph, start: str) -> set[str]:
    """The nodes that `start` leads to; itself only if it is on a circle."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for node in graph.get(waiting.pop(), set()) - seen:
            seen.add(node)
            waiting.append(node)
    return seen


def _trees() -> dict[str, ast.Module]:
    return {_module(path): ast.parse(path.read_bytes()) for path in _files("src", *APPLICATION)}


def _files(*folders: str) -> Iterator[Path]:
    return chain.from_iterable(sorted((ROOT / folder).rglob("*.py")) for folder in folders)


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[parts[0] == "src" :]).removesuffix(".__init__")


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2]) if module.startswith("fixloop.") else module.split(".")[0]


def _imported(nodes: Iterable[ast.AST], known: Container[str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name if name in known else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def _statements(node: ast.AST, at_import: bool = False) -> Iterator[ast.AST]:
    """All nodes below `node`; `at_import`: without function bodies and code that only a type checker reads."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            if not (at_import and _is_later(child)):
                yield from _statements(child, at_import)


def _is_later(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _functions(trees: Iterable[ast.Module]) -> tuple[int, int]:
    """The number of functions, and of private ones that their module names in one place."""
    functions = single = 0
    for tree in trees:
        nodes = list(ast.walk(tree))
        named = Counter(each.id for each in nodes if isinstance(each, ast.Name))
        named.update(each.attr for each in nodes if isinstance(each, ast.Attribute))
        names = [each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        functions += len(names)
        single += sum(name.startswith("_") and not name.endswith("__") and named[name] == 1 for name in names)
    return functions, single


if __name__ == "__main__":
    sys.exit(main())
