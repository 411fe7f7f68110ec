"""Describes a manual change to a named file in one sentence: file, field and value (C5, K23)."""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final

_MOST: Final = 80
"""The characters shown of a value."""
_NOTHING: Final = object()


def difference(path: str, found: bytes | None, written: bytes | None) -> str:
    """The first difference between a file's content and what fixloop wrote there; None: there is no file, none was."""
    if found is None:
        return f"{path} was removed by hand"
    if written is None:
        status = None
        with suppress(ValueError):
            document = json.loads(found)
            status = document.get("status") if isinstance(document, dict) else None
        return f"{path} was made by hand" + (f": status is {_shown(status)}" if status is not None else "")
    try:
        field, value, ours = next(_fields("", json.loads(found), json.loads(written)))
    except ValueError:
        lines, ours = (content.decode("utf-8", "replace").splitlines() for content in (found, written))
        told = "its line ends are others"
        for number, (value, before) in enumerate(zip_longest(lines, ours, fillvalue=_NOTHING), 1):
            if value != before:
                told = f"line {number} is {_shown(value)}, and was written as {_shown(before)}"
                break
        return f"{path} was edited by hand: {told}"
    except StopIteration:
        return f"{path} was edited by hand: it is laid out in another way"
    return f"{path} was edited by hand: {field} is {_shown(value)}, and was written as {_shown(ours)}"


def _fields(name: str, found: Any, written: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every field that differs: its name, the value found, the value written."""
    if isinstance(found, dict) and isinstance(written, dict):
        for key in dict.fromkeys((*written, *found)):
            inner = f"{name}.{key}".lstrip(".")
            yield from _fields(inner, found.get(key, _NOTHING), written.get(key, _NOTHING))
    elif isinstance(found, list) and isinstance(written, list) and len(found) == len(written):
        for number, (value, ours) in enumerate(zip(found, written, strict=True)):
            yield from _fields(f"{name}[{number}]", value, ours)
    elif found != written or type(found) is not type(written):
        yield name or "the document", found, written


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
