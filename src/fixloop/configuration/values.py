"""One reader for each kind of value in a configuration file.

A reader takes what TOML gave and returns the typed value, or raises one sentence that names the key, what it
takes and what stood there. Nothing is converted silently: "5" is not a number and 1 is not true.
"""

import re
from pathlib import PurePosixPath
from typing import Any

from fixloop.configuration.model import OUTPUTS, FailOn, Policy
from fixloop.configuration.place import Place, nearest

NAME_CHARACTERS = 80
TEXT_CHARACTERS = 500
MOST_ITERATIONS = 1000
# A month: longer than that nobody waits, and it still fits every clock that counts it.
MOST_MINUTES = 43_200
# Fourteen hours, the largest there is.
MOST_OFFSET = 840
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


def truth(value: Any, place: Place) -> bool:
    """`true` or `false`, and nothing that only looks like it."""
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def iterations(value: Any, place: Place) -> int:
    """How often something is done before a person decides, the first time included."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ITERATIONS:
        raise place.wrong(f"a whole number from 1 to {MOST_ITERATIONS}", value)
    return value


def minutes(value: Any, place: Place) -> float:
    """A duration; infinity and nan are numbers in TOML and none here."""
    if not _is_number(value) or not 0 < value <= MOST_MINUTES:
        raise place.wrong(f"a number of minutes above 0, at most {MOST_MINUTES}", value)
    return float(value)


def minutes_or_off(value: Any, place: Place) -> float:
    """A duration that can be switched off: `false` or 0."""
    if value is False:
        return 0.0
    if not _is_number(value) or not 0 <= value <= MOST_MINUTES:
        raise place.wrong(f"a number of minutes, at most {MOST_MINUTES}, or false for no limit", value)
    return float(value)


def number_or_off(value: Any, place: Place) -> int:
    """A number of runs or rounds; `false` or 0 switches the rule off."""
    if value is False:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_ITERATIONS:
        raise place.wrong(f"a whole number up to {MOST_ITERATIONS}, or false to switch it off", value)
    return value


def agent_name(value: Any, place: Place) -> str:
    """A word that can stand in the name of a queue, where a dot would divide it."""
    if not isinstance(value, str) or not AGENT_NAME.fullmatch(value):
        raise place.wrong("a name of letters, digits, - and _", value)
    return value


def agent_names(value: Any, place: Place) -> tuple[str, ...]:
    """Agents of a profile, in small letters."""
    return tuple(dict.fromkeys(agent_name(name, place).lower() for name in _strings(value, place)))


def utc_offset_minutes(value: Any, place: Place) -> int:
    """How far a zone's clocks are ahead of UTC."""
    if isinstance(value, bool) or not isinstance(value, int) or not -MOST_OFFSET <= value <= MOST_OFFSET:
        raise place.wrong(f"a whole number of minutes from -{MOST_OFFSET} to {MOST_OFFSET}", value)
    return value


def percent(value: Any, place: Place) -> float:
    """A gate, 0 to 100."""
    if not _is_number(value) or not 0 <= value <= 100:
        raise place.wrong("a number from 0 to 100", value)
    return float(value)


def line_of_text(value: Any, place: Place) -> str:
    """A name that is printed; it may not break a line or move a cursor."""
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


def output_reader(value: Any, place: Place) -> str:
    """How what a command prints is read."""
    if not isinstance(value, str) or value not in OUTPUTS:
        raise place.wrong(f"one of {', '.join(OUTPUTS)}", value)
    return value


def fail_on(value: Any, place: Place) -> FailOn:
    """From which SARIF level a result fails."""
    levels = [level.value for level in FailOn]
    if not isinstance(value, str):
        raise place.wrong("one of " + ", ".join(levels), value)
    if value not in levels:
        near = nearest(value, levels)
        raise place.wrong(
            "one of " + ", ".join(levels) + (f" (did you mean {near!r}?)" if near else ""), value
        )
    return FailOn(value)


def policy(value: Any, place: Place) -> Policy:
    """Which failures count."""
    names = [policy.value for policy in Policy]
    if value not in names:
        raise place.wrong("one of " + ", ".join(names), value)
    return Policy(value)


def revision(value: Any, place: Place) -> str:
    """A branch, a tag or a commit, or `none`."""
    text = line_of_text(value, place)
    if text.startswith("-") or " " in text:
        raise place.wrong("a branch, a tag, a commit or none", value)
    return text


def environment_names(value: Any, place: Place) -> tuple[str, ...]:
    """Names only: a value in the file would put a secret into the history of the repository."""
    for name in _strings(value, place):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise place.wrong("a list of names of environment variables, without values", name)
    return tuple(dict.fromkeys(value))


def globs(value: Any, place: Place) -> tuple[str, ...]:
    """Patterns below the project; one that leaves it would copy strangers' files into the workspace."""
    for pattern in _strings(value, place):
        path = PurePosixPath(pattern)
        if not pattern.strip() or "\0" in pattern or path.is_absolute() or ".." in path.parts:
            raise place.wrong("a list of patterns below the project, without '..'", pattern)
    return tuple(value)


def _strings(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise place.wrong("a list of strings", value)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
