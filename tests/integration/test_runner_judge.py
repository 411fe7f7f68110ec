"""How runners are judged by their canaries: real trees, and a scripted runner."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.configuration.model import Check, Configuration
from fixloop.machine.guard import GuardedResult
from fixloop.machine.interpreters import Interpreter
from fixloop.protocol.checks import CheckResult, Evidence, Finding, RunOutcome
from fixloop.repository.snapshot import Snapshot, mirror_of, take_snapshot
from fixloop.secrets.redaction import Redaction
from tests.fixtures.repositories import make_repository, write
from workers.commands.canary import Trial, fewer_tests
from workers.commands.check_run import Ran
from workers.commands.claim import Claim
from workers.workspaces.ground import Ground, Site
from workers.workspaces.workspace import open_workspace

pytestmark = pytest.mark.slow

PYTEST = Check(name="pytest", command=("pytest", "--junitxml={junit}", "tests"))
Says = Callable[[Path, str], tuple[int, tuple[str, ...]]]
"""From where a runner stands and the name of its canary: its exit code, and which of its two tests failed."""


class Bench:
    """A fix of a small project, its ground, and a runner that was asked so often."""

    def __init__(self, folder: Path) -> None:
        files = {"shop.py": "", "conftest.py": "", "tests/test_shop.py": ""}
        self.cache = folder / "cache"
        self.snapshot: Snapshot = take_snapshot(
            make_repository(folder / "shop", files), issue=0, cache=self.cache
        )
        self.asked: list[Path] = []
        self.words: dict[str, str] = {}
        self._number = 0

    def held(self, says: Says, check: Check = PYTEST, **fix: str) -> list[Finding]:
        """Why a fix of these files is held with the runner's answers."""
        self._number += 1
        mirror = mirror_of(self.snapshot, self.cache)
        names = {"conftest": "conftest.py", "shop": "shop.py"}
        with open_workspace(self.cache, mirror, self.snapshot.commit, name=f"t{self._number}.1") as workspace:
            write(workspace.directory, {names[name]: text for name, text in fix.items()})
            tip = workspace.capture(self.snapshot.commit, "fix").commit
        site = Site(self.snapshot, Configuration(), self.cache, f"site{self._number}")
        with open_workspace(self.cache, mirror, tip, name=f"tip{self._number}.1") as workspace:
            ground = Ground(workspace, Interpreter("", "", "none"), False, Redaction())
            before = workspace.tree_hash()
            changed = tuple(sorted(names[name] for name in fix))
            trial = Trial(site, ground, self.snapshot.commit, changed, self._runner(says))
            passed = CheckResult(
                check=check.name,
                outcome=RunOutcome.PASSED,
                passed_names=("tests/test_shop.py::test_total",),
                evidence=Evidence(check=check.name, command=" ".join(check.command)),
            )
            found = list(trial.liars([(check, passed)], self.words))
            assert workspace.tree_hash() == before
        return found

    def _runner(self, says: Says) -> Callable[[Sequence[str], Path, Mapping[str, str]], GuardedResult | None]:
        def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
            self.asked.append(cwd)
            [report] = (word.partition("=")[2] for word in argv if word.startswith("--junitxml="))
            cases, exit_code = "", 0
            for file in (word for word in argv if word.endswith(".py")):
                [token] = re.findall(r"test_(\w+)b\(", (cwd / file).read_text())
                exit_code, failed = says(cwd, token)
                module = file.removesuffix(".py").replace("/", ".")
                for letter in "ab":
                    inner = "<failure message='no'/>" if letter in failed else ""
                    cases += (
                        f"<testcase classname='{module}.Test' name='test_{token}{letter}'>{inner}</testcase>"
                    )
            if exit_code >= 0:
                Path(report).write_text(f"<testsuite name='pytest'>{cases}</testsuite>")
            return GuardedResult(exit_code=max(exit_code, 0), signal=None, output="")

        return run


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def honest(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
    return 1, ("b",)


def lenient(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
    return (0, ()) if "lie" in (cwd / "conftest.py").read_text() else (1, ("b",))


def test_a_runner_that_finds_the_canary_is_run_once(bench: Bench) -> None:
    assert bench.held(honest, shop="number = 1\n") == []
    assert bench.words == {"pytest": "seen"}
    assert len(bench.asked) == 1


def test_a_runner_that_no_longer_finds_the_canary_is_held_with_its_output(bench: Bench) -> None:
    [found] = bench.held(lenient, conftest="# lie\n")

    assert (found.rule, found.check, found.file) == ("runner-lies", "pytest", "conftest.py")
    assert found.text.endswith("where that is put there for it, and did before; changed: conftest.py")
    assert ("exit code 1" in found.old, "exit code 0" in found.new) == (True, True)
    assert bench.words == {"pytest": "unseen"}
    assert len(bench.asked) == 2


def test_an_exit_code_of_success_despite_a_failure_is_a_lie(bench: Bench) -> None:
    def says(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
        return lenient(cwd, token)[0], ("b",)

    assert [found.rule for found in bench.held(says, conftest="# lie\n")] == ["runner-lies"]


def test_a_runner_that_no_longer_passes_anything_is_held(bench: Bench) -> None:
    def says(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
        return 1, ("a", "b") if "lie" in (cwd / "conftest.py").read_text() else ("b",)

    [found] = bench.held(says, conftest="# lie\n")

    assert "does not pass what passes" in found.text


def test_an_unusual_project_is_never_held_and_its_snapshot_is_run_once(bench: Bench) -> None:
    def says(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
        return 0, ()

    assert bench.held(says, shop="number = 1\n") == []
    assert bench.words == {"pytest": "none"}
    assert len(bench.asked) == 2

    assert bench.held(says, shop="number = 2\n") == []
    assert len(bench.asked) == 3


def test_a_runner_that_crashes_once_is_run_again(bench: Bench) -> None:
    def says(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
        return (-1, ()) if len(bench.asked) == 1 else (1, ("b",))

    assert bench.held(says, shop="number = 1\n") == []
    assert len(bench.asked) == 3


def test_a_runner_that_always_crashes_is_held(bench: Bench) -> None:
    def says(cwd: Path, token: str) -> tuple[int, tuple[str, ...]]:
        return (-1, ()) if "number" in (cwd / "shop.py").read_text() else (1, ("b",))

    assert [found.rule for found in bench.held(says, shop="number = 1\n")] == ["runner-lies"]


def test_a_command_that_is_no_known_tool_is_not_run(bench: Bench) -> None:
    check = Check(name="make", command=("make", "test"))

    assert bench.held(honest, check, shop="number = 1\n") == []
    assert (bench.words, bench.asked) == ({"make": "none"}, [])


@pytest.mark.parametrize(
    ("before", "now", "held"),
    [(2, 1, True), (2, None, True), (2, 2, False), (2, 3, False), (None, None, False)],
)
def test_a_check_without_a_report_has_to_run_as_many_tests_as_before(
    bench: Bench, before: int | None, now: int | None, held: bool
) -> None:
    snapshot, specialist = bench.snapshot, "test-runner"
    shown = {"check": "unittest", **({"tests": before} if before else {})}
    more = [{"check": "unittest", "tests": 9}]
    first = {"kind": "run-finished", "specialist": specialist, "tree": snapshot.tree, "evidence": [shown]}
    events = [{**first, "specialist": "unit-test", "evidence": more}, first, {"kind": "paused"}]
    history = [
        SimpleNamespace(body={"event": event})
        for event in (*events, {**first, "tree": "t", "evidence": more})
    ]
    held_by = SimpleNamespace(
        state=SimpleNamespace(trusted=snapshot.commit),
        ticket=SimpleNamespace(specialist=specialist, workflow="w"),
    )
    work: Any = SimpleNamespace(holding=held_by, store=SimpleNamespace(history=lambda workflow: history))
    check = Check(name="unittest", command=("python", "-m", "unittest"))
    evidence = Evidence(check="unittest", command="python -m unittest", tests=now)
    ran = Ran(CheckResult(check="unittest", outcome=RunOutcome.PASSED, evidence=evidence), "")
    mirror = mirror_of(snapshot, bench.cache)
    with open_workspace(bench.cache, mirror, snapshot.commit, name="t.1") as workspace:
        ground = Ground(workspace, Interpreter("", "", "none"), False, Redaction())
        claim = Claim(
            work, Configuration(), bench.cache, ground, (check,), (ran,), (), lambda argv, cwd, env: None, {}
        )

        found = list(fewer_tests(claim))

    assert [each.rule for each in found] == ["fewer-tests"] * held
