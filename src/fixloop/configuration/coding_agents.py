"""The usual coding agents as fixers: their commands, and where each keeps its login and its sessions."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple


class CodingAgent(NamedTuple):
    """One entry of `coding_agents.toml`, which explains the fields."""

    program: str
    command: str
    key: str
    writable: tuple[str, ...]


CODING_AGENTS: Final = {
    name: CodingAgent(**told)
    for name, told in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""By the argument of `fixloop init --agent`."""


def named_in(command: Sequence[str]) -> tuple[CodingAgent, ...]:
    """The agents whose programs a command names, also inside shell text."""
    words = set(re.split(r"[^\w.-]+", " ".join(command)))
    return tuple(agent for agent in CODING_AGENTS.values() if agent.program in words)
