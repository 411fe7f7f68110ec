"""The usual coding agents as fixers: their commands, and where each keeps its login and its sessions."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple


class CodingAgent(NamedTuple):
    """One of them, as `coding_agents.toml` explains it."""

    program: str
    command: str
    key: str
    writable: tuple[str, ...]


CODING_AGENTS: Final = {
    name: CodingAgent(**told)
    for name, told in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""By the word of `fixloop init --agent`."""


def named_in(command: Sequence[str]) -> tuple[CodingAgent, ...]:
    """The agents whose programs a command names, in the words of a shell, too."""
    words = set(re.split(r"[^\w.-]+", " ".join(command)))
    return tuple(agent for agent in CODING_AGENTS.values() if agent.program in words)
