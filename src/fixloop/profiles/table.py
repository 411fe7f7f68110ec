"""All profiles by name, for those who meet workflows of any."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from fixloop.errors import NewerVersion
from fixloop.profiles.cycle import CYCLE
from fixloop.profiles.handoff import HANDOFF
from fixloop.profiles.profile import Profile
from fixloop.profiles.reading import profile_of
from fixloop.profiles.validation import VALIDATION

PROFILES: Final[Mapping[str, Profile[Any]]] = MappingProxyType(
    {profile.name: profile for profile in (VALIDATION, CYCLE, HANDOFF)}
)
"""By name."""


def profile_in(snapshot: bytes) -> Profile[Any]:
    """
    The profile of the workflow that this is a snapshot of.

    Raises:
        NewerVersion: this version has no such profile.
    """
    name = profile_of(snapshot)
    if name not in PROFILES:
        raise NewerVersion(f"a workflow is of profile {name!r}, which this version does not have; upgrade it")
    return PROFILES[name]
