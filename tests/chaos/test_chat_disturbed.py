"""
S28 by commands, with `fixloop chat run` killed again and again: 4 times in `make test`, 200 times in `make chaos`.

The files are those of an undisturbed run but for their times, and no command outlives whoever asked it.
"""

import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from tests.unit.chat_stage import ARCHITECT, ENGINEER, NAME, Stage, body

ARCHITECT_SAYS: Final = (
    'echo $$ >> ../pids; sleep 0.05; test "$FIXLOOP_SEQ" -lt 007 && cat architect.md || cat end.md'
)
ENGINEER_SAYS: Final = "echo $$ >> ../pids; sleep 0.05; cat engineer.md"
LIMIT_SECONDS: Final = 60

pytestmark = pytest.mark.slow


def prepared(folder: Path) -> Stage:
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "architect.md").write_text(f"---\npurpose: Go on\n---\n{body(ARCHITECT)}\n")
    results = ["[pass] python -m pytest", "[pass] ruff check"]
    (folder / "work" / "engineer.md").write_text(body(ENGINEER, results=results))
    (folder / "work" / "end.md").write_text("---\nclose: Completed\n---\nAll done.\n# DECISION\nShip it.\n")
    return Stage(folder / "chats").open()


def begun(stage: Stage) -> "subprocess.Popen[bytes]":
    words = ("chat", "run", str(stage.path), "--architect", f"sh -c '{ARCHITECT_SAYS}'")
    return subprocess.Popen(
        [sys.executable, "-m", "fixloop.cli", *words, "--engineer", f"sh -c '{ENGINEER_SAYS}'"],
        cwd=stage.parent.parent / "work",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def timeless(stage: Stage) -> dict[str, str]:
    """Every file of people's, without the times in it."""
    shown = {name: text.decode() for name, text in stage.files().items() if not name.startswith(".")}
    return {name: re.sub(r"20\d\d-\d\d-\d\d(T[\d:]+Z)?", "TIME", text) for name, text in shown.items()}


def kills() -> int:
    return 200 if settings.get_current_profile_name() == "chaos" else 4


@pytest.mark.proves("S28", "S30", "E29")
def test_a_chat_whose_runner_is_killed_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed, disturbed = prepared(tmp_path / "quiet"), prepared(tmp_path / "loud")
    begun(undisturbed).communicate(timeout=LIMIT_SECONDS)
    chance = random.Random(28)

    killed = 0
    while killed < kills():
        runner = begun(disturbed)
        time.sleep(chance.uniform(0.1, 1.0))
        killed += runner.poll() is None
        runner.kill()
        runner.communicate(timeout=LIMIT_SECONDS)
        if "DECISION.md" in disturbed.files():
            if killed >= kills():
                break
            disturbed = prepared(tmp_path / f"loud-{killed}-{chance.random()}")
    said = begun(disturbed).communicate(timeout=LIMIT_SECONDS)[1]

    assert said.decode() == f"fixloop: {disturbed.path} is closed\n"
    assert timeless(disturbed) == timeless(undisturbed)
    assert sorted(timeless(disturbed))[:2] == ["001-to-engineer.md", "002-to-architect.md"]
    assert disturbed.findings() == undisturbed.findings() == []
    assert disturbed.path.name == NAME
    pids = (disturbed.parent.parent / "pids").read_text().split()
    assert [pid for pid in pids if _is_shell(pid)] == []


def _is_shell(pid: str) -> bool:
    try:
        return b"cat engineer.md" in Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return False
