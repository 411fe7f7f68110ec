"""Commands that somebody can run again: the check's own without its report files, and one for a single failure.

Owns what is known of runners. Of a tool that it does not know it gives no narrower command.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from fixloop.protocol.failures import Failure

_PLACE: Final = re.compile(r"\{(?:junit|sarif|coverage)\}")
_FOR_REPORTS: Final = re.compile(r"junit_\w+=.*|--reporter=.*|--cov-fail-under=0")
_RUNNERS: Final = frozenset({"pytest", "ruff", "mypy", "bandit", "eslint", "vitest", "jest", "go", "cargo"})
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


def narrower(argv: Sequence[str], failure: Failure) -> tuple[str, ...]:
    """What runs `failure` alone; empty where the runner is not known, or cannot name it."""
    names = [part.rsplit("/", 1)[-1] for part in argv]
    place = next((place for place, name in enumerate(names) if name in _RUNNERS), -1)
    if place < 0:
        return ()
    name, runner, rest = names[place], tuple(argv[: place + 1]), tuple(argv[place + 1 :])
    file, last = failure.file, failure.name.rpartition("::")[2]
    match name, rest[:1]:
        case "pytest", _ if file and failure.name.startswith(file):
            without_coverage = ("--no-cov",) if any(part.startswith("--cov") for part in rest) else ()
            return (*runner, *without_coverage, failure.name)
        case "ruff", ("check",) if file:
            return (*runner, "check", "--select", failure.name, file)
        case "ruff", ("format",) if file:
            return (*runner, "format", "--diff", file)
        case (("mypy" | "bandit" | "eslint"), _) if file:
            return (*runner, *takewhile(lambda part: part.startswith("-"), rest), file)
        case (("vitest" | "jest"), _) if file:
            run = ("run",) if name == "vitest" else ()
            # vitest joins the titles of suites with " > " in a report, and with a space to look for them.
            title = last.replace(" > ", " ")
            return (*runner, *run, file, *(("-t", title) if title and title != file else ()))
        case "go", ("test",) if test := last.partition("/")[0]:
            package = f"./{file.rpartition('/')[0]}" if file else "./..."
            return (*runner, "test", "-run", f"^{test}$", package)
        case "cargo", ("test",):
            return (*runner, "test", last)
    return ()
