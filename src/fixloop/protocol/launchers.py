"""What a command really starts, behind `env A=b`, `uv run`, `npx`, `python -m` and other launchers.

Reads only the words of the command. Which programs are launchers depends on who asks: an `npx` starts no Python tool.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PYTHON: Final = re.compile(r"python[\d.]*")
PYTHON_LAUNCHERS: Final = word_set("env uv uvx poetry pdm hatch pipenv pipx rye run tool coverage")
NODE_LAUNCHERS: Final = word_set("npx bunx npm pnpm yarn bun exec dlx x c8 nyc")
_MANAGERS: Final = word_set("npm pnpm yarn bun")
_VALUED: Final = word_set(
    "-W -X --source --rcfile --include --omit --data-file --concurrency --with --group --extra"
)
"""Options of launchers whose value is the next word."""
_OPTION: Final = re.compile(r"-(?!c$|m.)")
"""`python -c` and `python -mMODULE` already name what is started."""


class Started(NamedTuple):
    """A word that may be what a command starts."""

    at: int
    name: str
    is_launcher: bool
    """Or a variable: what it starts comes later."""


def started(command: Sequence[str], launchers: Collection[str]) -> Iterator[Started]:
    """The words that may be what `command` starts: all launchers and variables, then the first other word. Options and
    their values are none; a module is one after `-m`, or together with it."""
    before, is_value = "", False
    for at, word in enumerate(command):
        if is_value or _OPTION.match(word):
            is_value = word in _VALUED and not is_value
            continue
        # `uvx ruff@0.4` and `uvx --from coverage[toml]` name a release or an extra.
        name = re.split(r"[@=<>\[]", PurePosixPath(word.removeprefix("-m")).name)[0]
        is_script = name == "run" and before in _MANAGERS
        is_other = bool(PYTHON.fullmatch(name)) or "=" in word or word.startswith("$")
        yield (found := Started(at, name, (name in launchers or is_other) and not is_script))
        if not found.is_launcher:
            break
        before = name
