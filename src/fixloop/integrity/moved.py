"""Work moved away: code that left what a check looks at, and coverage that rose by code which needs no test.

Lines are compared by their shape, in which all plain names are alike: what is moved often gets other names.
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
from fixloop.protocol.state import FailureRef

MOVED: Final = "moved-away"
PADDED: Final = "coverage-padded"

_SHORTEST: Final = 8
"""Tokens of a line that says whose it is."""
_TOKEN: Final = re.compile(r"\.\s*\w+|\w+|[^\w\s]")
_HIDES: Final = re.compile(
    r"""(?:^|[{,[(])[ \t]*["']?[\w.-]*(?:exclu|omit|skip|ignore)[\w.-]*["']?[ \t]*[=:(]"""
    r"""[ \t]*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)""",
    re.MULTILINE | re.IGNORECASE,
)
_PLACE: Final = re.compile(r"\w[\w./-]*")
_FIRST: Final = re.compile(r"[^\W\d]")
_ASKS_TO_GO: Final = re.compile(
    r"unused|(?:never|not) used|redefin|duplicate|dead code|unreachable", re.IGNORECASE
)


class Moved(NamedTuple):
    """A line that left one file for another."""

    old: str
    old_line: int
    new: str
    new_line: int


def shape(line: str) -> tuple[str, ...]:
    """The tokens of a line; names are alike, but for keywords and attributes."""
    return tuple(
        "_" if _FIRST.match(token) and not iskeyword(token) else token for token in _TOKEN.findall(line)
    )


def looked_at(command: Sequence[str], paths: Iterable[str]) -> tuple[str, ...]:
    """The files and folders that a command names, of those there are; none: it looks at what it likes."""
    there = {place for path in paths for place in (path, *map(str, PurePosixPath(path).parents[:-1]))}
    words = [
        part.strip("/").removeprefix("./") for word in command for part in (word, word.partition("=")[2])
    ]
    return tuple(dict.fromkeys(word for word in words if word in there))


def left_out(command: Sequence[str], settings: Mapping[str, str]) -> frozenset[str]:
    """The files and folders at which a tool does not look, by the options of its command and its settings, which are
    all files of settings that there are."""
    tools = {PurePosixPath(word).name for word in command} - {""}
    tools |= {"coverage" for word in command if word.startswith("--cov")}
    following = zip(command, [*command[1:], ""], strict=True)
    said = [(word.strip("-").split("=", 1), after) for word, after in following if word.startswith("-")]
    texts = [f"{name} = {''.join(value) or after}" for (name, *value), after in said]
    for path, text in settings.items():
        if has_parts(path):
            told = (judging_part(path, text) or {}).items()
            texts += [f"{key} = {value}" for key, value in told if tools & {*key.split(".")}]
        elif {word.removesuffix("rc") for word in re.split(r"\W+", path)} & tools:
            texts.append(text)
    return frozenset(
        place.strip("/")
        for text in texts
        for value in _HIDES.findall(text)
        for place in _PLACE.findall(value)
    )


def moved_away(
    places: Sequence[str], old: Mapping[str, str], new: Mapping[str, str], hidden: Collection[str] = ()
) -> Iterator[Moved]:
    """The lines that changed files have lost which are looked at, because they are below `places` where these are
    named and not `hidden`, and that others have gained which are not."""
    gained: dict[tuple[str, ...], tuple[str, int]] = {}
    for path, text in new.items():
        if not _is_seen(path, places, hidden):
            before = Counter(found for _, found in _shapes(old.get(path, "")))
            for number, found in _shapes(text):
                before[found] -= 1
                if before[found] < 0:
                    gained.setdefault(found, (path, number))
    for path, text in old.items():
        if _is_seen(path, places, hidden):
            after = Counter(found for _, found in _shapes(new.get(path, "")))
            for number, found in _shapes(text):
                after[found] -= 1
                if after[found] < 0 and found in gained:
                    yield Moved(path, number, *gained[found])


def gone(
    old: Mapping[str, str], new: Mapping[str, str], failures: Iterable[FailureRef]
) -> Iterator[tuple[FailureRef, str]]:
    """What tools said of public functions and classes that are gone, each with its name: no new text has the name or a
    new function with the same parameters, and nobody asked for it to go."""
    words = set(re.findall(r"\w+", "\n".join(new.values())))
    before = {path: _exported(text) for path, text in old.items()}
    known = {name for found in before.values() for name in found}
    there = [named for text in new.values() for named in _exported(text).items()]
    renamed = {parameters for name, (parameters, _) in there if name not in known}
    for each in failures:
        lost = (
            name
            for name, (parameters, lines) in before.get(each.file, {}).items()
            if each.line in lines and name.rpartition(".")[2] not in words and parameters not in renamed
        )
        if not _ASKS_TO_GO.search(f"{each.name} {each.headline}") and (name := next(lost, "")):
            yield each, name


def _exported(text: str) -> dict[str, tuple[str, range]]:
    """The public functions and classes of a module, with the parameters that stand behind their names and the lines."""
    source = Source("a.py", text)
    return {
        each.name: (source.lines[each.first - 1].partition("(")[2], range(each.first, each.last + 1))
        for each in source.scopes
        if not any(part.startswith("_") for part in each.name.split("."))
    }


def percent_of_old_lines(
    covered: Mapping[str, tuple[Iterable[int], Iterable[int]]], old: Mapping[str, str], new: Mapping[str, str]
) -> float | None:
    """The coverage of all lines that a change did not add: of each file which were run and which were not; None where
    no such line was measured."""
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


def _is_seen(path: str, places: Sequence[str], hidden: Collection[str]) -> bool:
    is_below = not places or any(f"{path}/".startswith(f"{place}/") for place in places)
    return is_below and not any(f"/{place}/" in f"/{path}/" for place in hidden if place not in places)
