"""A check's command as the call of a tool, what of it holds for other files, and what these have to fit."""

import posixpath
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LAUNCHERS: Final = words(
    "env uv uvx poetry pdm hatch pipenv pipx rye run tool coverage npx bunx npm pnpm yarn bun exec dlx x c8 nyc"
)
_MANAGERS: Final = words("npm pnpm yarn bun")
_PYTHON: Final = re.compile(r"python[\d.]*")
_OF_A_SHELL: Final = re.compile(r"[|&;<>()`$\n]")
_OTHERS: Final = words("-- -args --args")
"""What stands behind these goes to the tests, or to another program."""


class ToolCall(NamedTuple):
    """A call of one tool, whatever launches it."""

    head: tuple[str, ...]
    """All words up to the tool."""
    tool: str
    rest: tuple[str, ...]

    def kept(self, dropped: str, valued: str, is_target: Callable[[str], bool]) -> tuple[str, ...]:
        """The options that hold for any file: without `dropped`, where a name with `=` takes a value, and without what
        the tool is pointed at. `valued`: other options whose value could be taken for that."""
        options = words(dropped.replace("=", ""))
        groups = self._groups(words(valued) | {word[:-1] for word in words(dropped) if word.endswith("=")})
        return tuple(
            word
            for group in groups
            if group[0].partition("=")[0] not in options
            for word in group
            if len(group) > 1 or word.startswith("-") or not is_target(word)
        )

    def targets(self, valued: str, is_target: Callable[[str], bool]) -> tuple[str, ...]:
        """What it is pointed at."""
        single = (group[0] for group in self._groups(words(valued.replace("=", ""))) if len(group) == 1)
        return tuple(word for word in single if not word.startswith("-") and is_target(word))

    def value_of(self, *names: str) -> str:
        """The value of an option that goes by one of `names`; empty where it is not given."""
        for group in self._groups(frozenset(names)):
            name, _, value = group[0].partition("=")
            if name in names:
                return group[1] if len(group) > 1 else value
        return ""

    def _groups(self, valued: frozenset[str]) -> Iterator[tuple[str, ...]]:
        """The words, each option with its value, up to those that are not the tool's own."""
        option = ""
        for word in self.rest:
            if word in _OTHERS:
                break
            if option and not word.startswith("-"):
                yield (option, word)
                option = ""
                continue
            if option:
                yield (option,)
            option = word if word in valued else ""
            if not option:
                yield (word,)
        if option:
            yield (option,)


def call_of(command: Sequence[str], tools: Mapping[str, object]) -> ToolCall | None:
    """The call of one of `tools` that `command` is, also behind launchers, `python -m` or a shell that only finds
    files; None for any other command."""
    parts = tuple(command)
    if parts[:2] == ("sh", "-c") and len(parts) == 3 and not _OF_A_SHELL.search(parts[2]):
        parts = tuple(shlex.split(parts[2]))
    before = ""
    for at, word in enumerate(parts):
        name = PurePosixPath(word).name
        if name in tools:
            return ToolCall(parts[: at + 1], name, parts[at + 1 :])
        is_script = name == "run" and before in _MANAGERS
        is_launcher = name in _LAUNCHERS or _PYTHON.fullmatch(name) or word.startswith("-") or "=" in word
        if is_script or not is_launcher:
            break
        before = name
    return None


class Tool(NamedTuple):
    """How a canary is put to a tool, see `canaries/tools.toml`."""

    valued: str
    dropped: str = ""
    report: Sequence[str] = ()
    texts: Sequence[str] = ()
    runs_whole: bool = False
    is_script: bool = False
    """It looks at JavaScript."""
    begin: str = "const it = globalThis.it || globalThis.test;"
    expect: str = "globalThis.expect"
    end: str = ""
    load: str = "import"
    run: Sequence[str] = ()


def tools(kind: str) -> dict[str, Tool]:
    """The tools of one table of that file."""
    return {name: Tool(**each) for name, each in tomllib.loads(text_of("tools.toml"))[kind].items()}


class Project(NamedTuple):
    """What something that is added to a project has to fit."""

    files: frozenset[str]
    """The tracked ones, seen from where commands run."""
    changed: tuple[str, ...]
    """Those of them that a fix changed or added."""
    passed: tuple[str, ...] = ()
    """Names of tests that passed."""
    roots: tuple[str, ...] = ()
    """Folders that Python imports from beside the present one, as `src`."""
    addopts: str = ""
    """What the project's settings give pytest."""
    read: Callable[[str], str] = lambda path: ""

    def holds(self, word: str) -> bool:
        """Whether a word of a command is a file or folder here, a test in one, or a pattern of them."""
        path = posixpath.normpath(word.partition("::")[0])
        is_folder = any(file.startswith(f"{path}/") for file in self.files)
        return is_folder or path in self.files or path == "." or "*" in path

    def siblings(self, pattern: re.Pattern[str], below: Sequence[str] = ()) -> Iterator[str]:
        """The files that `pattern` finds by their paths, below one of the places: those with tests that passed first,
        then those that were changed."""
        places = [posixpath.normpath(re.split(r"::|\*", place)[0] or ".") for place in below] or ["."]
        proven = (name.partition("::")[0] for name in self.passed)
        for path in dict.fromkeys((*proven, *self.changed, *sorted(self.files))):
            is_below = any(place == "." or f"{path}/".startswith(f"{place}/") for place in places)
            if path in self.files and is_below and pattern.search(path):
                yield path

    def sibling(self, pattern: re.Pattern[str], below: Sequence[str] = ()) -> str:
        """The first of them; empty where there is none."""
        return next(self.siblings(pattern, below), "")


class Canary(NamedTuple):
    """Files that are added to a project for one run of a command, and what that run has to say of them."""

    command: tuple[str, ...]
    files: Mapping[str, str]
    """Their texts, by path from where commands run."""
    fails: tuple[str, ...]
    """Names that have to be reported as failures."""
    passes: tuple[str, ...] = ()
    """Names that have to be reported as passed."""
    output: str = ""
    """How what the command prints is read, as a check's `output`."""
    is_printed: bool = False
    """The runner writes no report: it prints a line for each test."""


def text_of(name: str) -> str:
    """A file of `canaries`; of programs, words in capitals are for what is put in."""
    return (Path(__file__).parent / "canaries" / name).read_text()
