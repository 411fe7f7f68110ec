"""Findings when a fix is judged with files it could not choose: real trees and checks without a workflow."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from fixloop.protocol.checks import Finding
from tests.fixtures.bench import Bench
from workers.commands.apart import apart

pytestmark = pytest.mark.slow

CHECK: Final = ("sh", "check.sh")
SUM: Final = "case $(cat tests/cases.csv) in $(cat sum)) ;; *) echo sum:1: wrong; exit 1 ;; esac\n"
FILES: Final = {
    "sum": "4",
    "tests/cases.csv": "5",
    "check.sh": "sh tests/run.sh\n",
    "tests/run.sh": SUM,
    "ignore.cfg": "",
}


class Seen(NamedTuple):
    """The result of a claim."""

    findings: tuple[Finding, ...]
    runs: int
    """Of checks, those that the claim rests on not counted."""

    @property
    def files(self) -> list[str]:
        return [found.file for found in self.findings]


class ApartBench(Bench):
    def seen(self, fix: Mapping[str, str], *commands: Sequence[str], **settings: Any) -> Seen:
        """What `apart` finds after a fix."""
        with self.claim(fix, *(commands or [CHECK]), **settings) as claim:
            found = tuple(apart(claim))
            return Seen(found, len(self.runs) - len(claim.checks))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ApartBench:
    # A shim on the PATH takes longer to be looked for than all of this.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return ApartBench(tmp_path, FILES)


@pytest.mark.proves("I2")
def test_if_only_product_files_changed_nothing_runs_or_is_found(bench: ApartBench) -> None:
    assert bench.seen({"sum": "5", "new": "x"}) == ((), 0)


@pytest.mark.proves("I2")
@pytest.mark.parametrize(
    ("fix", "file"),
    [
        ({"tests/cases.csv": "4"}, "tests/cases.csv"),
        ({"tests/run.sh": "true\n"}, "tests/run.sh"),
        ({"tests/run.sh": "", "check.sh": "test -d tests\n"}, "check.sh"),
        ({"check.sh": "true\n"}, "check.sh"),
    ],
)
def test_a_pass_that_needs_the_fix_s_own_judges_is_found_with_both_sides(
    bench: ApartBench, fix: dict[str, str], file: str
) -> None:
    seen = bench.seen(fix)

    [found] = [each for each in seen.findings if each.file == file]
    assert (found.rule, found.check, found.line) == ("apart", "check-0", 1)
    assert (
        found.text == "with the tests, gates and runner files of the snapshot, `check-0` fails: sum:1: wrong"
    )
    assert (found.old, found.new) == (FILES[file].strip(), fix[file].strip())
    assert (len(seen.findings), seen.runs) == (len(fix), 1)


def test_a_removed_judging_file_is_restored_and_shown_in_full(bench: ApartBench) -> None:
    seen = bench.seen({"tests/run.sh": "", "tests/other.sh": "true\n", "check.sh": "sh tests/other.sh\n"})

    assert [(each.file, each.old, each.new) for each in seen.findings] == [
        ("check.sh", "sh tests/run.sh", "sh tests/other.sh"),
        ("tests/run.sh", SUM, ""),
        ("tests/other.sh", "", "true\n"),
    ]


@pytest.mark.proves("I2")
def test_an_honest_fix_with_new_tests_and_better_ones_passes_with_both(bench: ApartBench) -> None:
    better = {"sum": "5", "tests/more.csv": "6", "tests/run.sh": SUM + "test -s tests/more.csv\n"}

    assert bench.seen(better) == ((), 1)


def test_files_that_a_project_lets_a_fix_change_judge_as_changed(bench: ApartBench) -> None:
    fix = {"sum": "6", "tests/cases.csv": "6"}

    assert bench.seen(fix).files == ["tests/cases.csv"]
    assert bench.seen({"new": "x"}, tests_may_change=("tests/*.csv",)) == ((), 0)


@pytest.mark.proves("I1")
def test_a_project_adds_and_removes_judging_files(bench: ApartBench) -> None:
    script = ("sh", "-c", "grep -q wrong ignore.cfg || sh tests/run.sh")

    assert bench.seen({"ignore.cfg": "wrong"}, script) == ((), 0)
    assert bench.seen({"new": "x"}, script, gate=("ignore.*",)).files == ["ignore.cfg"]
    assert bench.seen({"new": "y"}, script, gate=("ignore.*",), off=("apart",)) == ((), 0)
    assert bench.seen({"tests/cases.csv": "4"}, product=("tests/*.csv",)) == ((), 0)


def test_the_first_check_that_fails_is_named_and_no_other_runs(bench: ApartBench) -> None:
    seen = bench.seen({"tests/cases.csv": "4"}, ("true",), CHECK, ("test", "-e", "sum"))

    assert [each.check for each in seen.findings] == ["check-1"]
    assert seen.runs == 2


def test_a_check_that_cannot_run_with_the_earlier_judges_is_reported(bench: ApartBench) -> None:
    seen = bench.seen({"tests/tool.sh": "#!/bin/sh\n"}, ("sh", "-c", "test -e tests/tool.sh || exit 127"))

    assert "`check-0` fails: " in seen.findings[0].text
    assert seen.files == ["tests/tool.sh"]


def test_a_linter_checks_tests_like_other_code(bench: ApartBench) -> None:
    lint = ("sh", "-c", "! grep -Hn 5 tests/cases.csv")

    assert bench.seen({"tests/cases.csv": "4"}, lint, specialist="code-quality") == ((), 0)


def test_in_a_subfolder_of_a_repository_patterns_are_relative_to_it(tmp_path: Path) -> None:
    below = ApartBench(tmp_path, {f"web/{name}": text for name, text in FILES.items()}, below="web")

    fix = {"web/check.sh": "true\n", "web/tests/cases.csv": "4"}
    assert below.seen(fix).files == ["web/check.sh", "web/tests/cases.csv"]
    assert below.seen({"web/new": "x"}, tests_may_change=("tests/**",), product=("check.sh",)) == ((), 0)


def test_a_withdrawn_judgement_finds_nothing(bench: ApartBench) -> None:
    assert bench.seen({"tests/cases.csv": "4"}, withdrawn=True) == ((), 1)
