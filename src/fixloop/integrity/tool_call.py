"""A check's command as a tool call, its options that apply to other files, and the project those files must fit."""

import posixpath
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.protocol.launchers import NODE_LAUNCHERS, PYTHON_LAUNCHERS, started, word_set

_SHELL_SYNTAX: Final = re.compile(r"[|&;<>()`$\n]")
# A build that detection puts before the call; it has been made when a canary runs.
_BUILD: Final = re.compile(r"^(?:npm|pnpm|yarn|bun) run [\w:.-]+ && ")
_END_OF_OPTIONS: Final = word_set("-- -args --args")
"""Words after these go to the tests or to another program."""


class ToolCall(NamedTuple):
    """A call of one tool, through any launcher."""

    head: tuple[str, ...]
    """All words up to and including the tool."""
    tool: str
    rest: tuple[str, ...]

    def kept(self, dropped: str, valued: str, is_target: Callable[[str], bool]) -> tuple[str, ...]:
        """The options that apply to any file: without `dropped`, where a name with `=` takes a value, and without
        targets. `valued`: other options whose value could be mistaken for a target."""
        options = word_set(dropped.replace("=", ""))
        groups = self._groups(
            word_set(valued) | {word[:-1] for word in word_set(dropped) if word.endswith("=")}
        )
        return tuple(
            word
            for group in groups
            if group[0].partition("=")[0] not in options
            for word in group
            if len(group) > 1 or word.startswith("-") or not is_target(word)
        )

    def targets(self, valued: str, is_target: Callable[[str], bool]) -> tuple[str, ...]:
        """The files, folders or modules that the call names."""
        single = (group[0] for group in self._groups(word_set(valued.replace("=", ""))) if len(group) == 1)
        return tuple(word for word in single if not word.startswith("-") and is_target(word))

    def value_of(self, *names: str) -> str:
        """The value of the option with one of these names; empty if it is not given."""
        for group in self._groups(frozenset(names)):
            name, _, value = group[0].partition("=")
            if name in names:
                return group[1] if len(group) > 1 else value
        return ""

    def _groups(self, valued: frozenset[str]) -> Iterator[tuple[str, ...]]:
        """The words up to those for another program, each option with its value."""
        option = ""
        for word in self.rest:
            if word in _END_OF_OPTIONS:
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
    """`command` as a call of one of `tools`, also behind launchers, `python -m` or a `sh -c` with one simple command,
    perhaps after a build; None for any other command."""
    parts = tuple(command)
    line = _BUILD.sub("", parts[2]) if parts[:2] == ("sh", "-c") and len(parts) == 3 else ";"
    if not _SHELL_SYNTAX.search(line):
        parts = tuple(shlex.split(line))
    for at, name, _ in started(parts, PYTHON_LAUNCHERS | NODE_LAUNCHERS):
        if name in tools:
            return ToolCall(parts[: at + 1], name, parts[at + 1 :])
    return None


class Tool(NamedTuple):
    """How a tool gets its canary, see `canaries/tools.toml`."""

    valued: str
    dropped: str = ""
    report: Sequence[str] = ()
    texts: Sequence[str] = ()
    runs_whole: bool = False
    is_script: bool = False
    """It checks JavaScript."""
    begin: str = "const it = globalThis.it || globalThis.test;"
    expect: str = "globalThis.expect"
    end: str = ""
    load: str = "import"
    run: Sequence[str] = ()


def tools(kind: str) -> dict[str, Tool]:
    """The tools of one table of that file."""
    return {name: Tool(**each) for name, each in tomllib.loads(text_of("tools.toml"))[kind].items()}


class Project(NamedTuple):
    """The project that a canary is added to."""

    files: frozenset[str]
    """The tracked files, relative to where commands run."""
    changed: tuple[str, ...]
    """Those of them that a fix changed or added."""
    passed: tuple[str, ...] = ()
    """Names of tests that passed."""
    roots: tuple[str, ...] = ()
    """Folders, such as `src`, that Python imports from in addition to the current one."""
    addopts: str = ""
    """pytest options from the project's settings."""
    read: Callable[[str], str] = lambda path: ""

    def below(self, folder: str) -> "Project":
        """The project as a command sees it that is called in a folder, whose path ends with a slash."""
        files, changed = (
            [path.removeprefix(folder) for path in paths if path.startswith(folder)]
            for paths in (self.files, self.changed)
        )
        return self._replace(
            files=frozenset(files), changed=tuple(changed), read=lambda path: self.read(folder + path)
        )

    def holds(self, word: str) -> bool:
        """Whether a word of a command is an existing file or folder, a test in one, or a pattern."""
        path = posixpath.normpath(word.partition("::")[0])
        is_folder = any(file.startswith(f"{path}/") for file in self.files)
        return is_folder or path in self.files or path == "." or "*" in path

    def siblings(self, pattern: re.Pattern[str], below: Sequence[str] = ()) -> Iterator[str]:
        """The files below one of the places whose paths match `pattern`: first those with passed tests, then the
        changed ones, then the rest."""
        places = [posixpath.normpath(re.split(r"::|\*", place)[0] or ".") for place in below] or ["."]
        with_passed = (name.partition("::")[0] for name in self.passed)
        for path in dict.fromkeys((*with_passed, *self.changed, *sorted(self.files))):
            is_below = any(place == "." or f"{path}/".startswith(f"{place}/") for place in places)
            if path in self.files and is_below and pattern.search(path):
                yield path

    def sibling(self, pattern: re.Pattern[str], below: Sequence[str] = ()) -> str:
        """The first sibling; empty if there is none."""
        return next(self.siblings(pattern, below), "")


class Canary(NamedTuple):
    """Files that are added to a project for one run of a command, and the results that the run must report."""

    command: tuple[str, ...]
    files: Mapping[str, str]
    """Texts by path, relative to where commands run."""
    fails: tuple[str, ...]
    """Names that must be reported as failures."""
    passes: tuple[str, ...] = ()
    """Names that must be reported as passed."""
    output: str = ""
    """The parser for the command's output, as in a check's `output`."""
    is_printed: bool = False
    """The runner writes no report: it prints a line for each test."""


def text_of(name: str) -> str:
    """The text of a file in `canaries`; words in capitals are placeholders."""
    return (Path(__file__).parent / "canaries" / name).read_text()
