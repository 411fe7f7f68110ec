"""What comes of one run of an agent of a cycle or of handoffs, before anybody reads what it said."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fixloop.protocol.state import State
from fixloop.repository.git import Git
from fixloop.store.contract import Store


class Brought(NamedTuple):
    """An agent's difference, see `PhaseReported`."""

    base: str = ""
    tip: str = ""
    bundle: str = ""


class Played(NamedTuple):
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
    fields: Mapping[str, Any] = MappingProxyType({})
    """Of handoffs: what it wrote into the shared state that it was given, by field."""


class Left(NamedTuple):
    """What an agent's command left in the named files that it was given."""

    writings: Any = None
    fields: Mapping[str, Any] = MappingProxyType({})
    """See `Played`, for both."""
    wrong: str = ""
    """What it left that it may not, in one sentence; then nothing else counts."""


class AgentRuns(NamedTuple):
    """What a profile makes of a run of an agent that is a command, or a validation loop in its place."""

    left: Callable[[Store, Any, bytes, str, Path, Callable[[bytes], bytes]], Left]
    """Given the state, the snapshot whose files were laid, the agent, the folder, and what cuts secrets out."""
    verdict: Callable[[State, Any, str, Callable[[bytes], str]], tuple[str, Any]]
    """The agent's answer and writings, given the ended loop, the state, the agent, and what keeps an artifact."""
    missing: Callable[[Any, Git, str, str], str] = lambda state, git, commit, answer: ""
    """What its answer names and the work in `commit` does not have, in one sentence."""
