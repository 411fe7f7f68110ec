"""What comes of one run of an agent of a cycle or of handoffs, before anybody reads what it said."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Brought(NamedTuple):
    """An agent's difference, see `PhaseReported`."""

    base: str = ""
    tip: str = ""
    bundle: str = ""


class Played(NamedTuple):
    """One run that ended."""

    answer: str = ""
    """What it printed on its standard output."""
    error: str = ""
    """Why it did not end well; then nothing else of it counts."""
    fatal: bool = False
    """Trying again is of no use."""
    writings: Any = None
    """What it left in the named files, as its profile has it; None where that is nothing."""
    wrong: str = ""
    """What it left that it may not, or named and did not leave, in one sentence."""
    artifacts: tuple[str, ...] = ()
    """The digests of what it printed."""
    brought: Brought = Brought()
    files: tuple[str, ...] = ()
    """The paths that it changed."""
    fields: Mapping[str, Any] = MappingProxyType({})
    """Of handoffs: what it wrote into the shared state that it was given, by field."""
