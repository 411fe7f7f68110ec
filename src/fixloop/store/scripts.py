"""Builds the Lua scripts that are sent to Redis: limits, the shared prelude, then the script's own file."""

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

from fixloop.store.limits import SCRIPT_LIMITS

_ALONE: Final = ("number", "acquire", "keep")
_FENCING: Final = ("claim", "commit", "acquire")
_TAKING: Final = ("claim", "commit")


@cache
def source(name: str) -> str:
    """The complete text of the script `name`."""
    before = [part for part, users in (("fence", _FENCING), ("take", _TAKING)) if name in users]
    own = "".join(map(_text, (*before, name)))
    if name in _ALONE:
        return own
    limits = "".join(f"local {limit} = {value}\n" for limit, value in SCRIPT_LIMITS.items())
    return limits + _text("prelude") + own


@cache
def digest(name: str) -> str:
    """The SHA-1 by which Redis knows the script `name`."""
    return sha1(source(name).encode(), usedforsecurity=False).hexdigest()


def _text(name: str) -> str:
    return files("fixloop.store").joinpath(f"{name}.lua").read_text("utf-8")
