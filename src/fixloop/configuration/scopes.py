"""What a project gives its tools: the options and paths of its own commands, as far as a check may take them over.

Refuses a command that it does not understand whole: half of one would check something else.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from fixloop.configuration.project_commands import ProjectCommand, arguments_of


class Grammar(NamedTuple):
    """A tool's options, as far as they matter here."""

    tool: str
    kept: frozenset[str]
    """Options that a check takes over."""
    dropped: frozenset[str]
    """Options that change how the tool reports, and not what it finds."""
    valued: frozenset[str]
    """Options whose value may be the next word."""
    command: tuple[str, ...] = ()
    """The subcommands that may stand first; one of them does, where there are any."""
    bare: bool = False
    """Whether the subcommand may be missing."""


class Scope(NamedTuple):
    """What a tool is given."""

    options: tuple[str, ...]
    paths: tuple[str, ...]
    why: str
    """The place of the project's command."""


_QUIET: Final = frozenset({"-q", "--quiet", "-v", "--verbose", "-vv", "-qq", "--color", "--no-color"})
_RUFF_VALUED: Final = frozenset(
    {"--select", "--ignore", "--extend-select", "--config", "--line-length", "--target-version"}
    | {
        "--exclude",
        "--extend-exclude",
        "--output-format",
        "--format",
        "--output-file",
        "-o",
        "--per-file-ignores",
    }
)
_RUFF_DROPPED: Final = frozenset(
    {"--fix", "--no-fix", "--fix-only", "--diff", "--show-fixes", "--exit-non-zero-on-fix", "--unsafe-fixes"}
    | {
        "--output-format",
        "--format",
        "--output-file",
        "-o",
        "--show-source",
        "--no-show-source",
        "--statistics",
    }
    | {"--no-cache", "-n", "--check", "--force-exclude"}
    | _QUIET
)
_RUFF_KEPT: Final = frozenset(
    {"--select", "--ignore", "--extend-select", "--config", "--line-length", "--target-version", "--preview"}
    | {"--exclude", "--extend-exclude", "--per-file-ignores", "--no-preview", "--isolated"}
)
RUFF_CHECK: Final = Grammar("ruff", _RUFF_KEPT, _RUFF_DROPPED, _RUFF_VALUED, ("check",), bare=True)
RUFF_FORMAT: Final = Grammar("ruff", _RUFF_KEPT, _RUFF_DROPPED, _RUFF_VALUED, ("format",))
BLACK: Final = Grammar(
    "black",
    kept=frozenset(
        {"--config", "-l", "--line-length", "-t", "--target-version", "-S", "--skip-string-normalization"}
    )
    | {
        "-C",
        "--skip-magic-trailing-comma",
        "--preview",
        "--exclude",
        "--extend-exclude",
        "--include",
        "--fast",
    },
    dropped=frozenset({"--check", "--diff", "--safe"}) | _QUIET,
    valued=frozenset({"--config", "-l", "--line-length", "-t", "--target-version"})
    | {"--exclude", "--extend-exclude", "--include"},
)
MYPY: Final = Grammar(
    "mypy",
    kept=frozenset({"--strict", "--config-file", "--python-version", "--platform", "--exclude", "-p", "-m"})
    | {
        "--package",
        "--module",
        "--ignore-missing-imports",
        "--namespace-packages",
        "--explicit-package-bases",
    }
    | {"--scripts-are-modules", "--follow-imports", "--disallow-untyped-defs", "--check-untyped-defs"}
    | {"--no-implicit-optional", "--warn-unused-ignores", "--warn-unreachable", "--show-error-codes"}
    | {"--warn-redundant-casts", "--no-warn-unused-ignores", "--enable-error-code", "--disable-error-code"},
    dropped=frozenset({"--pretty", "--no-pretty", "--install-types", "--non-interactive", "--no-incremental"})
    | {
        "--no-error-summary",
        "--show-column-numbers",
        "--junit-xml",
        "--show-traceback",
        "--show-error-context",
    }
    | _QUIET,
    valued=frozenset(
        {"--config-file", "--python-version", "--platform", "--exclude", "-p", "-m", "--package"}
    )
    | {"--module", "--follow-imports", "--enable-error-code", "--disable-error-code", "--junit-xml"},
)
PYTEST: Final = Grammar(
    "pytest",
    kept=frozenset(
        {"--doctest-modules", "--doctest-glob", "--ignore", "--ignore-glob", "--import-mode", "-p"}
    )
    | {"-W", "-o", "--strict-markers", "--strict-config", "--strict"},
    dropped=frozenset({"-s", "-x", "-n", "--numprocesses", "--tb", "--durations", "--maxfail", "--junitxml"})
    | {
        "--junit-xml",
        "--cov",
        "--cov-report",
        "--cov-branch",
        "--cov-append",
        "--cov-config",
        "--cov-fail-under",
    }
    | {"--no-cov", "--html", "-rA", "-ra", "-rs", "-rfE", "-rxX", "-l", "--showlocals", "--cov-context"}
    | {"--dist", "--no-header", "--verbosity", "--capture", "--failed-first", "--ff"}
    | _QUIET,
    valued=frozenset({"-n", "--tb", "--junitxml", "--junit-xml", "--cov-report", "--cov-config", "--ignore"})
    | {"-p", "-W", "-o", "--durations", "--maxfail", "--cov-fail-under", "--dist", "--import-mode"},
)


def scopes_of(grammar: Grammar, commands: Iterable[ProjectCommand], directory: Path) -> tuple[Scope, ...]:
    """The scopes of all of `commands` that run the tool and are understood whole, each once."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], Scope] = {}
    for command in commands:
        arguments = arguments_of(grammar.tool, command)
        scope = scope_of(grammar, arguments, directory, command.why) if arguments is not None else None
        if scope is not None:
            found.setdefault((scope.options, scope.paths), scope)
    return tuple(found.values())


def scope_of(grammar: Grammar, arguments: tuple[str, ...], directory: Path, why: str) -> Scope | None:
    """What the tool is given by `arguments`; None where that cannot be told."""
    words = list(arguments)
    if grammar.command:
        if words and words[0] in grammar.command:
            words.pop(0)
        elif not grammar.bare or not words or not _is_path(words[0], directory):
            return None
    options: list[str] = []
    paths: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            if not _is_path(word, directory):
                return None
            paths.append(str(PurePosixPath(word)))
            continue
        name, equals, _ = word.partition("=")
        if name not in grammar.kept | grammar.dropped:
            return None
        taken = [word]
        if not equals and name in grammar.valued:
            if not words:
                return None
            taken.append(words.pop(0))
        options += taken if name in grammar.kept else []
    return Scope(tuple(options), tuple(paths), why)


def _is_path(word: str, directory: Path) -> bool:
    """A file or folder of the project; `.` is one."""
    path = PurePosixPath(word)
    return bool(word) and not path.is_absolute() and ".." not in path.parts and (directory / word).exists()
