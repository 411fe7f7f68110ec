"""The views of all profiles; one is loaded with the first workflow of its profile that somebody looks at."""

from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from fixloop.commands.views.view import Across, View
from fixloop.errors import NewerVersion
from fixloop.profiles.reading import profile_of
from fixloop.store.contract import Store

_PROFILES: Final = ("validation", "cycle", "handoff")
_COUNTED: Final = ("handoff",)
"""The profiles that count something over all their workflows: for others no view has to be loaded."""


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


def across_all(profiles: Collection[str], store: Store, prefix: str) -> Mapping[str, Across]:
    """By profile, what is counted over all its workflows whose ids begin with `prefix`."""
    found = {name: _view(name).across(store, prefix) for name in _COUNTED if name in profiles}
    return {name: across for name, across in found.items() if across is not None}


@cache
def _view(name: str) -> View[Any]:
    found: View[Any] = import_module(f"fixloop.commands.views.{name}").VIEW
    return found
