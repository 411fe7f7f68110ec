"""What the engine has to know of all profiles, by name."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fixloop.engine.profile import Profile
from fixloop.profile_table import loaded, names, registered, registered_in


class _Profiles(Mapping[str, Profile[Any]]):
    """Each is loaded when it is first asked for."""

    def __getitem__(self, name: str) -> Profile[Any]:
        if name not in names():
            raise KeyError(name)
        found: Profile[Any] = loaded(registered(name).engine)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())


PROFILES: Final[Mapping[str, Profile[Any]]] = _Profiles()
"""By name."""


def profile_in(snapshot: bytes) -> Profile[Any]:
    """The profile of the workflow that this is a snapshot of; NewerVersion where this version has no such profile."""
    found: Profile[Any] = loaded(registered_in(snapshot).engine)
    return found
