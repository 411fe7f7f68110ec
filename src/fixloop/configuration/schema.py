"""Every key that a configuration file may hold, in one table.

The table drives both: reading the values and naming the key that a misspelt one was meant to be.
Decides nothing about presets and gates; what a key means together with others is in `loading`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, cast

from fixloop.configuration import values
from fixloop.configuration.commands import split_command, with_placeholders
from fixloop.configuration.document import Document
from fixloop.configuration.model import FailOn, Policy
from fixloop.configuration.place import Place, nearest, shown
from fixloop.protocol.specialists import NAMES

Reader = Callable[[Any, Place], Any]


class WrittenCheck(TypedDict, total=False):
    """Keys of a check; those that are missing were not written."""

    name: str
    command: tuple[str, ...]
    output: str
    optional: bool
    fail_on: FailOn
    coverage_percent: float
    baseline: Policy
    env: tuple[str, ...]


class WrittenSpecialist(WrittenCheck, total=False):
    """Keys of `[specialist.X]`; those of a check hold for all its checks."""

    timeout_minutes: float
    check: list[WrittenCheck]


class WrittenFixer(TypedDict, total=False):
    command: tuple[str, ...]
    agent: str
    timeout_minutes: float
    env: tuple[str, ...]


class WrittenAgent(TypedDict, total=False):
    acks: bool


class WrittenWorkspace(TypedDict, total=False):
    setup: tuple[str, ...]
    copy: tuple[str, ...]


class WrittenLimits(TypedDict, total=False):
    validation_minutes: float
    revalidation_minutes: float
    fix_minutes: float
    iteration_minutes: float
    reminder_minutes: float
    reminder_window_minutes: float
    deadlock_window: int
    specialist_attempts: int
    fix_attempts: int
    delivery_attempts: int
    receipt_minutes: float
    answer_attempts: int
    confirm_rounds: int
    extend_iterations: int
    extend_minutes: float


class WrittenRole(TypedDict, total=False):
    """Keys of an agent of a cycle or of handoffs."""

    command: tuple[str, ...]
    outside: bool
    timeout_minutes: float
    env: tuple[str, ...]
    depends_on: tuple[str, ...]


class WrittenProfile(TypedDict, total=False):
    """Keys of `[cycle]` and `[handoff]`."""

    max_iterations: int
    timeout_minutes: float
    attempts: int
    converge_minutes: float
    answer_attempts: int
    pass_rate_percent: float
    coverage_percent: float
    utc_offset_minutes: int
    agent: dict[str, WrittenRole]


class Written(TypedDict, total=False):
    """The whole file."""

    project: str
    max_iterations: int
    base: str
    notify: tuple[str, ...]
    bundle_fix_request: bool
    frontend: bool
    strict: bool
    workspace: WrittenWorkspace
    fixer: WrittenFixer
    agent: dict[str, WrittenAgent]
    limits: WrittenLimits
    specialist: dict[str, WrittenSpecialist]
    cycle: WrittenProfile
    handoff: WrittenProfile


def written_in(document: Document) -> Written:
    """
    What `document` says, typed.

    Raises:
        UsageError: an unknown key (with the nearest known one), a wrong type or a wrong value.
    """
    return cast(Written, _section(TOP, document.table, document.place))


def _check_command(value: Any, place: Place) -> tuple[str, ...]:
    return with_placeholders(split_command(value, place), place)


def _section(keys: Mapping[str, Reader], value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong("a table", value)
    for key in value:
        if key not in keys:
            raise _unknown(key, keys, place)
    # In the order of the table, so that the first complaint does not depend on the order in the file.
    return {key: reader(value[key], place.at(key)) for key, reader in keys.items() if key in value}


def _table(keys: Mapping[str, Reader]) -> Reader:
    return lambda value, place: _section(keys, value, place.inside(place.key))


def _checks(value: Any, place: Place) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise place.error(f"must be written as [[{place.inside('check').heading.strip('[]')}]]")
    return [_section(CHECK, entry, place.inside("check", item)) for item, entry in enumerate(value, 1)]


def _specialists(value: Any, place: Place) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        raise place.wrong("a table", value)
    inside = place.inside(place.key)
    for name in value:
        if name not in NAMES:
            raise _unknown_specialist(name, inside)
    return {name: _section(SPECIALIST, value[name], inside.inside(name)) for name in NAMES if name in value}


def _agents(keys: Mapping[str, Reader]) -> Reader:
    def read(value: Any, place: Place) -> dict[str, dict[str, Any]]:
        if not isinstance(value, dict):
            raise place.wrong("a table", value)
        inside = place.inside(place.key)
        for name, entry in value.items():
            if not isinstance(entry, dict) and name in keys:
                heading = inside.inside("NAME")._replace(prefix="").heading
                raise inside.at(name).error(f"belongs to an agent; write it in {heading}")
            values.agent_name(name, place)
        return {name: _section(keys, entry, inside.inside(name)) for name, entry in value.items()}

    return read


def _unknown(key: str, keys: Mapping[str, Reader], place: Place) -> Exception:
    near = nearest(key, keys)
    elsewhere = [name for name, table in SECTIONS.items() if key in table and table is not keys]
    if key in NAMES:
        advice = f"did you mean [specialist.{key}]?"
    elif elsewhere:
        advice = f"it belongs {' or '.join(elsewhere)}"
    elif near:
        advice = f"did you mean {near!r}?"
    else:
        advice = f"known are {', '.join(keys)}"
    where = f"in {place.heading}" if place.heading else "at the top"
    return place._replace(prefix="", section="", item=0).error(f"unknown key {shown(key)} {where}; {advice}")


def _unknown_specialist(name: str, place: Place) -> Exception:
    near = nearest(name.removesuffix("-specialist"), NAMES)
    advice = f"did you mean {near!r}?" if near else f"the six are {', '.join(NAMES)}"
    bare = place._replace(prefix="", section="")
    return bare.error(f"unknown specialist {shown(name)} in [{place.heading.strip('[]')}]; {advice}")


COMMON: Final[Mapping[str, Reader]] = {
    "command": _check_command,
    "output": values.output_reader,
    "optional": values.truth,
    "fail_on": values.fail_on,
    "coverage_percent": values.percent,
    "baseline": values.policy,
    "env": values.environment_names,
}
CHECK: Final[Mapping[str, Reader]] = {"name": values.check_name, **COMMON}
SPECIALIST: Final[Mapping[str, Reader]] = {
    **COMMON,
    "timeout_minutes": values.minutes_or_off,
    "check": _checks,
}
WORKSPACE: Final[Mapping[str, Reader]] = {"setup": split_command, "copy": values.globs}
FIXER: Final[Mapping[str, Reader]] = {
    "command": split_command,
    "agent": values.agent_name,
    "timeout_minutes": values.minutes_or_off,
    "env": values.environment_names,
}
LIMITS: Final[Mapping[str, Reader]] = {
    "validation_minutes": values.minutes_or_off,
    "revalidation_minutes": values.minutes_or_off,
    "fix_minutes": values.minutes_or_off,
    "iteration_minutes": values.minutes_or_off,
    "reminder_minutes": values.minutes_or_off,
    "reminder_window_minutes": values.minutes_or_off,
    "deadlock_window": values.number_or_off,
    "specialist_attempts": values.iterations,
    "fix_attempts": values.iterations,
    "delivery_attempts": values.iterations,
    "receipt_minutes": values.minutes_or_off,
    "answer_attempts": values.iterations,
    "confirm_rounds": values.iterations,
    "extend_iterations": values.iterations,
    "extend_minutes": values.minutes,
}
AGENT: Final[Mapping[str, Reader]] = {"acks": values.truth}
ROLE: Final[Mapping[str, Reader]] = {
    "command": split_command,
    "outside": values.truth,
    "timeout_minutes": values.minutes_or_off,
    "env": values.environment_names,
    "depends_on": values.agent_names,
}
HANDOFF: Final[Mapping[str, Reader]] = {
    "max_iterations": values.iterations,
    "timeout_minutes": values.minutes,
    "attempts": values.iterations,
    "agent": _agents(ROLE),
}
CYCLE: Final[Mapping[str, Reader]] = {
    **HANDOFF,
    "timeout_minutes": values.minutes_or_off,
    "converge_minutes": values.minutes,
    "answer_attempts": values.iterations,
    "pass_rate_percent": values.percent,
    "coverage_percent": values.percent,
    "utc_offset_minutes": values.utc_offset_minutes,
}
TOP: Final[Mapping[str, Reader]] = {
    "project": values.line_of_text,
    "max_iterations": values.iterations,
    "base": values.revision,
    "notify": split_command,
    "bundle_fix_request": values.truth,
    "frontend": values.truth,
    "strict": values.truth,
    "workspace": _table(WORKSPACE),
    "fixer": _table(FIXER),
    "limits": _table(LIMITS),
    "agent": _agents(AGENT),
    "specialist": _specialists,
    "cycle": _table(CYCLE),
    "handoff": _table(HANDOFF),
}
SECTIONS: Final[Mapping[str, Mapping[str, Reader]]] = {
    "at the top": TOP,
    "in [workspace]": WORKSPACE,
    "in [fixer]": FIXER,
    "in [agent.NAME]": AGENT,
    "in [limits]": LIMITS,
    "in [specialist.NAME]": SPECIALIST,
    "in [[specialist.NAME.check]]": CHECK,
    "in [cycle]": CYCLE,
    "in [cycle.agent.NAME]": ROLE,
    "in [handoff]": HANDOFF,
    "in [handoff.agent.NAME]": ROLE,
}
