"""The kinds of values that keys take: each one's reader, error text and JSON Schema.

A reader takes a TOML value and returns the typed value, or raises an error of one sentence that names the key, the
expected value and the value found. Nothing is converted silently: "5" is not a number and 1 is not true.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from fixloop.configuration.commands import split_command, with_placeholders
from fixloop.configuration.place import Place, nearest

NAME_CHARACTERS: Final = 80
TEXT_CHARACTERS: Final = 500
MOST_ITERATIONS: Final = 1000
# A month: nobody waits longer, and it fits every clock.
MOST_MINUTES: Final = 43_200
# Fourteen hours, the largest UTC offset.
MOST_OFFSET: Final = 840
AGENT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RULE: Final = re.compile(r"[a-z][a-z0-9 -]{0,59}")
ALLOWANCE: Final = re.compile(
    r"(suppression|watched|equals-everything|test-literal|types-given-away|by-chance|unread-parameter) +\S+( +\d{1,6})?"
)
QUARANTINE: Final = re.compile(r"\S.* +\S+ +(\d{4}-\d{2}-\d{2})")
OUTPUTS: Final = ("go-test", "cargo-test", "clippy")
"""Readers for tools that print their report: the command's output is stored in a file and read from it."""


class FailOn(StrEnum):
    """The SARIF level from which a result fails."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Policy(StrEnum):
    """Which failures a gate applies to."""

    NEW = "new"
    """Failures that the feature's base does not have."""
    ALL = "all"


@dataclass(frozen=True, eq=False)
class Kind:
    """The kind of value a key takes, as an annotation of its type. Stored values are not read again."""

    read: Callable[[Any, Place], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def agent_name(value: Any, place: Place) -> str:
    """A word that may be part of a queue name, so it has no dot."""
    if not isinstance(value, str) or not AGENT_NAME.fullmatch(value):
        raise place.wrong("a name of letters, digits, - and _", value)
    return value


def line_of_text(value: Any, place: Place) -> str:
    """A name to print; it must not break a line or move a cursor."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise place.wrong("one line of text", value)
    if len(value) > TEXT_CHARACTERS:
        raise place.error(f"is longer than {TEXT_CHARACTERS} characters")
    return value.strip()


def check_name(value: Any, place: Place) -> str:
    """A name short enough for a table."""
    name = line_of_text(value, place)
    if len(name) > NAME_CHARACTERS:
        raise place.error(f"is longer than {NAME_CHARACTERS} characters")
    return name


def revision(value: Any, place: Place) -> str:
    """A branch, a tag or a commit, or `none`."""
    text = line_of_text(value, place)
    if text.startswith("-") or " " in text:
        raise place.wrong("a branch, a tag, a commit or none", value)
    return text


def truth(value: Any, place: Place) -> bool:
    """`true` or `false`, without conversion of similar values."""
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def _number(
    made: type[int] | type[float],
    least: int,
    most: int,
    expected: str,
    *,
    above: bool = False,
    off: bool = False,
) -> Kind:
    """From `least`, or `above` it, to `most`; TOML's infinity and nan are refused."""

    def read(value: Any, place: Place) -> float:
        if off and value is False:
            return made(0)
        is_number = isinstance(value, (int, made)) and not isinstance(value, bool)
        if not is_number or not least <= value <= most or (above and value == least):
            raise place.wrong(expected, value)
        return made(value)

    least_key = "exclusiveMinimum" if above else "minimum"
    schema = {"type": "integer" if made is int else "number", least_key: least, "maximum": most}
    return Kind(read, {"anyOf": [schema, {"const": False}]} if off else schema)


def _one_of(convert: Callable[[str], Any], words: Iterable[str], *, advises: bool = False) -> Kind:
    known = [str(word) for word in words]

    def read(value: Any, place: Place) -> Any:
        if isinstance(value, str) and value in known:
            return convert(value)
        near = nearest(value, known) if advises and isinstance(value, str) else ""
        advice = f" (did you mean {near!r}?)" if near else ""
        raise place.wrong(f"one of {', '.join(known)}{advice}", value)

    return Kind(read, {"enum": known})


def _list_of(
    expected: str,
    accepts: Callable[[str], object],
    convert: Callable[[list[str]], Iterable[str]] = list,
    **schema: Any,
) -> Kind:
    def read(value: Any, place: Place) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise place.wrong("a list of strings", value)
        for entry in value:
            if not accepts(entry):
                raise place.wrong(expected, entry)
        return tuple(convert(value))

    return Kind(read, {"type": "array", "items": {"type": "string", **schema}})


def _stays_below(pattern: str) -> bool:
    """Whether it stays in the project: one that leaves it would copy foreign files into the workspace."""
    path = PurePosixPath(pattern)
    return bool(pattern.strip()) and "\0" not in pattern and not path.is_absolute() and ".." not in path.parts


def _is_quarantine(entry: str) -> bool:
    found = QUARANTINE.fullmatch(entry)
    with suppress(ValueError):
        return found is not None and bool(date.fromisoformat(found[1]))
    return False


_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS}
_NAME: Final = {"type": "string", "pattern": f"^{AGENT_NAME.pattern}$"}
_WORDS: Final = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_COMMAND: Final = {"anyOf": [{"type": "string", "minLength": 1}, _WORDS]}

Truth = Annotated[bool, Kind(truth, {"type": "boolean"})]
Iterations = Annotated[int, _number(int, 1, MOST_ITERATIONS, f"a whole number from 1 to {MOST_ITERATIONS}")]
"""The number of runs before a person decides, including the first."""
_TIMES: Final = f"a whole number up to {MOST_ITERATIONS}, or false to switch it off"
NumberOrOff = Annotated[int, _number(int, 0, MOST_ITERATIONS, _TIMES, off=True)]
_ABOVE: Final = f"a number of minutes above 0, at most {MOST_MINUTES}"
Minutes = Annotated[float, _number(float, 0, MOST_MINUTES, _ABOVE, above=True)]
_LIMIT: Final = f"a number of minutes, at most {MOST_MINUTES}, or false for no limit"
MinutesOrOff = Annotated[float, _number(float, 0, MOST_MINUTES, _LIMIT, off=True)]
_OFFSET: Final = f"a whole number of minutes from -{MOST_OFFSET} to {MOST_OFFSET}"
UtcOffset = Annotated[int, _number(int, -MOST_OFFSET, MOST_OFFSET, _OFFSET)]
"""How far a zone's clocks are ahead of UTC, in minutes."""
Percent = Annotated[float, _number(float, 0, 100, "a number from 0 to 100")]
Line = Annotated[str, Kind(line_of_text, _TEXT)]
CheckName = Annotated[str, Kind(check_name, {**_TEXT, "maxLength": NAME_CHARACTERS})]
Revision = Annotated[str, Kind(revision, _TEXT)]
AgentName = Annotated[str, Kind(agent_name, _NAME)]
AgentNames = Annotated[
    tuple[str, ...],
    _list_of(
        "a name of letters, digits, - and _",
        AGENT_NAME.fullmatch,
        lambda names: dict.fromkeys(map(str.lower, names)),
        pattern=_NAME["pattern"],
    ),
]
"""Agents of a profile, in lower case."""
Output = Annotated[str, _one_of(str, OUTPUTS)]
Level = Annotated[FailOn, _one_of(FailOn, FailOn, advises=True)]
Speed = Annotated[str, _one_of(str, ("fast",))]
Counted = Annotated[Policy, _one_of(Policy, Policy)]
Variables = Annotated[
    tuple[str, ...],
    # A value in the file would put a secret into the repository's history.
    _list_of(
        "a list of names of environment variables, without values",
        VARIABLE.fullmatch,
        dict.fromkeys,
        pattern=f"^{VARIABLE.pattern}$",
    ),
]
Globs = Annotated[
    tuple[str, ...], _list_of("a list of patterns below the project, without '..'", _stays_below, minLength=1)
]
Rules = Annotated[
    tuple[str, ...],
    _list_of("a list of names of rules", RULE.fullmatch, dict.fromkeys, pattern=f"^{RULE.pattern}$"),
]
"""Of `docs/integrity.md`."""
Allowances = Annotated[
    tuple[str, ...],
    _list_of(
        'a list of entries such as "suppression src/*.py 2": a rule (suppression, watched, equals-everything, '
        "test-literal, types-given-away, by-chance or unread-parameter), a pattern of files, and the most in one file",
        ALLOWANCE.fullmatch,
        pattern=f"^{ALLOWANCE.pattern}$",
    ),
]
Quarantines = Annotated[
    tuple[str, ...],
    _list_of(
        'a list of entries such as "tests/test_net.py::test_retry ann 2027-01-31": a test or a pattern, who mends it, '
        "and the last day",
        _is_quarantine,
        pattern=f"^{QUARANTINE.pattern}$",
    ),
]
Places = Annotated[
    tuple[str, ...],
    _list_of(
        "a list of folders and files, each from / or ~/",
        lambda path: path.startswith(("/", "~/")) and "\0" not in path,
        pattern="^~?/",
    ),
]
SandboxMode = Annotated[str, _one_of(str, ("auto", "require", "off"))]
Command = Annotated[tuple[str, ...], Kind(split_command, _COMMAND)]
CheckCommand = Annotated[
    tuple[str, ...],
    Kind(lambda value, place: with_placeholders(split_command(value, place), place), _COMMAND),
]
