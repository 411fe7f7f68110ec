"""Coverage that no test has earned: uncovered lines were deleted, or now run only because a module is imported.

Definitions that nothing mentions may be deleted: no test could reach them. Lines are matched by their text.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fixloop.integrity.source import Function, Source


class Measured(NamedTuple):
    """A file with the numbers of its executed and missed lines."""

    text: str = ""
    executed: Collection[int] = ()
    missing: Collection[int] = ()

    def line_texts(self, numbers: Iterable[int]) -> Counter[str]:
        lines = self.text.split("\n")
        return Counter(lines[number - 1].strip() for number in numbers if number <= len(lines))


_NOTHING: Final = Measured()
Coverage = Mapping[str, Measured]
Lines = Mapping[str, Collection[int]]


def percent_earned(
    now: Coverage, before: Coverage, *, dead: Lines | None = None, only: Lines | None = None
) -> float:
    """The coverage if every line missed before, except `dead` lines, still counts as missed, even if it is deleted or
    runs now; `only`: of the lines that newly run, count only these."""
    ran = missed = extra = still_missed = 0
    for path in {*now, *before}:
        this, was = now.get(path, _NOTHING), before.get(path, _NOTHING)
        newly = (this.line_texts(this.executed) - was.line_texts(was.executed)) & was.line_texts(was.missing)
        if only is not None:
            newly &= this.line_texts({*this.executed} & {*only.get(path, ())})
        ran, missed, extra = ran + len(this.executed), missed + len(this.missing), extra + newly.total()
        still_missed += len({*was.missing} - {*(dead or {}).get(path, ())})
    left = missed + extra if only is not None else max(missed + extra, still_missed)
    return 100 * (ran - extra) / max(ran - extra + left, 1)


def dead_lines(
    old: Mapping[str, str], new: Mapping[str, str], mentions: Callable[[str], int]
) -> dict[str, set[int]]:
    """The lines of deleted functions and classes that nothing else named; `mentions`: how often a name occurred in the
    whole project before."""
    words = set(re.findall(r"\w+", "\n".join(new.values())))
    spans = [(path, each) for path, text in old.items() for each in Source(path, text).scopes]
    named = [(path, each.name.rpartition(".")[2], range(each.first, each.last + 1)) for path, each in spans]
    gone = [each for each in named if each[1] not in words]
    lines = {(path, number) for path, _, numbers in gone for number in numbers}
    texts = (old[path].split("\n")[number - 1] for path, number in lines)
    inside = Counter(word for text in texts for word in re.findall(r"\w+", text))
    return _by_path((path, numbers) for path, name, numbers in gone if mentions(name) <= inside[name])


def called_at_import(old: str, new: str) -> set[str]:
    """The names of functions that a module newly calls at import."""
    trees = (Source("a.py", text).tree or ast.Module([], []) for text in (old, new))
    before, after = (Counter(_called(_at_import(tree))) for tree in trees)
    return set(after - before)


def reached(texts: Mapping[str, str], names: Collection[str]) -> dict[str, set[int]]:
    """The lines of the functions and classes with these names, and of all that they call, directly or indirectly."""
    nodes = [(path, node) for path, text in texts.items() for node in Source(path, text).nodes]
    defined = [(path, node) for path, node in nodes if isinstance(node, Function | ast.ClassDef)]
    known = set[str]()
    more = set(names)
    while more:
        known |= more
        more = {name for _, node in defined if node.name in more for name in _called(ast.walk(node))} - known
    return _by_path(
        (path, range(node.lineno, (node.end_lineno or 0) + 1)) for path, node in defined if node.name in known
    )


def _by_path(spans: Iterable[tuple[str, Iterable[int]]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path, numbers in spans:
        found.setdefault(path, set()).update(numbers)
    return found


def _called(nodes: Iterable[ast.AST]) -> list[str]:
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return [getattr(each, "attr", getattr(each, "id", "")) for each in calls]


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported, not following calls."""
    yield node
    if isinstance(node, Function):
        inner: Iterable[ast.AST] = (*node.decorator_list, node.args)
    elif isinstance(node, ast.Lambda) or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)):
        inner = ()
    else:
        inner = ast.iter_child_nodes(node)
    for each in inner:
        yield from _at_import(each)
