"""What agents answer through real workers: lies about files, garbage, and an honest `not ready`."""

import re
from pathlib import Path

import pytest

from fixloop.protocol.rendering import render_answer_format
from tests.fixtures.project import RIGHT, TOML, Host

pytestmark = pytest.mark.slow

EXAMPLE = render_answer_format(1, 1, "test-runner")
AGENT = """\
import os, pathlib
home, answer = pathlib.Path(os.environ["HOME"], "said"), pathlib.Path(os.environ["FIXLOOP_ANSWER"])
tries = len(list(home.glob("try-*")))
(home / f"try-{tries}").touch()
answer.write_bytes(pathlib.Path(f"answer-{tries}").read_bytes())
calc = pathlib.Path("calc.py")
calc.write_text(calc.read_text().replace("-", "+"))
"""


@pytest.mark.proves("A32", "A34", "K35")
def test_an_agent_that_lies_about_its_files_is_noted_with_the_real_change(host: Host) -> None:
    project = host.project("lying")
    assert project.submit().code == 3
    place = Path(re.findall(r"work in (/\S+), then", project.fixloop("ack", "1").err)[0])
    (place / "calc.py").write_text(RIGHT)

    fixed = project.fixloop("fixed", "1", "--file", "-", stdin=EXAMPLE.replace("path/of/each", "src/never"))

    assert (fixed.code, fixed.out) == (0, "calc.py\n"), fixed.err
    assert project.fixloop("watch", "1").code == 0
    entries = project.fixloop("log", "1", "--json").document["entries"]
    (done,) = [entry for entry in entries if entry["message_id"] == "FIXDONE-1-1"]
    assert "### Files Modified\n- calc.py\n" in done["rendered"]
    assert "**Named But Not Changed**:\n- src/never/changed/file (or the one word none)\n" in done["rendered"]
    assert "**Changed But Not Named**:\n- calc.py\n" in done["rendered"]
    assert project.fixloop("audit", "verify", "1").code == 0


@pytest.mark.proves("A33", "A71", "G8", "G2")
def test_a_command_that_answers_garbage_and_then_not_ready_escalates(host: Host) -> None:
    honest = EXAMPLE.replace("Yes - please re-run test-runner.", "No - the specification contradicts itself")
    project = host.project(
        "honest",
        toml='[fixer]\ncommand = "python agent.py"\n' + TOML,
        files={"agent.py": AGENT, "answer-0": "\x00\x01 nothing", "answer-1": honest},
    )
    (project.home / "said").mkdir(exist_ok=True)

    told = project.submit()

    assert told.code == 3
    assert "not ready: the specification contradicts itself" in told.out
    entries = project.fixloop("log", "1", "--json").document["entries"]
    kinds = [entry["message_id"].split("-")[0] for entry in entries]
    assert kinds == ["DETECT", "VFR", "PVN", "ESC"]
    assert "**Escalation Reason**: Other (Blocker)" in entries[-1]["rendered"]
    assert project.fixloop("audit", "verify", "1").code == 0


@pytest.mark.proves("K35", "R8")
def test_an_answer_without_a_change_is_rechecked_and_a_repeated_one_counts_once(host: Host) -> None:
    project = host.project("idle")
    assert project.submit().code == 3
    assert project.fixloop("ack", "1").code == 0
    nothing = EXAMPLE.replace("- path/of/each/changed/file (or the one word none)", "none")

    first = project.fixloop("fixed", "1", "--file", "-", stdin=nothing)
    assert project.fixloop("watch", "1").code == 3
    second = project.fixloop("fixed", "1", "--file", "-", stdin=nothing)

    assert (first.code, first.out) == (0, "")
    assert "no file was changed" in first.err
    assert second.code == 2
    assert "this was answered already" in second.refusal
    said = project.fixloop("log", "1", "--json").document["entries"]
    kinds = [entry["message_id"] for entry in said]
    assert kinds[2:] == [
        "FIXDONE-1-1",
        "REVAL-1-test-runner-2",
        "REVALRES-1-test-runner-2",
        "VFR-1-test-runner-2",
    ]
    assert "### Files Modified\nnone\n" in said[2]["rendered"]
