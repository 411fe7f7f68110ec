"""A fix that changed what judges it is held if it passes only so, in a whole run with a real test runner."""

from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.inner_pytest import UNUSED
from tests.fixtures.project import CALC, RIGHT, Host, Project, Told

pytestmark = pytest.mark.slow

TESTS: Final = """\
import pathlib
import calc


def test_adds():
    assert calc.add(1, 2) == 3


def test_knows_zero():
    assert calc.add(0, 0) == 0


def test_golden():
    assert f"{calc.add(2, 2)}" == pathlib.Path("golden/sum.txt").read_text()
"""
FILES: Final = {"test_calc.py": TESTS, "golden/sum.txt": "4", "Makefile": "check:\n\tpython -m pytest -q\n"}
JUNIT: Final = f"python -m pytest {' '.join(UNUSED)} -q --junitxml={{junit}}"
HELD: Final = "with the tests, gates and runner files of the snapshot, "
EDIT: Final = """\
import pathlib, sys
sys.stdin.read()
def edit(name, old, new):
    path = pathlib.Path(name)
    path.write_text(path.read_text().replace(old, new))
def write(name, text):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
"""
HOOK: Final = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    found = yield
    found.get_result().outcome = "passed"
"""


def project(
    host: Host, name: str, fixer: str, *, check: str = JUNIT, further: str = "", calc: str = CALC
) -> Project:
    """One whose agent runs `fixer`, which may use `edit` and `write`."""
    toml = f'{further}[fixer]\ncommand = "python agent.py"\n[specialist.test-runner]\ncommand = "{check}"\n'
    return host.project(name, toml=toml, calc=calc, files={**FILES, "agent.py": EDIT + fixer})


def escalation(project: Project) -> str:
    """The text for a person, as Markdown."""
    return project.fixloop("log", "1", "--format", "markdown").out.partition("## Escalation: ")[2]


def told_held(told: Told, project: Project, *files: str) -> None:
    assert told.code == 3, told.out
    report = escalation(project)
    assert ": apart\n" in report, report
    assert HELD in report
    assert all(f"- **File**: {file}" in report for file in files)


@pytest.mark.proves("I2")
def test_a_pass_that_depends_on_the_fix_s_own_judges_is_held(host: Host) -> None:
    cheated = project(host, "apart-hook", f"write('conftest.py', {HOOK!r})")

    told_held(cheated.submit(), cheated, "conftest.py")


@pytest.mark.proves("I2")
def test_a_hold_shows_the_lines_before_and_after(host: Host) -> None:
    cheated = project(
        host, "apart-lines", "edit('test_calc.py', '== 3', '!= 3'); write('golden/sum.txt', '0')"
    )

    told_held(cheated.submit(), cheated, "test_calc.py", "golden/sum.txt")

    report = escalation(cheated)
    assert "    assert calc.add(1, 2) == 3\n" in report
    assert "    assert calc.add(1, 2) != 3\n" in report
    assert "- **Line**: 6" in report


@pytest.mark.proves("I2")
def test_new_tests_in_a_fix_count(host: Host) -> None:
    more = "write('test_more.py', 'import calc\\ndef test_more(): assert calc.add(5, 5) == 10\\n')"
    honest = project(host, "apart-more", f"edit('calc.py', '-', '+'); {more}")

    told = honest.submit()

    assert told.code == 0, told.out
    assert "fixes touched tests or gates: test_more.py" in told.out


MOVED: Final = (
    "edit('calc.py', 'add', 'plus'); edit('calc.py', '-', '+'); edit('test_calc.py', 'add(', 'plus(')"
)


def test_a_renamed_function_is_held_and_allowed_by_one_line_of_configuration(host: Host) -> None:
    held = project(host, "apart-renamed", MOVED)
    allowed = project(host, "apart-allowed", MOVED, further="integrity.tests_may_change = ['test_*.py']\n")

    told_held(held.submit(), held, "test_calc.py")
    assert allowed.submit().code == 0


def test_accepted_changes_judge_from_then_on(host: Host) -> None:
    held = project(host, "apart-accepted", MOVED)
    told_held(held.submit(), held, "test_calc.py")

    assert held.fixloop("decide", "1", "accept", "--reason", "it is called plus now").code == 0

    assert held.fixloop("watch", "1").code == 0


COVERED: Final = (
    "[fixer]\ncommand = 'python agent.py'\n[specialist.test-runner]\ncoverage_percent = 90\n"
    "command = 'python -m pytest -q --cov=calc --cov-report=json:{coverage} --junitxml={junit}'\n"
)
TWICE: Final = RIGHT + "\n\ndef twice(a):\n    a = a + a\n    a = a + 0\n    return a\n"
TEST_TWICE: Final = "\\nimport calc\\ndef test_twice(): assert calc.twice(2) == 4\\n"


@pytest.mark.parametrize(
    ("name", "fixer", "is_held"),
    [
        ("new", f"write('test_twice.py', '{TEST_TWICE}')", False),
        ("omitted", "write('.coveragerc', '[report]\\nexclude_lines =\\n    a = a\\n    return a\\n')", True),
    ],
)
def test_tests_added_for_a_coverage_gate_are_held_only_if_the_gate_changed_too(
    host: Host, name: str, fixer: str, is_held: bool
) -> None:
    files = {**FILES, "agent.py": EDIT + fixer}
    covered = host.project(f"apart-{name}", toml=COVERED, calc=TWICE, files=files)

    told = covered.submit()

    if is_held:
        told_held(told, covered, ".coveragerc")
    else:
        assert told.code == 0, told.out


WAITS: Final = """
import os, pathlib, re, sys, time
folder = pathlib.Path({folder!r})
if {when} and not (folder / "go").exists():
    (folder / "pid").write_text(str(os.getpid()))
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "when", ["re.search(r'test_c[0-9a-f]{8}', ' '.join(sys.argv))", "'fixloop_proof' in sys.modules"]
)
def test_a_death_while_a_canary_or_new_tests_run_changes_nothing(when: str, tmp_path: Path) -> None:
    more = "write('test_more.py', 'import calc\\ndef test_more(): assert calc.add(5, 5) == 10\\n')"
    files = {**FILES, "agent.py": f"{EDIT}edit('calc.py', '-', '+'); {more}"}
    files["conftest.py"] = WAITS.format(folder=str(tmp_path), when=when)
    toml = f'[fixer]\ncommand = "python agent.py"\n[specialist.test-runner]\ncommand = "{JUNIT}"\n'
    shop = Project(tmp_path / "shop", toml=toml, files=files)

    told = shop.killed_and_resumed(tmp_path)

    assert told.code == 0, told.out
    assert shop.fixloop("audit", "verify", "1").code == 0
    report = shop.fixloop("report", "1", "--format", "markdown").out
    assert "1 new or changed test, 1 of which failed before the fix" in report


def test_a_death_while_the_fix_is_judged_apart_changes_nothing(tmp_path: Path) -> None:
    # What the fix added judges, too, so it is not there while the fix is judged apart.
    pid, go = tmp_path / "pid", tmp_path / "go"
    apart = f"if test -e fixed -a ! -e test_new; then echo $$ > {pid}; test -e {go} || sleep 60; fi"
    check = f'["sh", "-c", "{apart}; exec python check.py $0", "{{junit}}"]'
    fixer = "sh -c 'sed -i s/==.3/!=3/ test_calc.py; touch fixed test_new'"
    toml = f'[fixer]\ncommand = "{fixer}"\n[specialist.test-runner]\ncommand = {check}\n'
    shop = Project(tmp_path / "shop", toml=toml)

    told = shop.killed_and_resumed(tmp_path)

    told_held(told, shop, "test_calc.py")
    assert shop.fixloop("audit", "verify", "1").code == 0
