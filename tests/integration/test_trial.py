"""Checks without a workflow: the same workspaces and judging as a worker's, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from fixloop.configuration.model import Check, Configuration, SpecialistChecks
from fixloop.configuration.settings import LimitSettings, WorkspaceSettings
from fixloop.errors import InfrastructureError, UsageError
from fixloop.intake.trial import Asked, Tried, try_checks
from fixloop.machine.attached import taken
from fixloop.protocol.checks import RunOutcome
from fixloop.repository.snapshot import Snapshot, take_snapshot
from fixloop.testing.processes import comes
from tests.fixtures.configuration_project import executable
from tests.fixtures.patience import slack
from tests.fixtures.processes import running
from tests.fixtures.repositories import git, make_repository, write

pytestmark = pytest.mark.slow


def checks(**specialists: tuple[tuple[str, ...], ...]) -> tuple[SpecialistChecks, ...]:
    return tuple(
        SpecialistChecks(
            name=name.replace("_", "-"),
            checks=tuple(Check(name=command[-1][:9], command=command) for command in commands),
        )
        for name, commands in specialists.items()
    )


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def endless(pid: Path) -> Configuration:
    """One check that never ends, once it has written its process id."""
    return Configuration(specialists=checks(security=(shell(f"echo $$ > {pid}; sleep 600; true"),)))


def wait_for(*pids: Path) -> None:
    assert comes(lambda: all(pid.exists() and pid.read_text() for pid in pids))


class Site:
    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.repository = make_repository(folder / "shop", {"price": "right\n"})

    def snapshot(self) -> Snapshot:
        return take_snapshot(self.repository, issue=0, cache=self.cache)

    def asked(self, configuration: Configuration, other: Configuration | None = None) -> Asked:
        return Asked(snapshot=self.snapshot(), configuration=configuration, other=other, cache=self.cache)

    def tried(self, configuration: Configuration, other: Configuration | None = None) -> list[Tried]:
        return list(try_checks(self.asked(configuration, other)))

    def workspaces(self) -> list[Path]:
        return list((self.cache / "work").glob("*"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_every_check_of_every_specialist_runs_once_though_one_of_them_fails(site: Site) -> None:
    specialists = checks(
        test_runner=(shell("echo calc.py:2: wrong; exit 1"), shell("exit 0")), security=(shell("cat price"),)
    )

    found = site.tried(Configuration(specialists=specialists))

    assert [(each.specialist, each.result.outcome) for each in found] == [
        ("test-runner", RunOutcome.FAILED),
        ("test-runner", RunOutcome.PASSED),
        ("security", RunOutcome.PASSED),
    ]
    assert {each.result.evidence.tree for each in found} == {site.snapshot().tree}


def test_a_check_of_another_language_names_no_interpreter(site: Site) -> None:
    executable(site.repository / "node_modules" / ".bin" / "lint")
    command = ("node_modules/.bin/lint", "price")

    found = site.tried(Configuration(specialists=checks(code_quality=(command, shell("true")))))

    assert {each.result.outcome for each in found} == {RunOutcome.PASSED}
    foreign, own = (each.result.evidence.interpreter for each in found)
    assert foreign == ""
    assert Path(own).name.startswith("python")


def test_the_command_to_run_again_is_run_by_the_interpreter_of_the_check(site: Site) -> None:
    write(site.repository, {".venv/pyvenv.cfg": "", ".venv/bin/python": "#!/bin/sh\necho own; exit 1\n"})
    (site.repository / ".venv/bin/python").chmod(0o755)
    tests = ("python", "-m", "pytest", "--junitxml={junit}")
    [found] = site.tried(Configuration(specialists=checks(test_runner=(tests,))))

    again = found.result.evidence.reproduce
    done = subprocess.run(again, shell=True, capture_output=True, check=False)

    assert again.endswith("/.venv/bin/python -m pytest")
    assert (done.returncode, done.stdout) == (1, b"own\n")


def test_a_trial_leaves_neither_a_ref_nor_a_workspace(site: Site) -> None:
    before = git(site.repository, "for-each-ref")

    site.tried(Configuration(specialists=checks(security=(shell("echo more >> price.new"),))))

    assert git(site.repository, "for-each-ref") == before
    assert site.workspaces() == []
    assert not (site.repository / "price.new").exists()


def test_a_check_runs_at_the_same_path_each_time_because_compilers_cache_by_path(site: Site) -> None:
    expected = site.cache / "work" / "check.security" / "tree" / "shop"
    specialists = checks(security=(shell(f'test "$(pwd)" = {expected}'),))

    found = [*site.tried(Configuration(specialists=specialists))]
    write(site.repository, {"price": "other\n"})
    found += site.tried(Configuration(specialists=specialists))

    assert [each.result.outcome for each in found] == [RunOutcome.PASSED] * 2


def test_a_workspace_that_cannot_be_prepared_is_reported_once(site: Site) -> None:
    broken = WorkspaceSettings(setup=shell("echo no such package; exit 3"))
    specialists = checks(test_runner=(shell("true"), shell("true")), security=(shell("true"),))

    [only] = site.tried(Configuration(specialists=specialists, workspace=broken))

    assert (only.result.check, only.result.outcome) == ("workspace", RunOutcome.ERROR)
    assert "no such package" in only.result.reason


def test_all_checks_of_a_specialist_share_its_limit(site: Site) -> None:
    limits = LimitSettings(validation_minutes=0.5 / 60)
    specialists = checks(test_runner=(shell("sleep 60"), shell("sleep 60")))

    started = time.monotonic()
    found = site.tried(Configuration(specialists=specialists, limits=limits))

    assert ["time limit" in each.result.reason for each in found] == [True, True]
    assert time.monotonic() - started < slack(30)


def test_a_snapshot_that_is_gone_is_refused_in_one_sentence(site: Site) -> None:
    lost = site.snapshot().model_copy(update={"commit": "1" * 40})

    with pytest.raises((UsageError, InfrastructureError), match="failed to unpack"):
        list(
            try_checks(
                Asked(
                    snapshot=lost,
                    configuration=Configuration(specialists=checks(security=(shell("true"),))),
                    cache=site.cache,
                )
            )
        )


def test_a_reader_that_stops_ends_the_check_that_runs(site: Site, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    specialists = checks(security=(shell("true"), shell(f"echo $$ > {pid}; sleep 600; true")))
    results = try_checks(
        site.asked(Configuration(specialists=specialists), other=endless(also := tmp_path / "also"))
    )

    next(results)
    wait_for(pid, also)
    results.close()  # type: ignore[attr-defined]

    assert running(pid) + running(also) == []
    assert site.workspaces() == []


MANY = """
import sys
cases = "".join(f"<testcase classname='tests.test_{n}' name='test_{'a' * 200}_{n}'/>" for n in range(5000))
open(sys.argv[1], "w").write(f"<testsuite>{cases}</testsuite>")
"""


def test_a_parallel_trial_returns_long_results_whole_and_at_once(site: Site) -> None:
    many = (sys.executable, "-c", MANY, "{junit}")
    first = Configuration(specialists=checks(test_runner=(many,) * 6))
    other = Configuration(specialists=checks(security=(many,) * 6))

    found = site.tried(first, other)

    assert Counter(each.specialist for each in found) == {"test-runner": 6, "security": 6}
    assert [each.specialist for each in found] != ["test-runner"] * 6 + ["security"] * 6
    assert {len(each.result.passed_names) for each in found} == {5000}


def test_a_parallel_trial_that_cannot_run_is_reported(site: Site) -> None:
    first = Configuration(specialists=checks(test_runner=(shell("sleep 600"),)))
    lost = Configuration(
        specialists=checks(security=(shell("true"),)), workspace=WorkspaceSettings(setup=("false",))
    )

    results = try_checks(site.asked(first, lost))

    assert next(results).result.check == "workspace"
    results.close()  # type: ignore[attr-defined]
    assert site.workspaces() == []


def test_a_process_started_early_ends_if_it_is_not_needed() -> None:
    with taken("try").ending() as process:
        assert process.poll() is None

    assert process.returncode is not None


PARENT = """
import sys
from pathlib import Path
from fixloop.intake.trial import Asked, try_checks
asked = Asked.model_validate_json(sys.stdin.read())
list(try_checks(asked))
"""


def test_a_killed_caller_leaves_no_process_and_the_next_one_its_workspace(site: Site, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    asked = site.asked(endless(pid), other=endless(also := tmp_path / "also"))
    caller = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE)
    assert caller.stdin is not None
    with caller.stdin as written:
        written.write(asked.model_dump_json(by_alias=True).encode())
    wait_for(pid, also)

    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()

    assert comes(lambda: running(pid) + running(also) == [], slack(30))
    site.tried(Configuration(specialists=checks(security=(shell("true"),))))
    assert site.workspaces() == []
