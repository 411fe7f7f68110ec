"""Repeats the tests, on an idle machine or a busy one: `python -m tests.again --times 5 --burn 2`.

A test that passes once may have been lucky. Each run is that of `make test`, or what follows `--`; the
busy loops occupy processors. Exit code 1 if any test failed in any run.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
# Ends with its parent, whatever ended that.
_BURNER: Final = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


class Run(NamedTuple):
    """The result of one run of pytest."""

    code: int
    """pytest's exit code: 0 if all tests passed."""
    tests: int
    skipped: int
    red: dict[str, str]
    """By test, the first line of its message."""

    def __str__(self) -> str:
        told = (
            f"{self.tests - self.skipped - len(self.red)} passed, {self.skipped} skipped, {len(self.red)} red"
        )
        return told if self.code in (0, 1) else f"pytest ended with exit code {self.code}; {told}"


def read(code: int, report: Path) -> Run:
    """The result of a run from its exit code and pytest's JUnit XML, if any."""
    tests, skipped, red = set(), set(), {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        name = f"{case.get('file')}::{case.get('name')}"
        tests.add(name)
        if case.find("skipped") is not None:
            skipped.add(name)
        # A failed test may fail again in its teardown.
        for kind in ("error", "failure"):
            if (found := case.find(kind)) is not None:
                red[name] = " ".join((found.get("message") or "").split())[:300]
    return Run(code, len(tests), len(skipped), red)


def red_in_all(runs: Sequence[Run]) -> list[str]:
    """`2 of 5: tests/…::test_…`, the most frequent first."""
    times = Counter(name for run in runs for name in run.red)
    return [f"{count} of {len(runs)}: {name}" for name, count in times.most_common()]


def main(words: Sequence[str]) -> int:
    """Run, print the failures of each run and their frequency at the end; returns the exit code."""
    options = _parsed(words)
    folder, runs = Path(tempfile.mkdtemp(prefix="fixloop-again-")), []
    with _burning(options.burn):
        for number in range(1, options.times + 1):
            began, cpu = time.monotonic(), _cpu_seconds()
            runs.append(run := _run(options.pytest, folder / f"{number}"))
            taken = f"{time.monotonic() - began:.0f} s, {_cpu_seconds() - cpu:.0f} s of a processor"
            print(f"run {number} of {options.times}: {run} ({taken})", flush=True)
            for name, message in run.red.items():
                print(f"  {name}: {message}", flush=True)
    is_green = all(run.code == 0 for run in runs)
    print("all green" if is_green else "\n".join(red_in_all(runs)))
    print(f"what pytest said is in {folder}")
    return int(not is_green)


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.again", description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="how many runs (5)")
    parser.add_argument("--burn", type=int, default=0, help="how many busy loops meanwhile (0)")
    parser.add_argument("pytest", nargs="*", help="behind --: pytest's own words, such as tests/e2e -k word")
    return parser.parse_args(words)


def _run(words: Sequence[str], place: Path) -> Run:
    report = place.with_suffix(".xml")
    # As in the Makefile.
    testers = ["-n", str(2 * (os.cpu_count() or 1)), "--maxprocesses", "8", "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *testers, "-o", "junit_family=xunit1", f"--junitxml={report}"]
    with place.with_suffix(".log").open("wb") as log:
        done = subprocess.run([*command, *words], cwd=ROOT, stdout=log, stderr=log, check=False)
    return read(done.returncode, report)


@contextmanager
def _burning(count: int) -> Iterator[None]:
    burners = [subprocess.Popen([sys.executable, "-S", "-c", _BURNER]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _cpu_seconds() -> float:
    """CPU seconds of all child processes that have ended, so without the busy loops."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
