"""Code moved out of a check's scope, and coverage raised by adding code that needs no test.

Lines are compared by shape, in which all plain names are equal, because moved code is often renamed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from keyword import iskeyword
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from fixloop.integrity.parts import has_parts, judging_part
from fixloop.integrity.source import Source
from fixloop.integrity.tokens import LANGUAGES
from fixloop.protocol.failures import FailureRef

MOVED: Final = "moved-away"
PADDED: Final = "coverage-padded"

_SHORTEST: Final = 8
"""Tokens of a line that identifies code."""
_TOKEN: Final = re.compile(r"\.\s*\w+|\w+|[^\w\s]")
_EXCLUDES: Final = re.compile(
    r"""(?:^|[{,[(])[ \t]*["']?[\w.-]{0,100}(?:exclu|omit|skip|ignore)[\w.-]{0,100}["']?[ \t]*[=:(]"""
    r"""[ \t]*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)""",
    re.MULTILINE | re.IGNORECASE,
)
_PATH: Final = re.compile(r"\w[\w./-]*")
_LETTER: Final = re.compile(r"[^\W\d]")
_ASKS_TO_DELETE: Final = re.compile(
    r"unused|(?:never|not) used|redefin|duplicate|dead code|unreachable", re.IGNORECASE
)


class Moved(NamedTuple):
    """A line that moved from one file to another."""

    old: str
    old_line: int
    new: str
    new_line: int


def shape(line: str) -> tuple[str, ...]:
    """The tokens of a line; all names except keywords and attributes become `_`."""
    return tuple(
        "_" if _LETTER.match(token) and not iskeyword(token) else token for token in _TOKEN.findall(line)
    )


def looked_at(command: Sequence[str], paths: Iterable[str]) -> tuple[str, ...]:
    """The existing files and folders that a command names; empty if the command selects files itself."""
    existing = {place for path in paths for place in (path, *map(str, PurePosixPath(path).parents[:-1]))}
    named = (word.partition("=") for word in command if not word.startswith("--ignore"))
    words = ["".join(parts).strip("/").removeprefix("./") for each in named for parts in (each, each[2:])]
    return tuple(dict.fromkeys(word for word in words if word in existing))


def left_out(command: Sequence[str], settings: Mapping[str, str]) -> frozenset[str]:
    """The files and folders that a tool excludes, by its command's options and its settings. `settings`: the texts of
    all settings files, by path."""
    tools = {PurePosixPath(word).name for word in command} - {""}
    tools |= {"coverage" for word in command if word.startswith("--cov")}
    following = zip(command, [*command[1:], ""], strict=True)
    options = [(word.strip("-").split("=", 1), after) for word, after in following if word.startswith("-")]
    texts = [f"{name} = {''.join(value) or after}" for (name, *value), after in options]
    for path, text in settings.items():
        if has_parts(path):
            settings_of_file = (judging_part(path, text) or {}).items()
            texts += [f"{key} = {value}" for key, value in settings_of_file if tools & {*key.split(".")}]
        elif {word.removesuffix("rc") for word in re.split(r"\W+", path)} & tools:
            texts.append(text)
    return frozenset(
        place.strip("/")
        for text in texts
        for value in _EXCLUDES.findall(text)
        for place in _PATH.findall(value)
    )


def moved_away(
    places: Sequence[str], old: Mapping[str, str], new: Mapping[str, str], hidden: Collection[str] = ()
) -> Iterator[Moved]:
    """The lines that moved from a checked file to an unchecked one. A file is checked if it is below `places`, or there
    are none, not `hidden`, and not Python code with another ending."""
    gained: dict[tuple[str, ...], tuple[str, int]] = {}
    for path, text in new.items():
        if not _is_checked(path, text, places, hidden):
            before = Counter(found for _, found in _shapes(old.get(path, "")))
            for number, found in _shapes(text):
                before[found] -= 1
                if before[found] < 0:
                    gained.setdefault(found, (path, number))
    for path, text in old.items():
        if _is_checked(path, text, places, hidden):
            after = Counter(found for _, found in _shapes(new.get(path, "")))
            for number, found in _shapes(text):
                after[found] -= 1
                if after[found] < 0 and found in gained:
                    yield Moved(path, number, *gained[found])


def gone(
    old: Mapping[str, str], new: Mapping[str, str], failures: Iterable[FailureRef]
) -> Iterator[tuple[FailureRef, str]]:
    """The failures in public functions and classes that were deleted, with their names: no new text has the name or a
    new function with the same parameters, and the failure did not ask for the deletion."""
    words = set(re.findall(r"\w+", "\n".join(new.values())))
    before = {path: _public(text) for path, text in old.items()}
    known = {name for found in before.values() for name in found}
    current = [named for text in new.values() for named in _public(text).items()]
    renamed = {parameters for name, (parameters, _) in current if name not in known}
    for each in failures:
        lost = (
            name
            for name, (parameters, lines) in before.get(each.file, {}).items()
            if each.line in lines and name.rpartition(".")[2] not in words and parameters not in renamed
        )
        if not _ASKS_TO_DELETE.search(f"{each.name} {each.headline}") and (name := next(lost, "")):
            yield each, name


def _public(text: str) -> dict[str, tuple[str, range]]:
    """The public functions and classes of a module, with the text of their parameters and their lines."""
    source = Source("a.py", text)
    return {
        each.name: (source.lines[each.first - 1].partition("(")[2], range(each.first, each.last + 1))
        for each in source.scopes
        if not any(part.startswith("_") for part in each.name.split("."))
    }


def percent_of_old_lines(
    covered: Mapping[str, tuple[Iterable[int], Iterable[int]]], old: Mapping[str, str], new: Mapping[str, str]
) -> float | None:
    """The coverage of the lines that a change did not add; None if no such line was measured. `covered`: the executed
    and missed lines of each file."""
    ran = missed = 0
    for path, (executed, missing) in covered.items():
        added = _added(old.get(path, ""), new[path]) if path in new else frozenset()
        ran += len(set(executed) - added)
        missed += len(set(missing) - added)
    return 100 * ran / (ran + missed) if ran + missed else None


def _added(old: str, new: str) -> frozenset[int]:
    matcher = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    return frozenset(
        number
        for kind, _, _, first, end in matcher.get_opcodes()
        if kind != "equal"
        for number in range(first + 1, end + 1)
    )


def _shapes(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    for number, line in enumerate(text.split("\n"), 1):
        found = shape(line)
        if len(found) >= _SHORTEST and not line.lstrip().startswith(("#", "//", "import ", "from ")):
            yield number, found


def _is_checked(path: str, text: str, places: Sequence[str], hidden: Collection[str]) -> bool:
    is_below = not places or any(f"{path}/".startswith(f"{place}/") for place in places)
    is_left_out = any(f"/{place}/" in f"/{path}/" for place in hidden if place not in places)
    is_code = path.endswith((".py", ".pyi", ".pyw")) or PurePosixPath(path).suffix[1:] in LANGUAGES
    return is_below and not is_left_out and (is_code or not Source("a.py", text).scopes)
