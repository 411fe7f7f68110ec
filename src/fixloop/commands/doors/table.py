"""The doors of all profiles; one is loaded with the first workflow of its profile that somebody brings something to."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from fixloop.commands.doors.door import Door
from fixloop.commands.session import Session
from fixloop.errors import NewerVersion, UsageError
from fixloop.profiles.reading import profile_of

if TYPE_CHECKING:
    from fixloop.commands.doors.outside import Outside

_PROFILES: Final = ("validation", "cycle", "handoff")


def door_of(session: Session, workflow: str) -> Door:
    """
    How a workflow takes in what commands bring.

    Raises:
        UsageError: there is no such workflow.
        NewerVersion: this version has no such profile.
    """
    found = session.store.read(workflow)
    if found is None:
        raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
    name = profile_of(found.snapshot)
    if name not in _PROFILES:
        raise NewerVersion(f"a workflow is of profile {name!r}, which this version does not have; upgrade it")
    return _door(name)


def outside_in(snapshot: bytes) -> "Outside":
    """
    The side of outside agents of the workflow that this is a snapshot of.

    Raises:
        NewerVersion: this version has no such profile, or it has no such agents.
    """
    name = profile_of(snapshot)
    if name not in ("cycle", "handoff"):
        raise NewerVersion(f"a workflow is of profile {name!r}, whose agents this version does not know")
    outside: Outside = import_module(f"fixloop.commands.doors.{name}").OUTSIDE
    return outside


@cache
def _door(name: str) -> Door:
    door: Door = import_module(f"fixloop.commands.doors.{name}").DOOR
    return door
