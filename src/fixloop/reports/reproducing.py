"""Commands that somebody can run again: the check's own without its report files, and one for a single failure.

Owns what is known of runners. Of a tool that it does not know it gives no narrower command.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from shlex import quote
from types import MappingProxyType
from typing import Final

from fixloop.protocol.failures import Failure

_PLACE: Final = re.compile(r"\{(?:junit|sarif|coverage)\}")
_FOR_REPORTS: Final = re.compile(r"junit_\w+=.*|--reporter=.*|--cov-fail-under=0")
_OPTION: Final = re.compile(r"--?\w")


def without_reports(argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` without the options that only write a report file."""
    kept: list[str] = []
    for part in argv:
        if _PLACE.fullmatch(part) or part.startswith("junit_"):
            if kept and _OPTION.match(kept[-1]):
                kept.pop()
        elif not _PLACE.search(part) and not _FOR_REPORTS.fullmatch(part):
            kept.append(part)
    if "sarif" in kept:  # what a person reads instead is the tool's default
        place = kept.index("sarif")
        del kept[place - 1 if _OPTION.match(kept[place - 1]) else place : place + 1]
    return tuple(kept)


def command_line(argv: Sequence[str], variables: Mapping[str, str]) -> str:
    """`argv` as a line of a shell, with the variables it needs."""
    return " ".join([*(f"{name}={quote(value)}" for name, value in variables.items()), *map(quote, argv)])


def narrower(argv: Sequence[str], failure: Failure) -> tuple[str, ...]:
    """What runs `failure` alone; empty where the runner is not known, or cannot name it."""
    for place, part in enumerate(argv):
        make = _RUNNERS.get(part.rsplit("/", 1)[-1])
        if make is not None:
            return make(tuple(argv[: place + 1]), tuple(argv[place + 1 :]), failure)
    return ()


_Parts = tuple[str, ...]


def _pytest(runner: _Parts, rest: _Parts, failure: Failure) -> _Parts:
    if not failure.file or not failure.name.startswith(failure.file):
        return ()
    without_coverage = ("--no-cov",) if any(part.startswith("--cov") for part in rest) else ()
    return (*runner, *without_coverage, failure.name)


def _ruff(runner: _Parts, rest: _Parts, failure: Failure) -> _Parts:
    if rest[:1] == ("check",) and failure.file:
        return (*runner, "check", "--select", failure.name, failure.file)
    return (*runner, "format", "--diff", failure.file) if rest[:1] == ("format",) and failure.file else ()


def _of_file(runner: _Parts, rest: _Parts, failure: Failure) -> _Parts:
    options = tuple(takewhile(lambda part: part.startswith("-"), rest))
    return (*runner, *options, failure.file) if failure.file else ()


def _vitest(runner: _Parts, rest: _Parts, failure: Failure) -> _Parts:
    if not failure.file:
        return ()
    run = ("run",) if runner[-1].endswith("vitest") else ()
    # vitest joins the titles of suites with " > " in a report, and with a space to look for them.
    title = failure.name.rpartition("::")[2].replace(" > ", " ")
    return (*runner, *run, failure.file, *(("-t", title) if title and title != failure.file else ()))


def _go(runner: _Parts, rest: _Parts, failure: Failure) -> _Parts:
    name = failure.name.rpartition("::")[2].partition("/")[0]
    package = f"./{failure.file.rpartition('/')[0]}" if failure.file else "./..."
    return (*runner, "test", "-run", f"^{name}$", package) if rest[:1] == ("test",) and name else ()


def _cargo(runner: _Parts, rest: _Parts, failure: Failure) -> _Parts:
    return (*runner, "test", failure.name.rpartition("::")[2]) if rest[:1] == ("test",) else ()


_RUNNERS: Final[Mapping[str, Callable[[_Parts, _Parts, Failure], _Parts]]] = MappingProxyType(
    {
        "pytest": _pytest,
        "ruff": _ruff,
        "mypy": _of_file,
        "bandit": _of_file,
        "eslint": _of_file,
        "vitest": _vitest,
        "jest": _vitest,
        "go": _go,
        "cargo": _cargo,
    }
)
