"""The profiles that there are: a package for each, and one record of what it brings (R1).

A record names its parts as `module:name`. Each is loaded when it is first asked for: most calls need few of them.
"""

from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from fixloop.errors import NewerVersion

_PACKAGES: Final = {
    "validation": "fixloop.profiles.validation",
    "cycle": "fixloop.profiles.cycle",
    "handoff": "fixloop.profiles.handoff",
}
"""By name; each has its record as `REGISTERED`."""


class Registered(NamedTuple):
    """What the product knows of a profile."""

    name: str
    summary: str
    """What its workflows do, for `run --help`."""
    queues: tuple[str, ...]
    """Where its steps are done, each as `fixloop.{name}`."""
    engine: str
    """A `Profile`: how states are read and what follows from an event."""
    intake: str
    """An `Intake`: the event that begins a workflow."""
    presenter: str
    """A `Presenter`: what commands show."""
    handlers: str
    """`CommandHandlers`: how commands bring something."""
    steps: str
    """`StepHandlers`: how the application's workers do its steps."""
    following: str
    """The tickets after one to the end of its round, which the application's canvas is made of."""
    options: tuple[str, ...] = ()
    """Those of `run` and `enqueue` that not every profile has."""
    agents: tuple[str, ...] = ()
    """Who takes part in every workflow, whether the configuration speaks of them or not."""
    settings: str = ""
    """Holds what its section of fixloop.toml says against what its agents are; empty: it has no section."""
    plural: str = "workflows"
    """What a chaos run calls its workflows."""
    results: str = "fixes"
    """What a chaos run calls what its agents bring."""
    outside: str = ""
    """`Outside`: the agents that somebody else runs; empty: there are none."""
    requests: str = ""
    """What is asked of an agent, given the store, a snapshot and the agent; empty: nothing is."""
    agent_runs: str = ""
    """`AgentRuns`: what its agents' commands left, and a validation loop in their place; empty: it has none."""
    files: str = ""
    """`ProfileFiles`: its named files (K23); empty: it has none."""
    order: str = ""
    """`Order`: who of its agents waits for whom, where that can be configured."""
    scripts: str = ""
    """`Scripts`: how its agents are played in a chaos run."""
    is_counted: bool = False
    """Whether something is counted over all its workflows."""


def names() -> tuple[str, ...]:
    """Of all profiles."""
    return tuple(_PACKAGES)


@cache
def registered(name: str) -> Registered:
    """The record of a profile. Raises NewerVersion: this version has no such profile."""
    if name not in _PACKAGES:
        raise NewerVersion(f"a workflow is of profile {name!r}, which this version does not have; upgrade it")
    found: Registered = import_module(_PACKAGES[name]).REGISTERED
    return found


def registered_in(snapshot: bytes) -> Registered:
    """The record of the profile of the workflow that this is a snapshot of; raises NewerVersion, too."""
    return registered(profile_of(snapshot))


def profile_of(snapshot: bytes) -> str:
    """Whose snapshot this is; all are of the validation profile that do not begin by saying otherwise."""
    head = snapshot[:40]
    return (
        head.split(b'"')[3].decode("ascii", "replace") if head.startswith(b'{"profile":"') else "validation"
    )


@cache
def work_queues() -> tuple[str, ...]:
    """What a shared worker's processes for work serve, each as `fixloop.{name}`."""
    return (*(queue for name in names() for queue in registered(name).queues), "prepare")


@cache
def loaded(part: str) -> Any:
    """A part that a record names."""
    module, _, name = part.partition(":")
    return getattr(import_module(module), name)
