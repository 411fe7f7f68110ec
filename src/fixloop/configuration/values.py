"""The kinds of values that keys take: how each is read, the sentence that refuses it, and its JSON Schema.

A reader takes what TOML gave and returns the typed value, or raises one sentence that names the key, what it
takes and what stood there. Nothing is converted silently: "5" is not a number and 1 is not true.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from fixloop.configuration.commands import split_command, with_placeholders
from fixloop.configuration.place import Place, nearest

NAME_CHARACTERS: Final = 80
TEXT_CHARACTERS: Final = 500
MOST_ITERATIONS: Final = 1000
# A month: longer than that nobody waits, and it still fits every clock that counts it.
MOST_MINUTES: Final = 43_200
# Fourteen hours, the largest there is.
MOST_OFFSET: Final = 840
AGENT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OUTPUTS: Final = ("go-test", "cargo-test", "clippy")
"""Readers for tools that print their report: what the command prints is kept in a file and read from there."""


class FailOn(StrEnum):
    """From which SARIF level a result fails."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Policy(StrEnum):
    """Which failures a gate applies to."""

    NEW = "new"
    """Those that the feature's base does not have."""
    ALL = "all"


@dataclass(frozen=True, eq=False)
class Kind:
    """What a key takes, as an annotation of its type. A stored value was read before and is not read again."""

    read: Callable[[Any, Place], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def _truth(value: Any, place: Place) -> bool:
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def _iterations(value: Any, place: Place) -> int:
    if not _is_whole(value) or not 1 <= value <= MOST_ITERATIONS:
        raise place.wrong(f"a whole number from 1 to {MOST_ITERATIONS}", value)
    return int(value)


def _minutes(value: Any, place: Place) -> float:
    # Infinity and nan are numbers in TOML and none here.
    if not _is_number(value) or not 0 < value <= MOST_MINUTES:
        raise place.wrong(f"a number of minutes above 0, at most {MOST_MINUTES}", value)
    return float(value)


def _minutes_or_off(value: Any, place: Place) -> float:
    if value is False:
        return 0.0
    if not _is_number(value) or not 0 <= value <= MOST_MINUTES:
        raise place.wrong(f"a number of minutes, at most {MOST_MINUTES}, or false for no limit", value)
    return float(value)


def _number_or_off(value: Any, place: Place) -> int:
    if value is False:
        return 0
    if not _is_whole(value) or not 0 <= value <= MOST_ITERATIONS:
        raise place.wrong(f"a whole number up to {MOST_ITERATIONS}, or false to switch it off", value)
    return int(value)


def agent_name(value: Any, place: Place) -> str:
    """A word that can stand in the name of a queue, where a dot would divide it."""
    if not isinstance(value, str) or not AGENT_NAME.fullmatch(value):
        raise place.wrong("a name of letters, digits, - and _", value)
    return value


def _agent_names(value: Any, place: Place) -> tuple[str, ...]:
    return tuple(dict.fromkeys(agent_name(name, place).lower() for name in _strings(value, place)))


def _utc_offset_minutes(value: Any, place: Place) -> int:
    if not _is_whole(value) or not -MOST_OFFSET <= value <= MOST_OFFSET:
        raise place.wrong(f"a whole number of minutes from -{MOST_OFFSET} to {MOST_OFFSET}", value)
    return int(value)


def _percent(value: Any, place: Place) -> float:
    if not _is_number(value) or not 0 <= value <= 100:
        raise place.wrong("a number from 0 to 100", value)
    return float(value)


def _line_of_text(value: Any, place: Place) -> str:
    # It is printed, and may not break a line or move a cursor.
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise place.wrong("one line of text", value)
    if len(value) > TEXT_CHARACTERS:
        raise place.error(f"is longer than {TEXT_CHARACTERS} characters")
    return value.strip()


def _check_name(value: Any, place: Place) -> str:
    name = _line_of_text(value, place)
    if len(name) > NAME_CHARACTERS:
        raise place.error(f"is longer than {NAME_CHARACTERS} characters")
    return name


def _output(value: Any, place: Place) -> str:
    if not isinstance(value, str) or value not in OUTPUTS:
        raise place.wrong(f"one of {', '.join(OUTPUTS)}", value)
    return value


def _fail_on(value: Any, place: Place) -> FailOn:
    levels = [level.value for level in FailOn]
    near = nearest(value, levels) if isinstance(value, str) else ""
    if value not in levels:
        advice = f" (did you mean {near!r}?)" if near else ""
        raise place.wrong(f"one of {', '.join(levels)}{advice}", value)
    return FailOn(value)


def _policy(value: Any, place: Place) -> Policy:
    if value not in list(Policy):
        raise place.wrong(f"one of {', '.join(Policy)}", value)
    return Policy(value)


def _revision(value: Any, place: Place) -> str:
    text = _line_of_text(value, place)
    if text.startswith("-") or " " in text:
        raise place.wrong("a branch, a tag, a commit or none", value)
    return text


def _environment_names(value: Any, place: Place) -> tuple[str, ...]:
    # Names only: a value in the file would put a secret into the history of the repository.
    for name in _strings(value, place):
        if not VARIABLE.fullmatch(name):
            raise place.wrong("a list of names of environment variables, without values", name)
    return tuple(dict.fromkeys(value))


def _globs(value: Any, place: Place) -> tuple[str, ...]:
    # One that leaves the project would copy strangers' files into the workspace.
    for pattern in _strings(value, place):
        path = PurePosixPath(pattern)
        if not pattern.strip() or "\0" in pattern or path.is_absolute() or ".." in path.parts:
            raise place.wrong("a list of patterns below the project, without '..'", pattern)
    return tuple(value)


def _check_command(value: Any, place: Place) -> tuple[str, ...]:
    return with_placeholders(split_command(value, place), place)


def _strings(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise place.wrong("a list of strings", value)
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _or_off(**number: Any) -> dict[str, Any]:
    return {"anyOf": [{"minimum": 0, **number}, {"const": False}]}


def _list_of(**entry: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", **entry}}


_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS}
_COMMAND: Final = {"anyOf": [{"type": "string", "minLength": 1}, {**_list_of(), "minItems": 1}]}

Truth = Annotated[bool, Kind(_truth, {"type": "boolean"})]
Iterations = Annotated[int, Kind(_iterations, {"type": "integer", "minimum": 1, "maximum": MOST_ITERATIONS})]
"""How often something is done before a person decides, the first time included."""
NumberOrOff = Annotated[int, Kind(_number_or_off, _or_off(type="integer", maximum=MOST_ITERATIONS))]
"""`false` or 0 switches the rule off."""
Minutes = Annotated[float, Kind(_minutes, {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_MINUTES})]
MinutesOrOff = Annotated[float, Kind(_minutes_or_off, _or_off(type="number", maximum=MOST_MINUTES))]
"""`false` or 0: no limit."""
UtcOffset = Annotated[
    int, Kind(_utc_offset_minutes, {"type": "integer", "minimum": -MOST_OFFSET, "maximum": MOST_OFFSET})
]
"""How far a zone's clocks are ahead of UTC, in minutes."""
Percent = Annotated[float, Kind(_percent, {"type": "number", "minimum": 0, "maximum": 100})]
Line = Annotated[str, Kind(_line_of_text, _TEXT)]
CheckName = Annotated[str, Kind(_check_name, {**_TEXT, "maxLength": NAME_CHARACTERS})]
AgentName = Annotated[str, Kind(agent_name, {"type": "string", "pattern": f"^{AGENT_NAME.pattern}$"})]
AgentNames = Annotated[tuple[str, ...], Kind(_agent_names, _list_of(pattern=f"^{AGENT_NAME.pattern}$"))]
"""Agents of a profile, in small letters."""
Output = Annotated[str, Kind(_output, {"enum": list(OUTPUTS)})]
Level = Annotated[FailOn, Kind(_fail_on, {"enum": list(FailOn)})]
Counted = Annotated[Policy, Kind(_policy, {"enum": list(Policy)})]
Revision = Annotated[str, Kind(_revision, _TEXT)]
Variables = Annotated[tuple[str, ...], Kind(_environment_names, _list_of(pattern=f"^{VARIABLE.pattern}$"))]
Globs = Annotated[tuple[str, ...], Kind(_globs, _list_of(minLength=1))]
Command = Annotated[tuple[str, ...], Kind(split_command, _COMMAND)]
CheckCommand = Annotated[tuple[str, ...], Kind(_check_command, _COMMAND)]
