"""YAML in which every scalar is a string (K18): `seq: 010` is the text `010`, which other readers take as eight or ten.

Refuses what readers could interpret differently: duplicate keys, anchors and aliases, more than one document.
"""

import json
import re
import warnings
from typing import Any, Final, NamedTuple, TypeAlias

_MAX_DEPTH: Final = 20
_MAX_CHARACTERS: Final = 64 * 1024
_DEEP: Final = re.compile(rf"(?:[\[{{]\s*){{{_MAX_DEPTH + 1}}}")
_NOT_USED: Final = "anchors, aliases and deep nesting are not used here"

# Letters or digits first, so that no sign has a meaning in YAML; no colon before a space, and no # at all.
_WORD: Final = r"[A-Za-z0-9][\w./+-]*(?::[\w./+-]+)*"
_SCALAR: Final = rf'({_WORD}(?: {_WORD})*)|"([ !#-\[\]-~]*)"'
_SIMPLE: Final = re.compile(rf"([a-z_]+):(?: (?:{_SCALAR}))?|  - (?:{_SCALAR})", re.ASCII)
_VALUES: Final = (2, 3, 4, 5)
_ITEM_INDENT: Final = 4


class YamlError(Exception):
    """The text is no mapping that all readers interpret alike; lines count from 1."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.line = line


class Entry(NamedTuple):
    """A value and its place."""

    value: Any
    """A string, a list of entries, or a dictionary of entries."""
    line: int
    """From 1; the key's line for a value in a mapping."""
    start: int
    """The start of the value, in characters of the text."""
    end: int


Mapping: TypeAlias = dict[str, Entry]


def load(text: str) -> Mapping:
    """Parse a mapping; YamlError if the text is none, or readers could interpret it differently."""
    simple = _simple(text)
    if simple is not None:
        return simple
    if len(text) > _MAX_CHARACTERS:
        raise YamlError(f"it is longer than {_MAX_CHARACTERS // 1024} KiB", 1)
    if _DEEP.search(text):
        # The reader would notice this, too, but seconds later.
        raise YamlError(_NOT_USED, 1)
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        with warnings.catch_warnings():
            # The reader only warns of a duplicate anchor; here every anchor is refused.
            warnings.simplefilter("ignore")
            root: Any = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "it is not YAML"
        raise YamlError(f"it is not YAML: {problem}", mark.line + 1 if mark else 1) from None
    except YAMLError as error:
        # The reader's error about a character that YAML does not allow.
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise YamlError("it holds a character that YAML does not allow", line) from None
    except (RecursionError, ValueError, NotImplementedError, AssertionError):
        raise YamlError("it is not YAML that can be read", 1) from None
    if root is None:
        return {}
    converted = _converted(root, set(), 0)
    if not isinstance(converted, dict):
        raise YamlError("it is no mapping of keys to values", _line(root))
    return converted


def plain(value: Any) -> Any:
    """The value without its places: strings, lists and dictionaries."""
    if isinstance(value, dict):
        return {key: plain(entry.value) for key, entry in value.items()}
    return [plain(entry.value) for entry in value] if isinstance(value, list) else value


def _simple(text: str) -> Mapping | None:
    """The mapping, if every line is an unambiguous key and value, or an item of a list, as fixloop writes them. This
    takes a twentieth of the time: a chat has up to 999 messages."""
    found: Mapping = {}
    items: list[Entry] | None = None
    start = 0
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        hit = _SIMPLE.fullmatch(line)
        if hit is None or (hit[1] is None and items is None) or hit[1] in found:
            return None
        value = next((hit[at] for at in _VALUES if hit[at] is not None), None)
        if hit[1] is None and items is not None and value is not None:
            items.append(Entry(value, number, start + _ITEM_INDENT, start + len(line)))
        elif hit[1] is not None and value is not None:
            items = None
            found[hit[1]] = Entry(value, number, start + len(hit[1]) + 2, start + len(line))
        else:
            items = []
            found[hit[1]] = Entry(items, number, start + len(line), start + len(line))
        start += len(line) + 1
    # A key without a value and without items is left to the full reader.
    return None if any(entry.value == [] for entry in found.values()) else found


def _converted(node: Any, seen: set[int], depth: int) -> Any:
    if node.anchor is not None or id(node) in seen or depth > _MAX_DEPTH:
        raise YamlError(_NOT_USED, _line(node))
    seen.add(id(node))
    if node.id == "scalar":
        return node.value
    if node.id == "sequence":
        return [_entry(child, child, seen, depth) for child in node.value]
    found: Mapping = {}
    for key, value in node.value:
        name = key.value
        if not isinstance(name, str):
            raise YamlError("a key has to be a word", _line(key))
        if name in found:
            raise YamlError(f"the key {name!r} stands here twice", _line(key))
        found[name] = _entry(key, value, seen, depth)
    return found


def _entry(at: Any, node: Any, seen: set[int], depth: int) -> Entry:
    return Entry(_converted(node, seen, depth + 1), _line(at), node.start_mark.index, node.end_mark.index)


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def quoted(text: str) -> str:
    """One line of `text` as a scalar that every reader takes as a string."""
    # A JSON string is a YAML string if no character outside the basic plane is written as a pair of escapes.
    return json.dumps(text, ensure_ascii=False)
