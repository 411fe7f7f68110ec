"""What a document says, as `settings`; refuses what these do not know, with the file, the line and the nearest key."""

from collections.abc import Iterable
from typing import Any, TypeVar

from fixloop.configuration import settings
from fixloop.configuration.document import Document
from fixloop.configuration.place import Place, advice, shown
from fixloop.configuration.values import agent_name
from fixloop.protocol.specialists import NAMES

S = TypeVar("S", bound=settings.Section)


def settings_in(document: Document) -> settings.FileSettings:
    """What `document` says, typed; refuses an unknown key (with the nearest known one), a wrong type or value."""
    return _section(settings.FileSettings, document.table, document.place)


def _section(section: type[S], value: Any, place: Place) -> S:
    keys = settings.keys_of(section)
    for name in _table(value, place):
        if name in keys:
            continue
        others = [heading for heading, other in settings.sections_in() if name in settings.keys_of(other)]
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


def _value(key: settings.Key, value: Any, place: Place) -> Any:
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
    if key.section is settings.SpecialistSettings:
        for name in value:
            if name not in NAMES:
                told = advice(name.removesuffix("-specialist"), NAMES, f"the six are {', '.join(NAMES)}")
                where = f"[{inside.heading.strip('[]')}]"
                bare = inside._replace(prefix="", section="")
                raise bare.error(f"unknown specialist {shown(name)} in {where}; {told}")
        names = [name for name in NAMES if name in value]
    else:
        for name, entry in value.items():
            if not isinstance(entry, dict) and name in settings.keys_of(key.section):
                heading = inside.inside("NAME")._replace(prefix="").heading
                raise inside.at(name).error(f"belongs to an agent; write it in {heading}")
            agent_name(name, place)
    return {name: _section(key.section, value[name], inside.inside(name)) for name in names}


def _table(value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong("a table", value)
    return value
