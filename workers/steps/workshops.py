"""The workshops of all profiles, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fixloop.errors import NewerVersion
from fixloop.profiles.reading import profile_of
from workers.steps import cycling, handing, validating
from workers.steps.workshop import Workshop

WORKSHOPS: Final[Mapping[str, Workshop]] = MappingProxyType(
    {shop.profile.name: shop for shop in (validating.SHOP, cycling.SHOP, handing.SHOP)}
)


def workshop_of(snapshot: bytes) -> Workshop:
    """
    Where the steps of a workflow with this snapshot are done.

    Raises:
        NewerVersion: this version has no such profile.
    """
    name = profile_of(snapshot)
    if name not in WORKSHOPS:
        raise NewerVersion(f"a workflow is of profile {name!r}, which this version does not have; upgrade it")
    return WORKSHOPS[name]
