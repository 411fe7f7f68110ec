"""What a project gives its tools: the options and paths of its own commands, as far as a check may take them over.

Refuses a command that it does not understand whole: half of one would check something else.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from fixloop.configuration.commands import option_set
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


_QUIET: Final = option_set("-q --quiet -v --verbose -vv -qq --color --no-color")
_RUFF_REPORT: Final = option_set("--output-format --format --output-file -o")
_RUFF_SETTINGS: Final = option_set(
    "--select --ignore --extend-select --config --line-length --target-version --exclude --extend-exclude "
    "--per-file-ignores"
)
_RUFF_KEPT: Final = _RUFF_SETTINGS | option_set("--preview --no-preview --isolated")
_RUFF_DROPPED: Final = (
    _QUIET
    | _RUFF_REPORT
    | option_set(
        "--fix --no-fix --fix-only --diff --show-fixes --exit-non-zero-on-fix --unsafe-fixes --show-source "
        "--no-show-source --statistics --no-cache -n --check --force-exclude"
    )
)
_RUFF_VALUED: Final = _RUFF_SETTINGS | _RUFF_REPORT
RUFF_CHECK: Final = Grammar("ruff", _RUFF_KEPT, _RUFF_DROPPED, _RUFF_VALUED, ("check",), bare=True)
RUFF_FORMAT: Final = Grammar("ruff", _RUFF_KEPT, _RUFF_DROPPED, _RUFF_VALUED, ("format",))
_BLACK_VALUED: Final = option_set(
    "--config -l --line-length -t --target-version --exclude --extend-exclude --include"
)
BLACK: Final = Grammar(
    "black",
    kept=_BLACK_VALUED
    | option_set("-S --skip-string-normalization -C --skip-magic-trailing-comma --preview --fast"),
    dropped=_QUIET | option_set("--check --diff --safe"),
    valued=_BLACK_VALUED,
)
_MYPY_VALUED: Final = option_set(
    "--config-file --python-version --platform --exclude -p -m --package --module --follow-imports "
    "--enable-error-code --disable-error-code"
)
MYPY: Final = Grammar(
    "mypy",
    kept=_MYPY_VALUED
    | option_set(
        "--strict --ignore-missing-imports --namespace-packages --explicit-package-bases --scripts-are-modules "
        "--disallow-untyped-defs --check-untyped-defs --no-implicit-optional --warn-unused-ignores "
        "--no-warn-unused-ignores --warn-unreachable --warn-redundant-casts --show-error-codes"
    ),
    dropped=_QUIET
    | option_set(
        "--pretty --no-pretty --install-types --non-interactive --no-incremental --no-error-summary "
        "--show-column-numbers --junit-xml --show-traceback --show-error-context"
    ),
    valued=_MYPY_VALUED | option_set("--junit-xml"),
)
PYTEST: Final = Grammar(
    "pytest",
    kept=option_set(
        "--doctest-modules --doctest-glob --ignore --ignore-glob --import-mode -p -W -o --strict-markers "
        "--strict-config --strict"
    ),
    dropped=_QUIET
    | option_set(
        "-s -x -n --numprocesses --tb --durations --maxfail --junitxml --junit-xml --cov --cov-report --cov-branch "
        "--cov-append --cov-config --cov-fail-under --no-cov --html -rA -ra -rs -rfE -rxX -l --showlocals "
        "--cov-context --dist --no-header --verbosity --capture --failed-first --ff"
    ),
    valued=option_set(
        "-n --tb --junitxml --junit-xml --cov-report --cov-config --ignore -p -W -o --durations --maxfail "
        "--cov-fail-under --dist --import-mode"
    ),
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
    path = PurePosixPath(word)
    return bool(word) and not path.is_absolute() and ".." not in path.parts and (directory / word).exists()
