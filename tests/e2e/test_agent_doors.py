"""The conformance kit, through each interface by which agents get work, against real servers and workers.

Five scenarios in `make test`, all fourteen with KIT_ALL=1.
"""

import os
from pathlib import Path

import pytest

from fixloop.testing.agents import SCENARIOS
from fixloop.testing.doors import opened

pytestmark = pytest.mark.slow

SHORT = ("fixes at once", "uses another fence", "declines", "hands in twice", "hands in garbage")
PLAYED = tuple(SCENARIOS) if os.environ.get("KIT_ALL") else SHORT


@pytest.mark.parametrize("door", ["command", "files", "mailbox", "http", "mcp"])
def test_each_interface_holds_the_cheats_of_every_kind_of_agent(door: str, tmp_path: Path) -> None:
    found = list(opened(door, tmp_path, PLAYED))

    assert sorted(each.scenario for each in found) == sorted(PLAYED)
    assert [each for each in found if each.result == "failed"] == []
    assert sum(each.result == "held" for each in found) >= 3


def test_there_are_fourteen_scenarios() -> None:
    assert len(SCENARIOS) == 14
