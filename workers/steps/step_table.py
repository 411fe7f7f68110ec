"""The step handlers of all profiles, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fixloop.profile_table import loaded, names, registered, registered_in
from workers.steps.step_handlers import StepHandlers

STEP_HANDLERS: Final[Mapping[str, StepHandlers]] = MappingProxyType(
    {name: loaded(registered(name).steps) for name in names()}
)


def step_handlers_of(snapshot: bytes) -> StepHandlers:
    """Where the steps of a workflow with this snapshot are done. Raises NewerVersion: there is no such profile."""
    return STEP_HANDLERS[registered_in(snapshot).name]
