"""The judging part of files that hold both tool settings and project metadata, such as `[tool]` and `scripts`."""

import configparser
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from fixloop.integrity.paths import shipped


def has_parts(path: str) -> bool:
    """Whether a file with this name holds both."""
    return path.rpartition("/")[2] in shipped()["parts"]


def judging_part(path: str, text: str) -> dict[str, object] | None:
    """The file's judging settings, by dotted name; None if it cannot be parsed."""
    name = path.rpartition("/")[2]
    rules = shipped()["parts"][name]
    try:
        flat = dict(_flat("", _document(name, text)))
    except (ValueError, configparser.Error, RecursionError):
        return None
    judges, free = rules.get("judges", ()), rules.get("free", ())
    conditions = {*rules.get("conditions", ())}
    return {
        key: value
        for key, value in flat.items()
        if (not judges or _is_below(key, judges))
        and not (_is_below(key, free) and conditions.isdisjoint(key.split(".")))
    }


def _document(name: str, text: str) -> object:
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith(".toml"):
        return tomllib.loads(text)
    if name.endswith(".mod"):
        return _directives(text)
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser}


def _directives(text: str) -> dict[str, dict[str, bool]]:
    """The directives of a go.mod with their arguments, on one line or in a block."""
    found: dict[str, dict[str, bool]] = {}
    block = ""
    for line in text.splitlines():
        words = line.partition("//")[0].split()
        if words[1:] == ["("]:
            block = words[0]
        elif words == [")"]:
            block = ""
        elif words:
            directive, *rest = [block, *words] if block else words
            found.setdefault(directive, {})[" ".join(rest)] = True
    return found


def _flat(name: str, value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and (value or not name):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    else:
        yield name, value


def _is_below(key: str, names: list[str]) -> bool:
    return any(re.match(re.escape(name) + r"(\W|$)", key) for name in names)
