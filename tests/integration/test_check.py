"""`fixloop check`: the verdict on a checkout in one process, the changes, and what need not run again."""

import signal
from pathlib import Path

import pytest

from fixloop.commands.check import MOST_CHARACTERS, failure_rows
from fixloop.protocol.failures import Failure
from tests.fixtures.project import CALC, MEND, RIGHT, TOML, Project
from tests.fixtures.reports.samples import junit

pytestmark = pytest.mark.slow

NOWHERE = {"FIXLOOP_STATE_URL": "redis://127.0.0.1:1/0"}
COUNTED = "[specialist.test-runner]\ncommand = \"sh -c 'echo >> {counted}'\"\n"
FAILS = COUNTED.replace("test-runner", "code-quality").replace(
    "counted}", "counted}; echo calc.py:1: no; exit 1"
)


def shop(tmp_path: Path, toml: str = TOML) -> Project:
    counted = toml.replace("{counted}", str(tmp_path / "counted"))
    return Project(tmp_path / "shop", toml=counted, variables=NOWHERE)


def counted(project: Project) -> int:
    """How often the counting check has run."""
    place = project.folder.parent / "counted"
    return len(place.read_text().splitlines()) if place.exists() else 0


def test_the_first_line_counts_changes_and_files_and_branches_are_kept(tmp_path: Path) -> None:
    project = shop(tmp_path)
    refs = project.git("for-each-ref")

    first = project.fixloop("check")
    project.write("test_calc.py", project.read("test_calc.py") + "\n\ndef fails():\n    assert 0, 'no'\n")
    second = project.fixloop("check")
    project.write("calc.py", project.read("calc.py").replace("-", "+"))
    third = project.fixloop("check")

    assert [told.code for told in (first, second, third)] == [1, 1, 1]
    assert first.out.splitlines()[:2] == [
        "1 failure in 1 of 1 checks; nothing differs from main, so none is new",
        "F1 test_calc.py::adds (test_calc.py)",
    ]
    assert second.out.startswith("2 failures in 1 of 1 checks; 1 new, 1 left; was 1\n")
    assert third.out.startswith("1 failure in 1 of 1 checks; 1 fixed, 1 left; was 2\n")
    assert project.git("for-each-ref") == refs
    assert project.git("status", "--porcelain").split() == ["M", "calc.py", "M", "test_calc.py"]
    assert not list((project.home / "cache/fixloop/work").iterdir())


def test_what_a_test_prints_is_no_command_to_github(tmp_path: Path) -> None:
    project = shop(tmp_path, COUNTED.replace("counted}'", "counted}; echo ::add-mask::no; exit 1'"))

    rows = project.fixloop("check", "--github").out.splitlines()

    [printed] = [number for number, row in enumerate(rows) if row.strip() == "::add-mask::no"]
    _, word, token = rows[0].split("::")
    assert (word, len(token)) == ("stop-commands", 32)
    assert printed < rows.index(f"::{token}::") < rows.index(next(filter(_is_annotation, rows)))


def _is_annotation(row: str) -> bool:
    return row.startswith("::error ")


def test_tests_that_a_broken_import_stops_do_not_count_as_fixed(tmp_path: Path) -> None:
    one, two, broken = (f'<testcase name="{name}"><failure/></testcase>' for name in ("a", "b", "build"))
    project = shop(tmp_path, TOML.replace("python check.py", "cp report.xml"))
    project.write("report.xml", junit(f'{one}{two}<testcase name="c"/>'))
    project.fixloop("check")
    project.write("report.xml", junit(broken))

    told = project.fixloop("check")

    assert told.out.startswith("1 failure in 1 of 1 checks; 1 new; was 2\n")


def test_a_check_of_the_same_tree_is_not_rerun_unless_asked(tmp_path: Path) -> None:
    project = shop(tmp_path, COUNTED)

    told = [project.fixloop("check").out for _ in range(2)]

    assert told == ["passed (1 check)\n", "passed (1 check); nothing has changed since the last check\n"]
    assert counted(project) == 1
    assert project.fixloop("check", "--json").document["checks"][0]["reused"]
    assert project.fixloop("check", "--again").code == 0
    assert counted(project) == 2


@pytest.mark.parametrize("change", ["tree", "command"])
def test_another_tree_or_command_is_another_check(tmp_path: Path, change: str) -> None:
    project = shop(tmp_path, COUNTED)
    project.fixloop("check")

    if change == "tree":
        project.write("new.py", "\n")
    else:
        project.write("fixloop.toml", project.read("fixloop.toml").replace("echo", "echo again"))
    project.fixloop("check")

    assert counted(project) == 2


def test_findings_that_the_base_has_too_are_counted_in_the_line_of_the_pass(tmp_path: Path) -> None:
    project = shop(tmp_path, FAILS)
    base = project.git("rev-parse", "HEAD").strip()[:7]

    told = [project.fixloop("check"), project.fixloop("check"), project.fixloop("run", "--dry")]

    assert [each.code for each in told] == [0, 0, 0]
    for each in told:
        assert f"passed (1 check); 1 old sh finding (already on {base})" in each.out


def test_the_last_failure_runs_first_and_with_fail_fast_alone(tmp_path: Path) -> None:
    project = shop(tmp_path, COUNTED + FAILS + 'baseline = "all"\n')
    assert project.fixloop("check").code == 1
    assert counted(project) == 2
    project.write("new.py", "\n")

    told = project.fixloop("check", "--fail-fast")

    assert told.code == 1
    assert told.out.startswith("1 failure in 1 of 1 checks; 1 left; was 1\n")
    assert counted(project) == 3


def test_a_check_that_could_not_run_does_not_pass_and_is_tried_again(tmp_path: Path) -> None:
    project = shop(
        tmp_path, "[specialist.security]\ncommand = \"sh -c 'echo >> {counted}; kill -ABRT $$'\"\n"
    )

    told = project.fixloop("check")

    assert told.code == 3
    assert told.out.startswith("not verified: ")
    ran = counted(project)
    assert project.fixloop("check").code == 3
    assert counted(project) > ran


def test_one_failure_is_shown_in_full(tmp_path: Path) -> None:
    project = shop(tmp_path)
    project.fixloop("check")

    told = project.fixloop("check", "--show", "F1")

    assert told.code == 0
    assert told.out.startswith("F1 test_calc.py::adds test_calc.py")
    assert "1 + 2 is not 3" in told.out
    assert "it has F1 to F1" in project.fixloop("check", "--show", "F2").refusal


def test_two_thousand_failures_are_reported_in_four_thousand_characters() -> None:
    numbered = [Failure(name=f"test_{n}", file="test_a.py", message=f"wrong {'x' * n}") for n in range(1000)]
    alike = [(f"F{n}", Failure(name=f"alike_{n}", message="the same")) for n in range(1000)]
    groups = [alike, *([(f"F{n + 1000}", failure)] for n, failure in enumerate(numbered))]

    rows = list(failure_rows(groups))

    assert sum(len(row) + 1 for row in rows) < MOST_CHARACTERS + 100
    assert rows[0] == "F0 alike_0"
    assert " more are not shown" in rows[-1]


def test_the_gates_are_those_of_the_base_unless_it_has_none(tmp_path: Path) -> None:
    project = shop(tmp_path)
    project.git("checkout", "--quiet", "-b", "feature")
    project.write("fixloop.toml", '[specialist.test-runner]\ncommand = "true"\n')

    weakened, own = project.fixloop("check"), project.fixloop("check", "--base", "none")

    assert weakened.code == 1
    assert weakened.out.startswith("1 failure in 1 of 1 checks\n")
    assert "judged by fixloop.toml of main (" in weakened.err
    assert own.code == 0
    assert own.err == ""


def test_without_settings_in_the_base_the_present_ones_apply(tmp_path: Path) -> None:
    project = shop(tmp_path)
    project.git("rm", "--quiet", "--cached", "fixloop.toml")
    project.git("commit", "--quiet", "--amend", "--message=first")
    project.git("checkout", "--quiet", "-b", "feature")

    told = project.fixloop("check")

    assert told.code == 1
    assert told.err == ""


def test_with_fast_only_checks_marked_as_fast_run(tmp_path: Path) -> None:
    project = shop(tmp_path, COUNTED + FAILS + 'speed = "fast"\n')

    told = project.fixloop("check", "--fast", "--base", "none")

    assert told.code == 1
    assert counted(project) == 1
    project.write("fixloop.toml", TOML)
    assert 'speed = "fast"' in project.fixloop("check", "--fast", "--base", "none").refusal


def test_watch_checks_again_when_a_file_changes(tmp_path: Path) -> None:
    project = shop(tmp_path)
    with project.start("check", "--watch") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        project.write("calc.py", RIGHT)
        second = next(line for line in process.stdout if "check" in line)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130

    assert first == "1 failure in 1 of 1 checks; nothing differs from main, so none is new\n"
    assert second == "passed (1 check); 1 fixed; was 1\n"


def test_linters_run_alongside_the_tests_unless_there_is_one_processor(tmp_path: Path) -> None:
    waits = "sh -c 'touch {here}; for i in $(seq 50); do test -e {other} && exit; sleep 0.1; done; exit 1'"
    here, other = str(tmp_path / "here"), str(tmp_path / "other")
    tests, lint = waits.format(here=here, other=other), waits.format(here=other, other=here)
    text = f'[specialist.test-runner]\ncommand = "{tests}"\n[specialist.security]\ncommand = "{lint}"\n'
    project = shop(tmp_path, text)

    at_once = project.fixloop("check", FIXLOOP_AHEAD="1")
    for name in (here, other):
        Path(name).unlink()
    one_by_one = project.fixloop("check", "--again", FIXLOOP_AHEAD="0")

    assert at_once.out == "passed (2 checks)\n"
    assert one_by_one.out.startswith("1 failure in 1 of 2 checks")


def with_mypy(tmp_path: Path, does: str) -> Project:
    """Its linter is called mypy and does this; a scanner of another name lists the visible cache."""
    mypy = tmp_path / "bin/mypy"
    mypy.parent.mkdir()
    mypy.write_text(f"#!/bin/sh\n{does.replace('{log}', f'{tmp_path}/log')}\n")
    mypy.chmod(0o755)
    return shop(
        tmp_path,
        f'[sandbox]\nwritable = ["{tmp_path}"]\n[specialist.code-quality]\ncommand = "{mypy}"\n'
        f"[specialist.security]\ncommand = \"sh -c 'ls -a $MYPY_CACHE_DIR > {tmp_path}/others; true'\"\n",
    )


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_only_mypy_gets_the_cache_of_its_last_check(tmp_path: Path, sandbox: str) -> None:
    project = with_mypy(tmp_path, 'cd "$MYPY_CACHE_DIR" && ls >> {log}; touch seen')

    for _ in range(2):
        assert project.fixloop("check", "--again", FIXLOOP_SANDBOX=sandbox).code == 0

    assert (tmp_path / "log").read_text() == "seen\n"
    assert "seen" not in (tmp_path / "others").read_text()


@pytest.mark.parametrize("checked", [True, False])
def test_a_run_s_mypy_reads_only_caches_older_than_the_run(tmp_path: Path, checked: bool) -> None:
    wrong = "$(grep -c a.-.b calc.py)"
    look = f"mkdir -p $MYPY_CACHE_DIR; echo {wrong} $(ls $MYPY_CACHE_DIR) >> {{log}}"
    project = with_mypy(tmp_path, f"{look}; touch $MYPY_CACHE_DIR/wrong-{wrong}; ! grep - calc.py")
    if checked:
        project.fixloop("check")
        (tmp_path / "log").unlink()

    ended = project.fixloop("run", "--fixer", MEND, FIXLOOP_STATE_URL="")

    assert ended.code == 0, ended.out + ended.err
    of_run = (tmp_path / "log").read_text().splitlines()
    assert of_run[0] == ("1 wrong-1" if checked else "1")
    assert ("0 wrong-1" in of_run) == checked
    assert [path.name for path in project.home.glob("cache/fixloop/mypy/*/*")] == ["wrong-1"]


def test_files_with_different_contents_have_different_dates_for_mypy(tmp_path: Path) -> None:
    """For mypy a file of the same size and second is the same file: it took the feature's errors for the base's."""
    project = with_mypy(tmp_path, "stat -c %Y calc.py >> {log}; ! grep -q + calc.py")

    for calc in (CALC, RIGHT, CALC):
        project.write("calc.py", calc)
        project.fixloop("check", "--again")

    first, second, of_base, third = (tmp_path / "log").read_text().split()
    assert first == third == of_base
    assert second != of_base


def test_check_and_run_both_name_a_configured_tool_that_is_not_installed(tmp_path: Path) -> None:
    files = {"pyproject.toml": "[tool.black]\n", "test_calc.py": "def test_it():\n    assert True\n"}
    project = Project(tmp_path / "shop", toml="", files=files, variables=NOWHERE)

    told, dry = project.fixloop("check"), project.fixloop("run", "--dry")

    assert told.code == dry.code == 0, told.out + told.err
    assert "passed (1 check); not verified here: black" in told.out
    assert "passed (1 check); not verified here: black" in dry.out
