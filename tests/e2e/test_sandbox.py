"""Whole runs in a sandbox: what a fixer cannot do, what the evidence says, and what declining leads to."""

import json
from pathlib import Path
from typing import Any

import pytest

from fixloop.machine.sandbox import means_in_use
from tests.fixtures.project import FIXLOOP, MEND, TOML, Host, Project, processes_of, until

pytestmark = pytest.mark.slow

TRIES = """\
import os, pathlib, subprocess, sys
project, home, named, fixloop = map(pathlib.Path, sys.argv[1:])
tried = {}
def attempt(name, write):
    try:
        write()
        tried[name] = "done"
    except OSError:
        tried[name] = "refused"
attempt("venv", lambda: (project / ".venv" / "planted.pth").write_text("1"))
attempt("checkout", lambda: (project / "calc.py").write_text("1"))
attempt("home", lambda: (home / ".gitconfig").write_text("1"))
attempt("state", lambda: (project / ".fixloop" / "redis" / "planted").write_text("1"))
attempt("password", lambda: (project / ".fixloop" / "redis" / "access.conf").read_text())
attempt("seal", lambda: (project / ".fixloop" / "redis" / "seal.key").read_text())
attempt("named", lambda: (named / "session").write_text("1"))
told = subprocess.run([fixloop, "cancel", "1"], cwd=project, capture_output=True)
tried["cancel"] = "done" if told.returncode == 0 else "refused"
pathlib.Path("tried.json").write_text(repr(tried))
"""


def test_a_fixer_can_write_only_its_workspace_and_the_configured_paths(tmp_path: Path) -> None:
    if means_in_use().name == "none":
        pytest.skip(f"no sandbox here: {means_in_use().reason}")
    folder, home, named = tmp_path / "shop", tmp_path / "home", tmp_path / "sessions"
    named.mkdir()
    tries = tmp_path / "tries.py"
    tries.write_text(TRIES)
    command = f"sh -c 'python {tries} {folder} {home} {named} {FIXLOOP}; {MEND}'"
    toml = f'{TOML}[sandbox]\nmode = "auto"\n[fixer]\ncommand = "{command}"\nwritable = ["{named}"]\n'
    project = Project(folder, toml=toml, variables={"FIXLOOP_SANDBOX_WRITABLE": ""})
    (folder / ".venv").mkdir()

    told = project.fixloop("run")

    assert told.code == 0, told.err
    project.fixloop("apply", "1")
    tried = eval(project.read("tried.json"))
    assert tried.pop("named") == "done"
    assert set(tried.values()) == {"refused"}, tried
    specialists = project.fixloop("status", "1", "--json").document["specialists"]
    evidence = [each for specialist in specialists for each in specialist["evidence"]]
    assert {each["sandbox"] for each in evidence} == {means_in_use().name}
    assert f"Confined by: {means_in_use().name}" in project.fixloop("report", "1").out
    until(lambda: not processes_of(tmp_path), what="the end of every process")


@pytest.mark.parametrize("place", ["$FIXLOOP_ANSWER", ".fixloop/answer"])
def test_a_fixer_that_declines_escalates_with_its_claim_and_the_test(host: Host, place: str) -> None:
    answer = json.dumps({"decline": {"kind": "test-is-wrong", "text": "1 + 2 is -1 here"}})
    toml = f"[fixer]\ncommand = \"sh -c 'cp answer.json {place}'\"\n{TOML}"
    project = host.project("declining", toml=toml, files={"answer.json": answer})

    told = project.submit()

    assert told.code == 3
    items = project.fixloop("inbox", "--json").document["items"]
    (asked,) = [item for item in items if item["name"] == "declining"]
    assert asked["detail"] == "fixer declines, test-is-wrong: 1 + 2 is -1 here"
    assert asked["iteration"] == 1
    entries = project.fixloop("log", "1", "--json").document["entries"]
    assert "assert calc.add(1, 2) == 3" in entries[-1]["rendered"]


def test_an_answer_is_not_read_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "answer").write_text("DECLINED test-is-wrong: no")
    leads = f"rm -r .fixloop; ln -s {elsewhere} .fixloop; {MEND}"
    project = Project(tmp_path / "shop", toml=f"{TOML}[fixer]\ncommand = \"sh -c '{leads}'\"\n")

    told = project.fixloop("run")

    assert told.code == 0, told.out


def items(project: Project) -> list[dict[str, Any]]:
    return list(project.fixloop("inbox", "--json").document["items"])


def test_an_outside_agent_declines_with_a_command(host: Host) -> None:
    project = host.project("asking")
    assert project.submit().code == 3

    refused = project.fixloop("decline", "1", "--kind", "too-hard", "--text", "it is")
    told = project.fixloop("decline", "1", "--kind", "needs-info", "--text", "which rounding?")

    assert "'too-hard' is no reason to decline" in refused.err
    assert told.code == 0, told.err
    (asked,) = until(lambda: [each for each in items(project) if each["name"] == "asking"])
    assert asked["detail"].endswith(" declines, needs-info: which rounding?")
