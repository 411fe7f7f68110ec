"""Linters during the first phase of a run: reused if they passed on the same tree, and void after a fix."""

from pathlib import Path

import pytest

from tests.fixtures.project import CALC, MEND, RIGHT, Project, until

pytestmark = pytest.mark.slow

SPECIALISTS = """
[specialist.test-runner]
command = "sh tests.sh {log} {junit}"
[specialist.code-quality]
command = "sh -c 'echo linter >> {log}; {lint}'"
"""
TESTS = """echo tests >> $1
for each in $(seq 1 600); do
  grep -q {word} $1 && exec python check.py $2
  sleep 0.1
done
exit 1
"""


def shop(tmp_path: Path, lint: str, *, calc: str = RIGHT, more: str = "", word: str = "linter") -> Project:
    """Its tests wait for a word in the log: they fail unless the linter starts while they run."""
    # A separate folder: next to what is hidden from commands, Landlock lets them create no file.
    (tmp_path / "told").mkdir()
    toml = SPECIALISTS.replace("{log}", f"{tmp_path}/told/log").replace("{lint}", lint) + more
    return Project(tmp_path / "shop", toml=toml, calc=calc, files={"tests.sh": TESTS.replace("{word}", word)})


def log(project: Project) -> list[str]:
    return log_of(project.folder.parent / "told/log")


def log_of(told: Path) -> list[str]:
    return told.read_text().split()


def test_a_check_that_passes_alongside_the_tests_is_not_rerun_and_is_logged(tmp_path: Path) -> None:
    project = shop(tmp_path, "echo calc.py is fine")

    told = project.fixloop("run", FIXLOOP_AHEAD="1")

    assert told.code == 0, told.err
    assert sorted(log(project)) == ["linter", "tests"]
    said = project.fixloop("log", "1", "--format", "markdown").out
    assert said.count("ran ahead of its phase, until 20") == 1


def test_a_check_that_fails_alongside_the_tests_is_rerun_in_its_phase(tmp_path: Path) -> None:
    project = shop(tmp_path, "echo calc.py:1: no; exit 1")

    told = project.fixloop("run", "--all", FIXLOOP_AHEAD="1")

    assert told.code == 3, told.err
    assert sorted(log(project)) == ["linter", "linter", "tests"]
    assert "ran ahead" not in project.fixloop("log", "1", "--format", "markdown").out


def test_a_fix_invalidates_earlier_early_results(tmp_path: Path) -> None:
    fixer = f"[fixer]\ncommand = \"sh -c '{MEND}'\"\n"
    project = shop(tmp_path, "! grep -q + calc.py", calc=CALC, more=fixer)

    told = project.fixloop("run", FIXLOOP_AHEAD="1")

    assert told.code != 0, "the linter passes before the fix alone"
    assert "code-quality" in told.out
    assert "ran ahead" not in project.fixloop("log", "1", "--format", "markdown").out


def test_a_killed_worker_loses_early_results_and_the_next_ends_the_same(tmp_path: Path) -> None:
    project = shop(tmp_path, "sleep 1", word="resumed")
    running = project.start("run", FIXLOOP_AHEAD="1")
    until(lambda: (tmp_path / "told/log").exists() and {"linter", "tests"}.issubset(log(project)))
    running.kill()
    running.communicate()
    with (tmp_path / "told/log").open("a") as written:
        written.write("resumed\n")

    told = project.fixloop("resume", FIXLOOP_AHEAD="1")

    assert told.code == 0, told.err
    assert log(project).count("tests") == 2


def test_a_check_that_runs_the_project_starts_alongside_linters_not_tests(tmp_path: Path) -> None:
    told = tmp_path / "told/log"
    waits = f"for each in $(seq 600); do grep -q e2e {told} && exit 0; sleep 0.1; done; exit 1"
    toml = (
        f"[specialist.test-runner]\ncommand = \"sh -c 'echo tests >> {told}; sleep 1; echo over >> {told}'\"\n"
        f"[specialist.code-quality]\ncommand = \"sh -c '{waits}'\"\n"
        f"[specialist.e2e-accessibility]\ncommand = \"sh -c 'echo e2e >> {told}'\"\n"
    )
    told.parent.mkdir()
    project = Project(tmp_path / "shop", toml=toml, calc=RIGHT)

    done = project.fixloop("run", FIXLOOP_AHEAD="1")

    assert done.code == 0, done.err
    assert log(project) == ["tests", "over", "e2e"]
    assert project.fixloop("log", "1", "--format", "markdown").out.count("ran ahead of its phase") == 2


def test_early_checks_are_ended_before_a_fixer_starts(tmp_path: Path) -> None:
    told = tmp_path / "told/log"
    told.parent.mkdir()
    beats = f"grep -q + calc.py || for each in $(seq 600); do echo beat >> {told}; sleep 0.1; done"
    waits = f"until test $(wc -l < {told}) = $(sleep 1; wc -l < {told}); do :; done; echo quiet >> {told}"
    files = {"lint.sh": beats, "fix.sh": f"{waits}\n{MEND}\n", "tests.sh": TESTS.replace("{word}", "beat")}
    toml = (
        f'[fixer]\ncommand = "sh fix.sh"\n[specialist.test-runner]\ncommand = "sh tests.sh {told} {{junit}}"\n'
        '[specialist.code-quality]\ncommand = "sh lint.sh"\n'
    )

    done = Project(tmp_path / "shop", toml=toml, files=files).fixloop("run", FIXLOOP_AHEAD="1")

    assert done.code == 0, done.err
    assert log_of(told).index("quiet") < 300, "the linter's minute was over"
