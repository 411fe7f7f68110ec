"""What a state records of the environment, and how two listings differ."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from fixloop.machine.interpreters import Interpreter
from fixloop.protocol import events as ev
from fixloop.protocol.checks import RunOutcome
from tests.fixtures.repositories import write
from tests.fixtures.script import SILENT, Result, Silent, errs
from tests.fixtures.validation_stage import Stage
from workers.steps.validation_steps import run_finished
from workers.workspaces.frozen_environment import changes, listing


def lay_package(packages: Path, name: str, files: dict[str, str]) -> None:
    """An installed package with its RECORD."""
    write(packages, files)
    lines = []
    for path, text in files.items():
        digest = urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}\n")
    write(packages, {f"{name}-1.0.dist-info/RECORD": "".join(lines)})


def test_added_removed_and_changed_files_are_named() -> None:
    before = {"/v/bin/python": "1", "/v/a.pth": "2", "/v/b.py": "3"}
    now = {"/v/bin/python": "1", "/v/b.py": "4", "/v/evil.pth": "5"}

    assert [*changes(before, now)] == ["/v/b.py was changed", "/v/evil.pth was added", "/v/a.pth was removed"]
    assert [*changes(before, before)] == []


def test_a_package_that_matches_its_unchanged_record_has_not_changed(tmp_path: Path) -> None:
    lay_package(tmp_path, "tool", {"tool/__init__.py": "", "tool/core.py": "x = 1\n"})
    record = str(tmp_path / "tool-1.0.dist-info/RECORD")
    before = {record: "as it was", str(tmp_path / "tool"): "before"}
    now = {**before, str(tmp_path / "tool"): "after"}

    assert [*changes(before, now)] == []
    assert [*changes(before, {**now, record: "another"})] == [
        f"{record} was changed",
        f"{tmp_path}/tool was changed",
    ]


def test_files_of_a_package_that_differ_from_its_record_are_named(tmp_path: Path) -> None:
    lay_package(tmp_path, "tool", {"tool/__init__.py": "", "tool/core.py": "x = 1\n", "tool/gone.py": ""})
    record = str(tmp_path / "tool-1.0.dist-info/RECORD")
    write(tmp_path, {"tool/core.py": "x = 2\n", "tool/new.py": "", "tool/__pycache__/core.pyc": ""})
    (tmp_path / "tool/gone.py").unlink()

    found = [*changes({record: "1", str(tmp_path / "tool"): "1"}, {record: "1", str(tmp_path / "tool"): "2"})]

    assert found == [
        f"{tmp_path}/tool/core.py was changed",
        f"{tmp_path}/tool/gone.py was removed",
        f"{tmp_path}/tool/new.py was added",
    ]


def test_the_lock_file_and_the_programs_of_node_modules_are_listed(tmp_path: Path) -> None:
    donor = tmp_path / "node_modules"
    write(donor, {".package-lock.json": "{}", "eslint/bin/eslint.js": "", "eslint/package.json": "{}"})
    (donor / ".bin").mkdir()
    (donor / ".bin/eslint").symlink_to("../eslint/bin/eslint.js")
    nobody = Interpreter("", "", "none")

    before = listing(nobody, [], [donor], [])
    (donor / ".bin/eslint").unlink()
    write(donor, {".bin/eslint": "#!/bin/true\n", ".package-lock.json": "{ }"})

    assert [*changes(before, listing(nobody, [], [donor], []))] == [
        f"{donor}/.bin/eslint was changed",
        f"{donor}/.package-lock.json was changed",
    ]


def test_settings_and_programs_are_listed_by_content(tmp_path: Path) -> None:
    write(tmp_path, {"ruff.toml": "a", "tool": "b"})
    nobody, program, setting = Interpreter("", "", "none"), str(tmp_path / "tool"), tmp_path / "ruff.toml"

    before = listing(nobody, [program], [], [setting])
    write(tmp_path, {"ruff.toml": "a", "tool": "c"})

    assert [*changes(before, listing(nobody, [program], [], [setting]))] == [f"{program} was changed"]


@pytest.mark.parametrize("takes_them", [False, True])
def test_the_library_counts_and_system_packages_if_the_environment_uses_them(
    tmp_path: Path, takes_them: bool
) -> None:
    base, venv = tmp_path / "base", tmp_path / "venv"
    write(base, {"bin/python3.11": "", "lib/python3.11/os.py": "", "lib/python3.11/site-packages/six.py": ""})
    write(venv, {"pyvenv.cfg": f"include-system-site-packages = {str(takes_them).lower()}\nx = true\n"})
    (venv / "bin").mkdir()
    for name in ("python", "python3"):
        (venv / "bin" / name).symlink_to(base / "bin/python3.11")

    found = listing(Interpreter(str(venv / "bin/python"), str(venv), "checkout"), [], [], [])

    assert str(base / "lib/python3.11/os.py") in found
    assert (str(base / "lib/python3.11/site-packages/six.py") in found) is takes_them


def a_run(stage: Stage, outcome: RunOutcome, **environments: str) -> None:
    ticket = next(iter(stage.running.values()))
    stage.apply(run_finished(ticket, stage.state.tree, outcome, environments=environments))


def test_a_run_records_the_environment_for_later_runs() -> None:
    stage = Stage([SILENT]).run()

    a_run(stage, RunOutcome.PASSED, here="1")

    assert stage.state.environments == {"here": "1"}


def test_the_environment_of_an_erroneous_run_is_not_kept() -> None:
    stage = Stage([SILENT]).run()

    a_run(stage, RunOutcome.ERROR, here="1")

    assert stage.state.environments == {}


@pytest.mark.parametrize("decision", ["extend", "manual-fix"])
def test_a_decision_on_a_specialist_s_error_accepts_the_present_environment(decision: str) -> None:
    runs: dict[str, list[Result | Silent]] = {"test-runner": [SILENT], "security": [errs(), errs()]}
    stage = Stage(runs).run()
    a_run(stage, RunOutcome.PASSED, here="1")
    stage.run()
    assert stage.state.escalation is not None

    stage.decide(decision)

    assert stage.state.environments == {}


def test_a_manual_fix_accepts_the_present_environment() -> None:
    stage = Stage({"test-runner": [SILENT]}, answers=None).run()
    a_run(stage, RunOutcome.FAILED, here="1")
    stage.run()
    stage.apply(ev.BlockerSignalled(by="agent", text="no access"))
    stage.decide("manual-fix")
    assert stage.state.environments == {"here": "1"}

    stage.done_by_hand()

    assert stage.state.environments == {}
