"""Coverage that no test has earned: what was not covered is gone, or is run by what a module does when it is imported.

Definitions that nothing mentions may go: nobody could have tested them. Lines are known again by their text.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fixloop.integrity.source import Function, Source


class Measured(NamedTuple):
    """A file, and which of its lines were run and which were not."""

    text: str = ""
    executed: Collection[int] = ()
    missing: Collection[int] = ()

    def said(self, numbers: Iterable[int]) -> Counter[str]:
        lines = self.text.split("\n")
        return Counter(lines[number - 1].strip() for number in numbers if number <= len(lines))


_NOTHING: Final = Measured()
Coverage = Mapping[str, Measured]
Lines = Mapping[str, Collection[int]]


def percent_earned(
    now: Coverage, before: Coverage, *, dead: Lines | None = None, only: Lines | None = None
) -> float:
    """The coverage if what was missed before is missed still, but for `dead` lines, whether it is gone or run now;
    `only`: of what is run now these lines alone are looked at."""
    ran = missed = risen = owed = 0
    for path in {*now, *before}:
        this, was = now.get(path, _NOTHING), before.get(path, _NOTHING)
        newly = (this.said(this.executed) - was.said(was.executed)) & was.said(was.missing)
        if only is not None:
            newly &= this.said({*this.executed} & {*only.get(path, ())})
        ran, missed, risen = ran + len(this.executed), missed + len(this.missing), risen + newly.total()
        owed += len({*was.missing} - {*(dead or {}).get(path, ())})
    left = missed + risen if only is not None else max(missed + risen, owed)
    return 100 * (ran - risen) / max(ran - risen + left, 1)


def dead_lines(
    old: Mapping[str, str], new: Mapping[str, str], mentions: Callable[[str], int]
) -> dict[str, set[int]]:
    """The lines of functions and classes that are gone and that nothing else named; `mentions`: how often a name
    occurs in the whole project before."""
    words = set(re.findall(r"\w+", "\n".join(new.values())))
    spans = [(path, span) for path, text in old.items() for span in Source(path, text).scopes]
    gone = [
        (path, span.name.rpartition(".")[2], range(span.first, span.last + 1))
        for path, span in spans
        if span.name.rpartition(".")[2] not in words
    ]
    lines = {(path, number) for path, _, numbers in gone for number in numbers}
    inside = Counter(
        word for path, number in lines for word in re.findall(r"\w+", old[path].split("\n")[number - 1])
    )
    found: dict[str, set[int]] = {}
    for path, name, numbers in gone:
        if mentions(name) <= inside[name]:
            found.setdefault(path, set()).update(numbers)
    return found


def called_at_import(old: str, new: str) -> set[str]:
    """The names of what a module newly calls when it is imported."""
    before, after = (
        Counter(_called(_at_import(tree)) if (tree := Source("a.py", text).tree) else ())
        for text in (old, new)
    )
    return set(after - before)


def reached(texts: Mapping[str, str], names: Collection[str]) -> dict[str, set[int]]:
    """The lines of the functions and classes of these names, and of those that they call."""
    defined = [
        (path, node, set(_called(ast.walk(node))))
        for path, text in texts.items()
        for node in Source(path, text).nodes
        if isinstance(node, Function | ast.ClassDef)
    ]
    known = set(names)
    while more := {name for _, node, called in defined if node.name in known for name in called} - known:
        known |= more
    found: dict[str, set[int]] = {}
    for path, node, _ in defined:
        if node.name in known:
            found.setdefault(path, set()).update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _called(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", ""))


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What is executed when a module is imported, as far as it is written there."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, Function):
            for each in (*child.decorator_list, child.args):
                yield from _at_import(ast.Expr(each) if isinstance(each, ast.expr) else each)
        elif not isinstance(child, ast.Lambda) and not _is_main(child):
            yield from _at_import(child)


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
