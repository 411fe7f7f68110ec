"""What scripted specialists and fixers do on the stage: one value for each run and for each answer."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from fixloop.protocol.failures import Failure


@dataclass(frozen=True)
class Silent:
    """Never comes to an end."""


SILENT = Silent()


@dataclass(frozen=True)
class Result:
    """One run of a specialist's checks."""

    outcome: Literal["passed", "failed", "error", "skipped"]
    failures: tuple[Failure, ...] = ()
    takes_seconds: float = 0.0
    coverage: str = ""
    error: str = ""
    stack_trace: str = ""
    passed: tuple[str, ...] = ()
    lists_passes: tuple[str, ...] = ()
    skipped_checks: tuple[str, ...] = ()
    is_final: bool = False
    tree: str | None = None
    """Another tree than the one that is to be judged."""

    def with_(self, **changes: Any) -> "Result":
        return replace(self, **changes)


@dataclass(frozen=True)
class Fix:
    """A fix: a new tree unless `tree` names one."""

    summary: str = "mended"
    fixes: tuple[str, ...] = ("mended it",)
    files: tuple[str, ...] = ("src/app.py",)
    takes_seconds: float = 0.0
    tree: str | None = None
    marks: tuple[str, ...] = ()
    diff: str = ""
    said: str = ""


@dataclass(frozen=True)
class Breaks:
    """The fixer command ends without a fix."""

    error: str = "exit 1"
    output_tail: str = ""
    undelivered: bool = False
    fatal: bool = False
    takes_seconds: float = 0.0


@dataclass(frozen=True)
class BadAnswer:
    """An answer that does not fit."""

    violations: tuple[str, ...] = ("section Files Modified is missing",)
    takes_seconds: float = 0.0


def failure(name: str, **further: Any) -> Failure:
    """A failing test called `name` in a file of its own, unless told otherwise."""
    told = {
        "file": f"tests/test_{name}.py",
        "line": 1,
        "error_type": "AssertionError",
        "message": f"{name} broke",
    }
    return Failure(name=name, **{**told, **further})


def fails(*names: str | Failure, **further: Any) -> Result:
    """A run that fails with these."""
    found = tuple(failure(name) if isinstance(name, str) else name for name in names)
    return Result("failed", found, **further)


def passes(**further: Any) -> Result:
    """A run that passes."""
    return Result("passed", **further)


def errs(error: str = "no module named pytest", **further: Any) -> Result:
    """Checks that could not be run."""
    return Result(
        "error", error=error, stack_trace=further.pop("stack_trace", f"Traceback: {error}"), **further
    )
