"""Finds the options and paths in a project's own commands for a tool that a check may take over.

Refuses a command that it does not fully understand: half of one would check something else.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from fixloop.configuration.project_commands import ProjectCommand, arguments_of
from fixloop.protocol.launchers import word_set


class Grammar(NamedTuple):
    """A tool's options; `scopes.toml` explains the fields."""

    tool: str
    kept: frozenset[str]
    dropped: frozenset[str]
    valued: frozenset[str]
    command: tuple[str, ...] = ()
    bare: bool = False


class Scope(NamedTuple):
    """A tool's options and paths."""

    options: tuple[str, ...]
    paths: tuple[str, ...]
    why: str
    """The place of the project's command."""


_TABLES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _grammar(name: str) -> Grammar:
    row = _TABLES[name]
    kept, dropped, valued = (word_set(row[key]) for key in ("kept", "dropped", "valued"))
    return Grammar(row["tool"], kept, dropped, valued, tuple(row.get("command", ())), row.get("bare", False))


RUFF_CHECK: Final = _grammar("ruff_check")
RUFF_FORMAT: Final = _grammar("ruff_format")
BLACK: Final = _grammar("black")
MYPY: Final = _grammar("mypy")
PYTEST: Final = _grammar("pytest")


def scopes_of(grammar: Grammar, commands: Iterable[ProjectCommand], directory: Path) -> tuple[Scope, ...]:
    """The scopes of all of `commands` that run the tool and are fully understood, each once."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], Scope] = {}
    for command in commands:
        arguments = arguments_of(grammar.tool, command)
        scope = scope_of(grammar, arguments, directory, command.why) if arguments is not None else None
        if scope is not None:
            found.setdefault((scope.options, scope.paths), scope)
    return tuple(found.values())


def common_scope(grammar: Grammar, commands: Iterable[ProjectCommand], directory: Path) -> Scope | None:
    """The scope of all `commands` that run the tool, if they agree; one that is not fully understood must name the same
    paths, and any a part of them. Otherwise a part of what the project runs would be taken for all of it."""
    known, paths = dict[tuple[tuple[str, ...], tuple[str, ...]], Scope](), set[frozenset[str]]()
    for command in commands:
        arguments = arguments_of(grammar.tool, command)
        if arguments is not None and "--benchmark-only" not in arguments:
            scope = scope_of(grammar, arguments, directory, command.why)
            named = (word for word in arguments if not word.startswith("-") and _is_path(word, directory))
            paths.add(frozenset(scope.paths if scope else (str(PurePosixPath(word)) for word in named)))
            known |= {(scope.options, scope.paths): scope} if scope else {}
    whole = {each for each in paths if not any(_is_part(each, other) for other in paths - {each})}
    found = [scope for scope in known.values() if frozenset(scope.paths) in whole]
    return found[0] if len(found) == len(whole) == 1 else None


def _is_part(paths: frozenset[str], whole: frozenset[str]) -> bool:
    """Whether all of `paths` lie in `whole`; no path is everything."""
    return bool(paths) and all(any(map(PurePosixPath(path).is_relative_to, whole or {""})) for path in paths)


def scope_of(grammar: Grammar, arguments: tuple[str, ...], directory: Path, why: str) -> Scope | None:
    """The tool's scope in `arguments`; None if it is unknown."""
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
