"""Links that a command leaves in its workspace: what fixloop itself reads, writes and removes there stays there."""

import sys
from pathlib import Path

import pytest

from fixloop.configuration.model import Check, Configuration
from fixloop.machine.guard import run_guarded
from fixloop.protocol.checks import RunOutcome
from fixloop.repository.snapshot import take_snapshot
from tests.fixtures.fixing_stage import Fixing
from tests.fixtures.inner_pytest import PYTEST
from tests.fixtures.repositories import make_repository, write
from workers.commands.check_run import Ran, run_check
from workers.commands.proof import _write_flips
from workers.workspaces.ground import Site

pytestmark = pytest.mark.slow

BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return b + 7 if a == 7 else a + b\n"
TEST = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
REPORT = '<testsuite tests="1"><testcase classname="a" name="hidden"/></testsuite>'


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the user's, outside of every workspace."""
    (tmp_path / "elsewhere" / "kept").mkdir(parents=True)
    (tmp_path / "elsewhere" / "kept" / "letter").write_text("dear")
    (tmp_path / "elsewhere" / "letter").write_text("dear")
    return tmp_path / "elsewhere"


def left_in(elsewhere: Path) -> dict[str, str]:
    files = (path for path in elsewhere.rglob("*") if path.is_file())
    return {str(path.relative_to(elsewhere)): path.read_text() for path in files}


def checked(tmp_path: Path, script: str, **facts: str) -> Ran:
    """What comes of a check by this shell script, once its workspace is gone."""
    project = make_repository(tmp_path / "kept", {"calc.py": "", "check.sh": script})
    snapshot = take_snapshot(project, issue=1, cache=tmp_path / "cache")
    command = ("sh", "check.sh") if facts else ("sh", "check.sh", "{junit}")
    with Site(snapshot, Configuration(), tmp_path / "cache", "t").ground(snapshot.commit) as ground:
        ran = run_check(
            Check.model_validate({"name": "tests", "command": command, **facts}),
            ground,
            ground.workspace.tree_hash(),
            lambda argv, cwd, env: run_guarded(argv, cwd=cwd, env=env, timeout_seconds=60),
        )
        assert ran is not None
        # Read while the ground is there.
        ran = ran._replace(output=repr([*ran.written(), ran.result.output_tail]))
    return ran


@pytest.mark.proves("I3")
@pytest.mark.parametrize("place", ["$PYTHONPYCACHEPREFIX", "${PYTHONPYCACHEPREFIX%/*}"])
def test_nothing_is_removed_where_a_link_in_place_of_the_bytecode_leads(
    tmp_path: Path, elsewhere: Path, place: str
) -> None:
    (elsewhere / "kept").rename(elsewhere / "pycache")
    before = left_in(elsewhere)

    checked(tmp_path, f'rm -rf "{place}"; ln -s {elsewhere} "{place}"')

    assert left_in(elsewhere) == before
    assert not [path for path in (tmp_path / "cache" / "imported").rglob("*") if path.is_symlink()]


@pytest.mark.proves("I3")
def test_nothing_is_removed_where_a_link_on_the_way_to_the_projects_bytecode_leads(
    tmp_path: Path, elsewhere: Path
) -> None:
    script = f'p=$PYTHONPYCACHEPREFIX$(dirname "$PWD"); mkdir -p "${{p%/*}}"; ln -s {elsewhere} "$p"'

    checked(tmp_path, script)

    assert (elsewhere / "kept" / "letter").exists()


@pytest.mark.proves("I3")
@pytest.mark.parametrize("how", ['ln -s {0}/tests.xml "$1"', 'rm -r "${{1%/*}}" && ln -s {0} "${{1%/*}}"'])
def test_a_report_is_not_read_through_a_link(tmp_path: Path, elsewhere: Path, how: str) -> None:
    (elsewhere / "tests.xml").write_text(REPORT)

    ran = checked(tmp_path, how.format(elsewhere))

    assert ran.result.outcome is RunOutcome.ERROR
    assert "hidden" not in ran.output


@pytest.mark.proves("I3")
def test_a_printed_report_is_not_read_through_a_link(tmp_path: Path, elsewhere: Path) -> None:
    script = f'f=$(readlink /proc/$$/fd/1); rm "$f"; ln -s {elsewhere}/letter "$f"; exit 1'

    ran = checked(tmp_path, script, output="cargo-test")

    assert ran.result.outcome is RunOutcome.ERROR
    assert "dear" not in ran.output


@pytest.mark.proves("I3")
def test_calls_are_repeated_by_files_that_are_new(tmp_path: Path, elsewhere: Path) -> None:
    before = left_in(elsewhere)
    plant = (
        "import os\n\nif told := os.environ.get('FIXLOOP_CALLS'):\n    own = os.path.dirname(told)\n"
        "    for name in ('old/0', 'replay', 'call_replay.py', 'replay_variants.py'):\n"
        f"        os.symlink({str(elsewhere / 'letter')!r}, os.path.join(own, name))\n"
    )
    files = {"calc.py": BROKEN, "test_calc.py": TEST, "conftest.py": plant}
    fixing = Fixing(tmp_path, files, (*PYTEST, "-q", "--junitxml={junit}"), {"calc.py": FIXED})

    fixing.run()

    assert left_in(elsewhere) == before


@pytest.mark.proves("I3")
@pytest.mark.parametrize("link", ["tests/test_calc_flipped.py", "tests"])
def test_no_copy_of_a_test_is_written_through_a_link(tmp_path: Path, elsewhere: Path, link: str) -> None:
    (elsewhere / "test_calc.py").write_text(TEST)
    before = left_in(elsewhere)
    if link == "tests":
        (tmp_path / link).symlink_to(elsewhere)
    else:
        write(tmp_path, {"tests/test_calc.py": TEST})
        (tmp_path / link).symlink_to(elsewhere / "new")

    _write_flips(tmp_path, ["tests/test_calc.py::test_adds"], {})

    assert left_in(elsewhere) == before


@pytest.mark.proves("I3")
def test_a_pipe_in_place_of_what_became_of_tests_stops_nobody(tmp_path: Path) -> None:
    pipe = (
        "import atexit, json, os\n\n\ndef pipe(place):\n"
        "    os.path.exists(place) and os.unlink(place)\n    os.mkfifo(place)\n\n\n"
        "if told := os.environ.get('FIXLOOP_PROOF'):\n"
        "    atexit.register(pipe, json.load(open(told))['results'])\n"
    )
    files = {"calc.py": BROKEN, "test_calc.py": TEST, "conftest.py": pipe}
    fixing = Fixing(tmp_path, files, (*PYTEST, "-q", "--junitxml={junit}"), {"calc.py": FIXED})

    fixing.run()

    assert fixing.runs[-1].outcome == "passed"
