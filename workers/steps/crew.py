"""Who does the work of a step: commands in workspaces, or what `FIXLOOP_CREW=module:factory` names.

Another crew has the methods of `Commands`, such as the scripted one of `fixloop.testing`.
"""

import importlib
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workers.commands.crew import Commands

_GRACE_SECONDS: Final = 60.0
_NO_LIMIT_SECONDS: Final = 24 * 3600.0


class PutOff(Exception):
    """The work is done elsewhere: nobody holds the ticket until that has come to something (bridging)."""


def with_grace(limit_seconds: float | None) -> float:
    """The state ends late work by withdrawing its ticket: how long a command may run where it cannot be reached."""
    return (_NO_LIMIT_SECONDS if limit_seconds is None else limit_seconds) + _GRACE_SECONDS


def crew_factory() -> "Callable[[], Commands]":
    """What makes a crew; where `FIXLOOP_CREW` names nothing that can be loaded, the error of loading it."""
    name = os.environ.get("FIXLOOP_CREW", "workers.commands.crew:commands")
    module, _, factory = name.partition(":")
    made: Callable[[], Commands] = getattr(importlib.import_module(module), factory)
    return made


@lru_cache(maxsize=1)
def crew() -> "Commands":
    """The crew of this process."""
    return crew_factory()()
