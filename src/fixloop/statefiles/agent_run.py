"""The raw results of one agent run of a cycle or of handoffs, before its answer is read."""

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
    """Its standard output."""
    error: str = ""
    """Why it failed; then nothing else counts."""
    fatal: bool = False
    """A retry is useless."""
    writings: Any = None
    """Its changes to the named files, as its profile reads them; None if there are none."""
    wrong: str = ""
    """One sentence about files it must not leave, or named and did not leave."""
    artifacts: tuple[str, ...] = ()
    """The digests of its output."""
    brought: Brought = Brought()
    files: tuple[str, ...] = ()
    fields: Mapping[str, Any] = MappingProxyType({})
    """Of handoffs: its changes to the given shared state, by field."""


class Left(NamedTuple):
    """An agent command's changes to the named files that it was given."""

    writings: Any = None
    fields: Mapping[str, Any] = MappingProxyType({})
    """See `Played`, for both."""
    wrong: str = ""
    """One sentence about files it must not leave; then nothing else counts."""


class AgentRuns(NamedTuple):
    """A profile's handling of a run of an agent that is a command, or of a validation loop in its place."""

    left: Callable[[Store, Any, bytes, str, Path, Callable[[bytes], bytes]], Left]
    """Given the state, the snapshot whose files were laid, the agent, the folder, and a redaction function."""
    verdict: Callable[[State, Any, str, Callable[[bytes], str]], tuple[str, Any]]
    """The agent's answer and writings, given the ended loop, the state, the agent, and what keeps an artifact."""
    missing: Callable[[Any, Git, str, str], str] = lambda state, git, commit, answer: ""
    """One sentence about what its answer names but the work in `commit` does not have."""
