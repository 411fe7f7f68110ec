"""Resolves a script of package.json to single calls of tools, through other scripts and launchers.

Splits as a shell would, and gives up on what only a shell can resolve: pipes, `;`, `||`, substitutions. Starts nothing.
"""

import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"""&&|[&|;<>()`]|(?:[^\s"'&|;<>()`\\]|"[^"]*"|'[^']*'|\\.)+""")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_QUOTED: Final = re.compile(r""""[^"$]*"|'[^']*'""")
_NEEDS_SHELL: Final = re.compile(r"[*?$~\[{]")
_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_QUIET: Final = frozenset({"-s", "--silent", "--", "--no-install", "--no", "--yes", "-y"})
_SEVERAL: Final = frozenset({"run-s", "run-p", "npm-run-all", "npm-run-all2"})
_WRAPPERS: Final = frozenset({"c8", "nyc"})
_DEEPEST: Final = 8


class Call(NamedTuple):
    """One call of a tool; its words as in the script, with quotes."""

    tool: str
    words: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    wrapper: tuple[str, ...] = ()
    """A coverage tool with its options, before the tool."""

    def arguments(self) -> tuple[str, ...]:
        return tuple(plain(word) for word in self.words)


def plain(word: str) -> str:
    """`word` as the tool gets it, without quotes."""
    return "".join(shlex.split(word))


def needs_shell(words: tuple[str, ...]) -> bool:
    """Whether a shell would expand some word: an unquoted pattern or a variable."""
    return any(_NEEDS_SHELL.search(_QUOTED.sub("", word)) for word in words)


def calls_of(name: str, scripts: Mapping[str, str], depth: int = 0) -> tuple[Call, ...] | None:
    """The calls of the script `name`, with its pre and post scripts; None if unknown."""
    calls: list[Call] = []
    for each in (f"pre{name}", name, f"post{name}"):
        parts: list[list[str]] = [[]]
        for token in _TOKEN.findall(scripts.get(each, "")):
            if token == "&&":
                parts.append([])
            elif token in "&|;<>()`" or "$(" in token:
                return None
            else:
                parts[-1].append(token)
        for part in filter(None, parts):
            found = _part(tuple(part), scripts, depth) if depth < _DEEPEST else None
            if found is None:
                return None
            calls += found
    return tuple(calls)


def _part(words: tuple[str, ...], scripts: Mapping[str, str], depth: int) -> tuple[Call, ...] | None:
    variables: list[str] = []
    while words and (words[0] in {"cross-env", "env"} or _ASSIGNMENT.match(words[0])):
        variables += [words[0]] if _ASSIGNMENT.match(words[0]) else []
        words = words[1:]
    if not words:
        return None
    found = _command(words, scripts, depth)
    return found and tuple(call._replace(variables=(*variables, *call.variables)) for call in found)


def _command(words: tuple[str, ...], scripts: Mapping[str, str], depth: int) -> tuple[Call, ...] | None:
    first, rest = words[0], words[1:]
    if first in {"npx", "bunx"} or (first in _MANAGERS and rest[:1] in {("exec",), ("x",)}):
        rest = _without_flags(rest if first in {"npx", "bunx"} else rest[1:])
        return None if not rest or rest[0].startswith("-") else _command(rest, scripts, depth)
    if words[:2] == ("bun", "test"):
        return (Call(first, rest),)
    if first in _MANAGERS:
        return _of_manager(first, _without_flags(rest), scripts, depth)
    if first in _SEVERAL:
        calls: list[Call] = []
        for pattern in (plain(word) for word in rest if not word.startswith("-")):
            names = [name for name in scripts if fnmatchcase(name, pattern)]
            for each in [calls_of(name, scripts, depth + 1) for name in names] or [None]:
                if each is None:
                    return None
                calls += each
        return tuple(calls)
    if first in _WRAPPERS:
        # A coverage tool's options end where the next program begins: each is one word, with `=` or without a value.
        place = next((at for at, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
        inner = _part(words[place:], scripts, depth) if place else None
        is_one = inner is not None and len(inner) == 1 and not inner[0].wrapper
        return (inner[0]._replace(wrapper=words[:place]),) if inner and is_one else None
    # `jest` for both `jest` and `./node_modules/.bin/jest`.
    path = PurePath(plain(first))
    return (Call(path.name if ".bin" in path.parts or len(path.parts) == 1 else str(path), rest),)


def _of_manager(
    manager: str, words: tuple[str, ...], scripts: Mapping[str, str], depth: int
) -> tuple[Call, ...] | None:
    asked = _without_flags(words[1:]) if words[:1] == ("run",) else words
    name = {"t": "test", "tst": "test"}.get(asked[0], asked[0]) if asked else ""
    if name not in scripts:
        # `pnpm vitest` and `yarn vitest` call tools; other package manager commands are not checks.
        is_tool = bool(asked) and manager in {"pnpm", "yarn"} and re.match(r"\w", name) and words[0] != "run"
        return _command(asked, scripts, depth) if is_tool else None
    further = _without_flags(asked[1:])
    if manager == "npm" and further and "--" not in asked:
        return None
    calls = calls_of(name, scripts, depth + 1)
    if not calls or not further:
        return calls
    return (*calls[:-1], calls[-1]._replace(words=(*calls[-1].words, *further)))


def _without_flags(words: tuple[str, ...]) -> tuple[str, ...]:
    while words and words[0] in _QUIET:
        words = words[1:]
    return words
