"""`fixloop chaos` as a user runs it, short: real workers, real injuries, nothing lost and nothing left running."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.chat.message import read_name
from fixloop.testing.contrast import contrast
from fixloop.testing.plan import CHAT, Boundary, Injury, Occasion
from fixloop.testing.site import Order
from tests.fixtures.command_stage import said

pytestmark = pytest.mark.slow

CONSOLE = Path(sys.executable).with_name("fixloop")
SECONDS = 240
"""For a machine that is busy with other tests; alone it takes 20."""


TURNS = 3
"""At most. A run whose only fault is an injury that came too late has shown too little."""
UNFELT = "injuries had no effect, or were planned for tickets that came too late"
WELL = "chaos: 0 lost, 0 doubled, 0 unexplained, 0 stuck, "


def chaos(kept: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A run that keeps its folder and in which every injury took effect, if possible."""
    command = [str(CONSOLE), "chaos", *words, "--keep", str(kept)]
    for _ in range(TURNS):
        shutil.rmtree(kept, ignore_errors=True)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        if not (ended.returncode == 1 and UNFELT in ended.stdout and WELL in ended.stdout):
            break
    return ended


@pytest.mark.proves("S30", "R7", "R8", "K40")
def test_nothing_is_lost_doubled_or_stuck_under_any_injury(tmp_path: Path) -> None:
    kept = tmp_path / "kept"

    ended = chaos(kept, "--workflows", "14", "--kills", "8", "--seed", "210")

    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}{logs(kept)}"
    assert ended.stdout.splitlines()[-1] == (
        "chaos: 0 lost, 0 doubled, 0 unexplained, 0 stuck, 14 of 14 histories verify (seed 210)"
    )
    injuries = [json.loads(line) for line in (kept / "injuries").read_text().splitlines()]
    felt = {one["injury"] for one in injuries if one["felt"]}
    killed = {"supervisor and all its children killed", "fixer or check killed"}
    assert {*killed, "Redis killed and started again", "reply to a claim lost"} <= felt
    assert running(kept) == []


@pytest.mark.proves("S28", "S30", "E29", "E32")
def test_chats_end_with_the_same_files_under_any_injury_to_their_players(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ("--profile", "chat", "--workflows", "3", "--kills", "6", "--seed", "1")

    ended = chaos(kept, *words)

    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}{logs(kept)}"
    assert ended.stdout.splitlines()[-1] == (
        "chaos: 0 lost, 0 doubled, 0 unexplained, 0 stuck, 3 of 3 chats hold (seed 1)"
    )
    injuries = [json.loads(line) for line in (kept / "injuries").read_text().splitlines()]
    felt = {one["injury"] for one in injuries if one["felt"]}
    assert len(felt) >= 6
    assert felt <= {injury.value for injury in CHAT}
    chat = kept / "injured" / "chats" / "0002-dx-chaos"
    assert sum(bool(read_name(file.name)) for file in chat.iterdir()) == 10
    assert running(kept) == []


@pytest.mark.proves("S17", "S30", "K23")
def test_agents_end_with_the_same_state_and_files_under_any_injury(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    # Handoffs are injured by the same code, in `make chaos`.
    words = ("--profile", "cycle", "--workflows", "4", "--kills", "4", "--seed", "1395", "--twice")

    ended = chaos(kept, *words)

    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}{logs(kept)}"
    assert ended.stdout.splitlines()[-1] == (
        "chaos: 0 lost, 0 doubled, 0 unexplained, 0 stuck, 4 of 4 histories verify (seed 1395)"
    )
    injuries = [json.loads(line) for line in (kept / "injuries").read_text().splitlines()]
    felt = {one["injury"] for one in injuries if one["felt"]}
    assert {"work process killed", "supervisor and all its children killed"} <= felt
    assert len([path for path in (kept / "files" / "d15a57e2" / "1").rglob("*") if path.is_file()]) > 5
    assert running(kept) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--profile", "chess"],
            "there is no chaos run of 'chess'; there are validation, cycle, handoff, chat",
        ),
        (["--profile", "chat", "--contrast"], "compared with the validation profile only"),
        (["--profile", "chat", "--twice"], "no messages that could be delivered twice"),
        (["--profile", "chat", "--network", "relay"], "no network that could be cut"),
        (["--network", "tcp"], "there is no network 'tcp'; there are auto, namespaces, relay"),
    ],
)
def test_an_option_that_a_profile_lacks_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = said(capsys, "chaos", *words)

    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err


@pytest.mark.proves("S30")
def test_an_existing_folder_is_not_written_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = said(capsys, "chaos", "--keep", str(tmp_path))

    assert ended.code == 2
    assert "name one that does not exist" in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("injury", "ended", "is_doubled"),
    [(None, 3, False), (Injury.LOSE_TAKEN, 2, False), (Injury.DOUBLE_MESSAGES, 3, True)],
    ids=["left alone", "a message is dropped", "messages come twice"],
)
def test_a_bare_celery_chain_completes_only_without_injuries(
    injury: Injury | None, ended: int, is_doubled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fixloop.testing.contrast.PATIENCE_SECONDS", 3.0)
    steps = ("validate", "report", "fix", "recheck")
    tickets = {
        workflow: [f"{workflow}.test-runner.{step}.1.1" for step in steps]
        for workflow in ("0a1b2c3d-1-1", "0a1b2c3d-2-1", "0a1b2c3d-3-1")
    }
    occasion = Occasion("fix", Boundary.BEFORE_HINT, 1)

    plan = {occasion: injury} if injury else {}
    order = Order(3, 1, 1, concurrency=1, network="relay")
    found = contrast(order, tmp_path / "bare", plan, tickets, 0.0, tell=lambda progress: None)

    assert (found.chains, found.ended, found.doubled > 0) == (3, ended, is_doubled)
    assert found.injuries == (injury is not None)


def logs(folder: Path) -> str:
    return "".join(f"\n== {path.name}\n{path.read_text()[-3000:]}" for path in sorted(folder.glob("*.log")))


def running(folder: Path) -> list[str]:
    """Processes that carry the folder's name in their command or environment."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if process.name.isdigit() and os.fsencode(folder) in told:
            found.append(process.name)
    return found
