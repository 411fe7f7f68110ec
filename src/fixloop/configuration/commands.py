"""Turns a command as the user writes it into its arguments.

A string is split as a shell would, but no shell runs it; a list is taken unchanged. Refuses commands that only work in
a shell, and placeholders that nothing reads.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import PurePath
from typing import Any, Final

from fixloop.configuration.place import Place, nearest
from fixloop.errors import UsageError
from fixloop.protocol.launchers import PYTHON

PLACEHOLDERS: Final = ("junit", "sarif", "coverage", "jest", "eslint")
"""The placeholders for report paths in a check's command; each has a reader of that name."""
SHELL_WORDS: Final = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1", "2>"})
_WORD: Final = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")
_NEARLY: Final = re.compile(rf"\{{\s*({'|'.join(PLACEHOLDERS)})\s*\}}", re.IGNORECASE)
_LAUNCHERS: Final = (
    *(("env",), ("npx",), ("bunx",), ("uvx",), ("npm", "exec"), ("pnpm", "exec"), ("pnpm", "dlx")),
    *(("yarn", "exec"), ("bun", "x"), ("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("pipenv", "run")),
)
_WITH_SUBCOMMANDS: Final = frozenset({"cargo", "go", "npm", "pnpm", "yarn", "bun"})
_FOREIGN: Final = frozenset({"node", "npx", "npm", "pnpm", "yarn", "bun", "bunx", "deno", "go", "cargo"})
_READERS: Final = frozenset(
    {"bandit", "black", "codespell", "isort", "pip_audit", "pycodestyle", "pydocstyle", "pyflakes", "ruff"}
    | {"vulture", "yamllint"}
)
_QUOTED: Final = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_DOUBLED: Final = re.compile(r"\{\{([A-Za-z_][\w-]*)\}\}")


def split_command(value: Any, place: Place) -> tuple[str, ...]:
    """The arguments of a command given as a string or a list of strings; refuses shell syntax."""
    if isinstance(value, str):
        try:
            words = tuple(shlex.split(value))
        except ValueError as error:
            raise place.error(
                f"cannot be split into arguments: {str(error).lower()}; close the quote, or give a list"
            ) from None
        # A quoted or escaped word is an argument, as in `sed 's/a/b/;'` or `find -exec rm {} \;`.
        for word, unquoted in zip(words, shlex.split(_QUOTED.sub("q", value)), strict=True):
            if unquoted in SHELL_WORDS or unquoted.endswith(";"):
                raise place.error(
                    f"uses {word[-9:]!r}, but no shell runs it; write several checks, a script, or a list"
                )
        if words and re.match(r"[A-Za-z_]\w*=", words[0]):
            raise place.error(f"starts with a variable, but no shell runs it; begin with `env {words[0]}`")
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        words = tuple(value)
    else:
        raise place.wrong("a string or a list of strings", value)
    if not words or not words[0].strip():
        raise place.error("is an empty command; give the program and its arguments")
    if any("\0" in word for word in words):
        raise place.error("contains a NUL character, which no command can be given")
    return words


def with_placeholders(words: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """Check the placeholders of a check's command; `{{word}}` is a literal `{word}`."""
    known = [f"{{{name}}}" for name in PLACEHOLDERS]
    for word in words:
        for found in (*_WORD.finditer(word), *_NEARLY.finditer(word)):
            if found[0] not in known:
                near = nearest(found[1].strip(), PLACEHOLDERS)
                advice = f"did you mean {{{near}}}?" if near else f"known are {', '.join(known)}"
                raise place.error(
                    f"has an unknown placeholder {found[0]!r}; {advice} (a literal one is written {{{found[0]}}})"
                )
    return tuple(_DOUBLED.sub(r"{\1}", word) for word in words)


def braces_doubled(word: str) -> str:
    """Doubles literal braces, the inverse of `with_placeholders`."""
    return _WORD.sub(lambda found: found[0] if found[1] in PLACEHOLDERS else f"{{{found[0]}}}", word)


def is_plain(words: tuple[str, ...]) -> bool:
    """Whether splitting the words joined by spaces gives the same words."""
    try:
        return split_command(" ".join(words), Place("")) == words
    except UsageError:
        return False


def program_name(words: tuple[str, ...]) -> str:
    """The default name of a check: the tool, without its launcher (`npx vitest`, `uv run pytest`)."""
    words = without_launchers(words)
    name = PurePath(words[0]).name or words[0]
    if PYTHON.fullmatch(name) and len(words) > 1:
        following = words[2] if words[1] == "-m" and len(words) > 2 else words[1]
        name = name if following.startswith("-") else PurePath(following).name or name
    if name in _WITH_SUBCOMMANDS and len(words) > 1 and not words[1].startswith("-"):
        script = words[2:3] if words[1] == "run" else ()
        name = " ".join((name, words[1], *(word for word in script if not word.startswith("-"))))
    return "".join(sign for sign in name if sign.isprintable()).strip()[:80] or "command"


def without_launchers(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command without `env NAME=value`, `npx`, `uv run` and the like."""
    rest = list(words)
    while rest:
        launcher = next((found for found in _LAUNCHERS if tuple(rest[: len(found)]) == found), None)
        if launcher is None:
            return tuple(rest)
        del rest[: len(launcher)]
        while rest and (rest[0].startswith("-") or (launcher[0] == "env" and "=" in rest[0])):
            del rest[0]
    return words


def is_foreign(words: tuple[str, ...]) -> bool:
    """Whether a command belongs to another language, so that its result depends on no Python interpreter."""
    command = without_launchers(words)
    return command[0] in _FOREIGN or "node_modules" in PurePath(command[0]).parts or words[0] in _FOREIGN


def only_reads(words: tuple[str, ...]) -> bool:
    """Whether a command is a Python tool that reads a project and imports none of its modules."""
    return program_name(words).replace("-", "_") in _READERS


def program_of(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The program of a command without `env NAME=VALUE`, and its arguments; empty for no command."""
    rest = words
    if rest and PurePath(rest[0]).name == "env":
        rest = tuple(dropwhile(lambda word: "=" in word or word.startswith("-"), rest[1:]))
    return (rest[0], tuple(rest[1:])) if rest else ("", ())


def module_of(words: Sequence[str]) -> str:
    """The module of `python -m MODULE`; empty for any other command."""
    program, rest = program_of(words)
    return rest[1] if PYTHON.fullmatch(program) and rest[:1] == ("-m",) and len(rest) > 1 else ""
