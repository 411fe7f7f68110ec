"""Reads the merged output of `cargo test`: each test binary's tests, doc tests, and build errors.

The text is libtest's; its JSON needs a nightly compiler. Refuses an output in which a binary lists fewer tests than it
started. Doc tests are named without their line, which may shift.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fixloop.protocol.limits import clean
from fixloop.reports.report import Report, SourceTree, Tests, Unusable, place_in

BUILD: Final = "build"
"""The name of build errors: the build, which passes if there are none."""

_TARGET: Final = re.compile(
    r"\s+(?:Running (?P<source>.+?)|Doc-tests (?P<doc>\S+))(?: \((?P<binary>\S+)\))?$"
)
_BEGUN: Final = re.compile(r"running (\d+) tests?$")
_MARK: Final = r"(?: - (?:should panic|compile fail|compile))?"
_TEST: Final = re.compile(rf"test (?P<name>.+?){_MARK} \.\.\. (?P<end>ok|FAILED|ignored)(?:, .*)?$")
_ENDED: Final = re.compile(r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;")
_SECTION: Final = re.compile(rf"---- (?P<name>.+?){_MARK} std(?:out|err) ----$")
_PANICKED: Final = re.compile(r"panicked at (?:.{0,500}, )?(\S{1,500}?):(\d+):\d+:?$", re.MULTILINE)
_DOC_LINE: Final = re.compile(r" \(line \d+\)$")
_DIED: Final = re.compile(r"error: test failed, to rerun pass .*|\s*process didn't exit successfully: .*")
_BUILD_ERROR: Final = re.compile(r"error(?:\[(?P<code>E\d+)\])?: (?P<text>.+)")
_BUILD_ENDS: Final = re.compile(r"could not compile|aborting due to|\d+ targets? failed")


@dataclass
class _Binary:
    target: str
    declared: int | None = None
    """The announced number of tests; None for a custom harness."""
    ends: list[tuple[str, str]] = field(default_factory=list)
    sections: dict[str, list[str]] = field(default_factory=dict)
    result: tuple[int, int, int] | None = None
    fault: list[str] = field(default_factory=list)
    """Cargo's lines about a binary that failed."""
    talk: list[str] = field(default_factory=list)


def read_cargo_test(content: bytes, tree: SourceTree) -> Report:
    """The report of the text in `content`. Raises Unusable: it is not from `cargo test`, or is incomplete."""
    lines = clean(content.decode("utf-8", "replace")).split("\n")
    tests = Tests()
    binaries = list(_binaries(lines))
    for run in binaries:
        for name, end in run.ends:
            if end == "ok":
                tests.passed.append(f"{run.target}::{name}")
            elif end == "ignored":
                tests.skipped += 1
            else:
                _fail(f"{run.target}::{name}", "\n".join(run.sections.get(name, ())), "failure", tests, tree)
        if run.declared is None and not run.fault:
            # A custom harness has no set format; Cargo says if it failed.
            tests.passed.append(run.target)
            continue
        tests.not_counted.append(run.target)
        if run.fault and not any(end == "FAILED" for _, end in run.ends):
            _fail(run.target, "\n".join([*run.talk, *run.fault]).strip(), "test binary died", tests, tree)
        elif run.result is None or sum(run.result) > len(run.ends):
            raise Unusable(f"is not whole: {run.target} began {run.declared} tests and lists {len(run.ends)}")
    tests.not_counted += [BUILD] if binaries else []
    if not binaries:
        # One failure per compiler error; the same error in two targets counts once.
        blocks: dict[str, re.Match[str]] = {}
        for start, line in enumerate(lines):
            error = _BUILD_ERROR.match(line)
            if error and not _BUILD_ENDS.search(error["text"]):
                gap = next((at for at in range(start + 1, len(lines)) if not lines[at].strip()), len(lines))
                blocks.setdefault("\n".join(lines[start:gap]), error)
        for block, error in blocks.items():
            tests.fail(BUILD, error["code"] or "build error", block, *place_in(block, tree))
        if not tests.failures:
            raise Unusable("is no output of `cargo test`: it names no test binary and no build error")
    return tests.report()


def _binaries(lines: list[str]) -> Iterator[_Binary]:
    binary: _Binary | None = None
    section: list[str] | None = None  # the open section of captured output
    for line in lines:
        if target := _TARGET.match(line):
            if binary is not None:
                yield binary
            # The crate, plus the source of its unit tests unless that is the library: a binary has the same name.
            source, file = str(target["source"]), (target["binary"] or "").replace("\\", "/")
            crate = re.sub(r"-[0-9a-f]{8,}(?:\.exe)?$", "", file.rpartition("/")[2])
            unit_tests_of = source.removeprefix("unittests ")
            is_library = source.endswith("src/lib.rs") or unit_tests_of == source
            name = crate if crate and is_library else f"{crate} ({unit_tests_of})"
            binary, section = _Binary(target["doc"] or name), None
        elif binary is None:
            continue
        elif ended := _ENDED.match(line):
            binary.result, section = (int(ended[1]), int(ended[2]), int(ended[3])), None
        elif found := _SECTION.match(line):
            section = binary.sections.setdefault(_DOC_LINE.sub("", found["name"]), [])
        elif section is not None:
            section.append(line)
        elif begun := _BEGUN.match(line):
            binary.declared = int(begun[1])
        elif test := _TEST.match(line):
            binary.ends.append((_DOC_LINE.sub("", test["name"]), test["end"]))
        elif _DIED.match(line):
            binary.fault.append(line.strip())
        else:
            binary.talk.append(line)
    if binary is not None:
        yield binary


def _fail(name: str, said: str, kind: str, tests: Tests, tree: SourceTree) -> None:
    said = said.partition("\n\nfailures:\n")[0].strip() or "the test failed and said nothing"
    panicked = _PANICKED.search(said)
    file, line = place_in(said[panicked.start() :] if panicked else said, tree)
    tests.fail(name, "panic" if panicked else kind, said, file, line)
