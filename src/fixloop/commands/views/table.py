"""The views of all profiles; one is loaded with the first workflow of its profile that somebody looks at."""

from functools import cache
from importlib import import_module
from typing import Any, Final

from fixloop.commands.views.view import View
from fixloop.errors import NewerVersion
from fixloop.profiles.reading import profile_of

__all__ = ["view_in"]

_PROFILES: Final = ("validation", "cycle", "handoff")


def view_in(snapshot: bytes) -> View[Any]:
    """
    What commands show of the workflow that this is a snapshot of.

    Raises:
        NewerVersion: this version has no such profile.
    """
    name = profile_of(snapshot)
    if name not in _PROFILES:
        raise NewerVersion(f"a workflow is of profile {name!r}, which this version does not have; upgrade it")
    return _view(name)


@cache
def _view(name: str) -> View[Any]:
    found: View[Any] = import_module(f"fixloop.commands.views.{name}").VIEW
    return found
