"""Reads fixloop.toml, or [tool.fixloop] of pyproject.toml, as it lies in a checkout, into `settings`.

Refuses both at once, what is not a regular file inside the checkout, invalid TOML, and what is not in `settings`. Never
falls back to what is detected because a file could not be read: that would silently change the gates.
"""

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from fixloop.configuration.place import Place, advice, shown, shown_path
from fixloop.configuration.settings import (
    FileSettings,
    Key,
    Section,
    SpecialistSettings,
    keys_of,
    sections_in,
)
from fixloop.configuration.values import agent_name
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES

FILE_NAME: Final = "fixloop.toml"
PYPROJECT: Final = "pyproject.toml"
TABLE: Final = "tool.fixloop"
# A thousand times what anybody writes by hand; a link to an endless device stops here.
LIMIT_BYTES: Final = 4_000_000


class Document(NamedTuple):
    """What the user wrote, and the project's own pyproject.toml."""

    place: Place
    table: dict[str, Any]
    is_written: bool
    """False where neither file configures fixloop."""
    pyproject: dict[str, Any]

    @property
    def project(self) -> str:
        """The project's identity as it is written; empty where it is not, or is no text."""
        project = self.table.get("project", "")
        return project if isinstance(project, str) else ""


def read_document(directory: Path) -> Document:
    """Read the configuration that lies at the top of `directory`."""
    if not directory.is_dir():
        raise UsageError(
            f"{shown_path(directory)} is not a folder; name the folder of the project to validate"
        )
    pyproject = _read_toml(directory, PYPROJECT) or {}
    own = _read_toml(directory, FILE_NAME)
    tools = pyproject.get("tool")
    inside = tools.get("fixloop") if isinstance(tools, dict) else None
    if inside is not None and not isinstance(inside, dict):
        raise Place(PYPROJECT).at(TABLE).wrong("a table", inside)
    if own is not None and inside is not None:
        raise UsageError(f"both {FILE_NAME} and [{TABLE}] of {PYPROJECT} configure fixloop; keep one of them")
    if inside is not None:
        return Document(Place(PYPROJECT, TABLE), inside, True, pyproject)
    return Document(Place(FILE_NAME), own or {}, own is not None, pyproject)


def _read_toml(directory: Path, name: str) -> dict[str, Any] | None:
    path = directory / name
    if not os.path.lexists(path):
        return None
    if not path.is_file() or not path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"{name} is not a file inside the project; replace it by a regular file")
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    if len(content) > LIMIT_BYTES:
        raise UsageError(f"{name} is larger than {LIMIT_BYTES} bytes; that cannot be a configuration")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is not UTF-8 text (at line {line})") from None
    except RecursionError:
        raise UsageError(f"{name} is not valid TOML: it is nested too deep") from None
    except ValueError as error:  # TOMLDecodeError, and Python's own limit on the digits of a number
        raise UsageError(f"{name} is not valid TOML: {' '.join(str(error).split())}") from None


S = TypeVar("S", bound=Section)


def settings_in(document: Document) -> FileSettings:
    """What `document` says, typed; refuses an unknown key (with the nearest known one), a wrong type or value."""
    return _section(FileSettings, document.table, document.place)


def _section(section: type[S], value: Any, place: Place) -> S:
    keys = keys_of(section)
    for name in _table(value, place):
        if name in keys:
            continue
        others = [heading for heading, other in sections_in() if name in keys_of(other)]
        if name in NAMES:
            told = f"did you mean [specialist.{name}]?"
        elif others:
            elsewhere = (f"in {heading}" if heading else "at the top" for heading in others)
            told = f"it belongs {' or '.join(elsewhere)}"
        else:
            told = advice(name, keys, f"known are {', '.join(keys)}")
        where = f"in {place.heading}" if place.heading else "at the top"
        bare = place._replace(prefix="", section="", item=0)
        raise bare.error(f"unknown key {shown(name)} {where}; {told}")
    # In the order of the keys, so that the first complaint does not depend on the order in the file.
    found = {name: _value(key, value[name], place.at(name)) for name, key in keys.items() if name in value}
    return section.model_validate(found)


def _value(key: Key, value: Any, place: Place) -> Any:
    inside = place.inside(place.key)
    if key.kind is not None:
        return key.kind.read(value, place)
    assert key.section is not None
    if not key.is_many:
        return _section(key.section, value, inside)
    if key.name == "check":
        if not isinstance(value, list) or not value:
            raise place.error(f"must be written as [[{inside.heading.strip('[]')}]]")
        return tuple(
            _section(key.section, entry, place.inside("check", item)) for item, entry in enumerate(value, 1)
        )
    names: Iterable[str] = _table(value, place)
    if key.section is SpecialistSettings:
        for name in value:
            if name not in NAMES:
                told = advice(name.removesuffix("-specialist"), NAMES, f"the six are {', '.join(NAMES)}")
                where = f"[{inside.heading.strip('[]')}]"
                bare = inside._replace(prefix="", section="")
                raise bare.error(f"unknown specialist {shown(name)} in {where}; {told}")
        names = [name for name in NAMES if name in value]
    else:
        for name, entry in value.items():
            if not isinstance(entry, dict) and name in keys_of(key.section):
                heading = inside.inside("NAME")._replace(prefix="").heading
                raise inside.at(name).error(f"belongs to an agent; write it in {heading}")
            agent_name(name, place)
    return {name: _section(key.section, value[name], inside.inside(name)) for name in names}


def _table(value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong("a table", value)
    return value
