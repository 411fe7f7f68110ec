"""Nondeterministic results: branches on a random number, the current time, the last digits of a clock or hash, or a
call count."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from fixloop.integrity.paths import shipped
from fixloop.integrity.source import Function, Sign, Source, names_in

RULE: Final = "by-chance"

_RANDOM: Final = re.compile(
    r"random\.(?:random|randint|randrange|choice|getrandbits|uniform)|secrets\.\w+|os\.urandom|uuid\.uuid4"
    r"|numpy\.random\.\w+"
)
_VARYING: Final = re.compile(r"time\.(?:time|monotonic|perf_counter)(?:_ns)?|os\.getpid|id|hash")
_CLOCK: Final = re.compile(
    r"time\.(?:time|monotonic|perf_counter|process_time)(?:_ns)?|datetime\.(?:date\.today|datetime\.(?:now|utcnow|today))"
)
_PAUSES: Final = frozenset({"time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep", "gevent.sleep"})
_LOOPS: Final = ast.While | ast.For | ast.AsyncFor
_ENDS: Final = ast.While | ast.Break | ast.Return | ast.Raise | ast.Try
_CACHES: Final = frozenset({"functools.cache", "functools.lru_cache", "functools.cached_property"})
_CLOCK_NAMES: Final = frozenset(
    {"time", "date", "datetime", "timedelta", "timezone", "UTC", "os", "pathlib", "__file__"}
)
_KEPT: Final = re.compile(
    r"(?:let|const|var) (?P<name>\w+)(?P<literals>[^={};()]{0,60}= (?:\[ \] \w+ )?[\[{] (?:'|\d|undefined))?"
)
_BRACE: Final = re.compile(r"(?<!\S)[{}](?!\S)")
_RAISED: Final = re.compile(r"\b(\w+)(?: \. \w+)? \+ [+=]|\+ \+ (\w+)")
_TURN: Final = re.compile(
    r"\b(?P<counted>\w+)(?: \. \w+)? (?:\+ \+ )?% \d|\+ \+ (?P<raised>\w+)(?: \. \w+)? % \d"
    r"|\b(?P<used>\w+)(?: \. (?:shift|pop) \( \)| = (?P=used) \[ 1 :)"
)


def by_chance(source: Source) -> Iterator[Sign]:
    # What a loop asks for again may take its time.
    loops = (each for each in source.nodes if isinstance(each, _LOOPS))
    again = [each for each in loops if any(isinstance(one, _ENDS) for one in ast.walk(each))]
    for node in source.nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Compare):
            asked = node if isinstance(node, ast.Compare) else node.test
            names = [] if asked is not node and isinstance(asked, ast.Compare) else [*_draws(source, asked)]
            tops = {
                source.dotted(each).split(".")[0] for each in ast.walk(asked) if isinstance(each, ast.Name)
            }
            if isinstance(node, ast.Compare) and tops <= _CLOCK_NAMES:
                # Not a duration, which is compared with its start, nor an attribute such as the hour; but the age of
                # the source itself.
                sides = ast.walk(node) if "__file__" in tops else (node.left, *node.comparators)
                calls = (source.dotted(each.func) for each in sides if isinstance(each, ast.Call))
                names += filter(_CLOCK.fullmatch, calls)
            for name in names:
                yield source.sign(RULE, name, asked.lineno, f"a branch depends on `{name}`")
        elif isinstance(node, ast.Call) and node.args and source.dotted(node.func) in _PAUSES:
            is_fixed = isinstance(pause := node.args[0], ast.Constant) and bool(pause.value)
            if is_fixed and not any(each.lineno <= node.lineno <= (each.end_lineno or 0) for each in again):
                text = f"after {ast.unparse(pause)} s something else has ended, or it has not"
                yield source.sign(RULE, "pause", node.lineno, text)
        elif isinstance(node, Function):
            inner = list(ast.walk(node))
            yield from _through_variables(source, inner)
            kept = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
            if not _CACHES.isdisjoint(map(source.dotted, kept)):
                for name in {*_draws(source, node)}:
                    yield source.sign(RULE, name, node.lineno, f"what `{name}` gave once is given again")
            shared = {name for each in inner if isinstance(each, ast.Global) for name in each.names}
            incremented = (each.target for each in inner if isinstance(each, ast.AugAssign))
            counters = {name for target in incremented for name in names_in(target) & shared}
            for test in (each for each in inner if counters and isinstance(each, ast.BinOp)):
                if isinstance(test.op, ast.Mod | ast.BitAnd) and names_in(test) & counters:
                    text = "it matters how often this function was called"
                    yield source.sign(RULE, "count", test.lineno, text)
    for found, line in source.shapes(re.compile("|".join(shipped()["chance"]))):
        yield source.sign(RULE, found[0], line, "a branch depends on chance")
    yield from _in_turn(source)


def _in_turn(source: Source) -> Iterator[Sign]:
    """In code in braces: what a module keeps and counts up, or uses up, with each call."""
    depth, at, full = 0, 0, dict[str, bool]()
    for found, _ in source.shapes(_KEPT):
        braces = _BRACE.findall(found.string, at, found.start())
        depth, at = depth + braces.count("{") - braces.count("}"), found.start()
        full |= {} if depth else {found["name"]: bool(found["literals"])}
    counters = {found[1] or found[2] for found, _ in source.shapes(_RAISED)} & full.keys()
    for found, line in source.shapes(_TURN):
        if (found["counted"] or found["raised"]) in counters or full.get(found["used"]):
            yield source.sign(RULE, found[0], line, "it matters how often this function was called")


def _through_variables(source: Source, inner: Sequence[ast.AST]) -> Iterator[Sign]:
    """Branches on a variable that was set from a random value."""
    drawn: dict[str, str] = {}
    for node in inner:
        if isinstance(node, ast.Assign) and isinstance(place := node.targets[0], ast.Name):
            drawn |= dict.fromkeys([place.id] if (name := next(_draws(source, node.value), "")) else [], name)
    for node in inner:
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            for variable in sorted(names_in(node.test) & drawn.keys()):
                name = drawn[variable]
                yield source.sign(RULE, name, node.test.lineno, f"a branch depends on `{name}`")


def _draws(source: Source, test: ast.AST) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and _RANDOM.fullmatch(name := source.dotted(node.func)):
            yield name
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.BitAnd):
            called = (source.dotted(each.func) for each in ast.walk(node) if isinstance(each, ast.Call))
            yield from (name for name in called if _VARYING.fullmatch(name))
