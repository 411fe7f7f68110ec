"""Builds the Lua scripts that are sent to Redis: limits, the shared prelude, then the script's own file."""

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

from fixloop.store import limits

_LIMITS: Final = (
    *("AWAY_AFTER", "SEND_AGAIN", "DAMAGED_AGAIN", "OVERTAKEN_BY", "UNHEARD_AFTER"),
    *("FIRST", "DONE_KEPT", "CHANGES_KEPT"),
)
"""Those of the limits that scripts use."""
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
    given = "".join(f"local {name} = {getattr(limits, name)}\n" for name in _LIMITS)
    return given + _text("prelude") + own


@cache
def digest(name: str) -> str:
    """The SHA-1 by which Redis knows the script `name`."""
    return sha1(source(name).encode(), usedforsecurity=False).hexdigest()


def _text(name: str) -> str:
    return files("fixloop.store").joinpath(f"{name}.lua").read_text("utf-8")
