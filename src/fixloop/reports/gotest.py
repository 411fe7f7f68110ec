"""`go test -json`: tests by package and name, and packages that fail to build or die outside their tests.

A test with subtests counts only if it fails by itself. Refuses an output in which a package has no end event. Lines
other than JSON are the compiler's: before Go 1.24 only they report a build failure.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fixloop.reports.report import Report, SourceTree, Tests, Unusable, place_in

_ENDS: Final = {"pass", "fail", "skip"}
_BROKEN: Final = re.compile(r"FAIL\s+(\S+) \[((?:build|setup) failed)\]")
_HEADER: Final = re.compile(r"# (\S+)(?: \[\S+\])?$")
# The runner's own lines; the rest is the test's output.
_FRAMING: Final = re.compile(r"\s*(?:=== (?:RUN|PAUSE|CONT|NAME)\b|--- (?:FAIL|PASS|SKIP): )")
# An address in Go's heap differs in each run, and with it the name of a test that prints a pointer.
_ADDRESS: Final = re.compile(r"0xc[0-9a-f]{9}")
_CAUSES: Final = (
    ("timeout", re.compile(r"^panic: test timed out", re.MULTILINE)),
    ("data race", re.compile(r"^WARNING: DATA RACE", re.MULTILINE)),
    ("panic", re.compile(r"^[ \t]*panic: ", re.MULTILINE)),
)


@dataclass
class _Run:
    end: str = ""
    starter: str = ""
    """The test at the top level that go had started: it starts one at a time, the others `testing.RunTests`."""
    output: list[str] = field(default_factory=list)

    def said(self) -> str:
        return "".join(line for line in self.output if not _FRAMING.match(line)).strip("\n")


@dataclass
class _Log:
    """All events, by package and test; a package itself has an empty test name."""

    runs: dict[tuple[str, str], _Run] = field(default_factory=lambda: defaultdict(_Run))
    compiler: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    broken: dict[str, str] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> None:
        action, package = event["Action"], event.get("Package", "")
        test = _ADDRESS.sub("0x...", event.get("Test", ""))
        if action == "build-output":
            self.compiler[event["ImportPath"].partition(" ")[0]].append(event["Output"].rstrip("\n"))
        elif package:
            run = self.runs[package, test]
            if action == "output":
                run.output.append(event["Output"])
            elif action in _ENDS:
                # A package may end twice; the worse result counts.
                run.end = action if run.end != "fail" else run.end
            elif action == "run" and "/" not in test:
                run.starter = self.running.setdefault(package, test)
            if action in {*_ENDS, "pause"} and self.running.get(package) == test:
                del self.running[package]
            if failed := event.get("FailedBuild"):
                self.broken[package] = "build failed"
                self.compiler[package] = self.compiler[failed.partition(" ")[0]]


def read_go_test(content: bytes, tree: SourceTree) -> Report:
    """The report of the events in `content`. Raises Unusable: there are none, or a package has no end."""
    log, header = _Log(), ""
    for row in content.decode("utf-8", "replace").split("\n"):
        if row.startswith("{"):
            log.take(json.loads(row))
        elif broken := _BROKEN.match(row):
            log.broken[broken[1]] = broken[2]
        elif started := _HEADER.match(row):
            header = started[1]
        elif header and row.strip():
            log.compiler[header].append(row)
    packages = [package for package, test in log.runs if not test]
    if not packages and not log.broken:
        raise Unusable("is no output of `go test -json`: it names no package")
    if open_ones := [package for package, _ in log.runs if log.runs[package, ""].end not in _ENDS]:
        raise Unusable(f"is not whole: package {open_ones[0]} has no end")
    tests = Tests()
    for package, kind in log.broken.items():
        said = "\n".join(log.compiler.get(package, ())) or f"{package}: {kind}"
        _fail(tests, tree, package, "", kind, said)
    for package in packages:
        _package(package, log, tests, tree)
    return tests.report()


def _package(package: str, log: _Log, tests: Tests, tree: SourceTree) -> None:
    before = len(tests.failures)
    own = {name: run for (owner, name), run in log.runs.items() if owner == package}
    whole = own.pop("")
    runs = {name: run for name, run in own.items() if run.end != "fail" or not _is_meant_to_fail(name, own)}
    parents = dict.fromkeys(name.rpartition("/")[0] for name in runs if "/" in name)
    for name, run in runs.items():
        if name in parents and (run.end == "pass" or not run.said()):
            # A test with subtests counts only if it has its own failure text.
            continue
        if run.end == "pass":
            tests.passed.append(f"{package}.{name}")
        elif run.end == "skip":
            tests.skipped += 1
        else:
            silent = "the test failed and said nothing" if run.end else "the test did not end"
            kind = "failure" if run.end else "did not end"
            _fail(tests, tree, package, name, kind, run.said() or silent)
    tests.not_counted += [f"{package}.{one}" for one in parents if one in runs and runs[one].end == "pass"]
    if whole.end == "fail" and len(tests.failures) == before and package not in log.broken:
        _fail(tests, tree, package, "", "failure", whole.said() or f"package {package} failed")
    elif package not in log.broken:
        tests.not_counted.append(package)


def _is_meant_to_fail(name: str, runs: Mapping[str, _Run]) -> bool:
    """Whether a test above it passed or the one that started it: go itself fails every test above one that fails."""
    above = [name[:at] for at, sign in enumerate(name) if sign == "/"]
    starter = runs.get(name.partition("/")[0], _Run()).starter
    return any(one in runs and runs[one].end == "pass" for one in (*above, starter))


def _fail(tests: Tests, tree: SourceTree, package: str, name: str, kind: str, said: str) -> None:
    causes = ((word, found.start()) for word, pattern in _CAUSES if (found := pattern.search(said)))
    kind, start = next(causes, (kind, 0))
    # Possible folders of an import path below the module's root, the deepest first.
    parts = package.removesuffix("_test").split("/")
    file, line = place_in(said[start:], tree, ["/".join(parts[first:]) for first in range(1, len(parts))])
    tests.fail(f"{package}.{name}" if name else package, kind, said, file, line)
