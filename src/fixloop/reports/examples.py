"""Completes the one failure of a group given in full: its error, the code around it, and how to run it alone.

Owns what is added to a report's own text, and what is removed: the source lines that a traceback copies, foreign
frames, and repetitions. Reads the workspace, which is gone when the report is read.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from shlex import join
from typing import Final, NamedTuple

from fixloop.protocol.checks import CheckResult
from fixloop.protocol.failures import Failure, FailureRef, groups
from fixloop.protocol.launchers import word_set
from fixloop.protocol.limits import FULL_FAILURES, bound, in_full
from fixloop.reports.cargotest import BUILD
from fixloop.reports.document import bytes_if_any
from fixloop.reports.output import measure_of
from fixloop.reports.report import SourceTree
from fixloop.reports.tracebacks import Frame, deepest, deepest_of_test, error_type, frames_in, source_around
from fixloop.repository.change import is_test

_ERROR: Final = re.compile(r"^E(?= {3}|$)")
_RULE: Final = re.compile(r"^(?:_ )+_?$|^-+ .* -+$|^Traceback \(most recent call last\):$")
_PLACE: Final = re.compile(r"^(\S[^:\n]{0,500}:\d{1,7}):(?: (.*))?$")
_NATIVE: Final = re.compile(r'^\s*File "[^"]{1,500}", line \d{1,7}(?:, in .*)?$')
_SOURCE: Final = re.compile(r"^\s")
_DEFINED: Final = re.compile(r"^(?:\s*(?:def |async def |class |@))|^[\w.]+ = <.*>$|^ {4}")
_CARETS: Final = re.compile(r"^\s*[\^~]+[\s\^~]*$")
# What imports a test's file, in pytest and in Python.
_IMPORTING: Final = re.compile(
    r".*/(?:(?:site|dist)-packages/_pytest|python3\.\d+/importlib)/|<frozen importlib"
)
_FOREIGN_STACK: Final = re.compile(
    r"^\s+at .*(?:node_modules|node:)|^\s+node:\S+$"
    r"|^\s+(?:at )?(?:async |new )?[\w.<>]+ \((?:<anonymous>|node:[^)]*)\)$"
)


def digest(text: str, tree: SourceTree) -> str:
    """`text` shortened for a reader who has the code."""
    rows = text.split("\n")
    if any(map(_ERROR.match, rows)):
        return "\n".join(_once(_of_pytest(rows)))
    if any(map(_NATIVE.match, rows)):
        return "\n".join(_once(_native(rows, tree)))
    return "\n".join(row for row in rows if row.strip() and not _FOREIGN_STACK.match(row))


class _Row(NamedTuple):
    text: str
    is_repeatable: bool = False
    """It may be repeated: compared values often have equal lines."""


def _once(rows: Iterable[_Row]) -> Iterator[str]:
    """Drops repetitions; a report gives the message, and then its traceback, which ends with it."""
    said: set[str] = set()
    for text, is_repeatable in rows:
        words = text.strip()
        if words and words not in said:
            yield text
        if not is_repeatable:
            said.add(words)


def _of_pytest(rows: list[str]) -> Iterator[_Row]:
    """The `E` lines, arguments, and one line for each frame; the text before the first frame is unchanged."""
    code, frame, indent, is_first = "", "", 0, True
    for row in rows:
        place = _PLACE.match(row)
        if frame:
            if not _IMPORTING.match(frame):
                yield _Row(f"{frame}: {row.strip()}")
            frame = ""
        elif _ERROR.match(row):
            indent = indent or len(row) - len(row[1:].lstrip())
            yield _Row(row[1:indent].lstrip() + row[indent:], is_repeatable=True)
            continue
        elif row.startswith(">"):
            code, is_first = row[1:].strip(), False
        elif place and (place[2] or "").startswith("in "):
            frame, is_first = place[1], False
        elif place:
            yield _Row(f"{place[1]}: {code or place[2] or ''}".rstrip(": "))
            code, is_first = "", False
        elif not _RULE.match(row) and (is_first or not _SOURCE.match(row)) and not _DEFINED.match(row):
            yield _Row(row)
        indent = 0


def _native(rows: list[str], tree: SourceTree) -> Iterator[_Row]:
    """One line for each frame of the workspace, and all lines outside frames."""
    place, is_frame = "", False
    for row in rows:
        if _NATIVE.match(row):
            place, is_frame = next((str(frame) for frame in frames_in(row, tree)), ""), True
        elif is_frame and row.startswith("    "):
            if place and not _CARETS.match(row):
                yield _Row(f"{place}: {row.strip()}")
                place = ""
        else:
            is_frame = False
            if not _RULE.match(row):
                yield _Row(row)


# pytest 9 and pytest-subtests name subtests only in the last lines of their output, not in the report.
_SUBTEST: Final = re.compile(
    r"^(?:SUBFAIL(?:ED)?(?P<after>[^\n]{0,300}?)|(?P<before>[\[(][^\n]{0,300}) SUBFAIL)"
    r" (?P<test>[^\s\[\]()]{1,300}\.py::\S{1,300})",
    re.MULTILINE,
)
_MOST_SUBTESTS: Final = 20
_CODE_CHARACTERS: Final = 800
"""Shared by all examples, beyond the lines next to each."""


def explained(
    failure: Failure, argv: Sequence[str], workspace: Path, hide: Callable[[str], str], *, room: int = 0
) -> Failure:
    """
    `failure` with the code, and its text without what the code shows.

    `argv`: the command of its check, as a person would repeat it. `hide`: removes secrets from what is read here.
    `room`: characters of code beyond the lines next to the failing one.
    """
    file, _, line = (failure.frame or failure.location).rpartition(":")
    tree, source = SourceTree(workspace), ""
    if line.isdigit():
        # The lines around the frame, and if there is room, those of the test that led there.
        source = source_around(workspace, Frame(file, int(line)), room)
        test = deepest_of_test(failure.message, tree)
        if test is not None and test.file != file and len(source) < room:
            further = source_around(workspace, test, room - len(source))
            source = f"{source}\n\n{test.file}\n{further}"
    rerun = join(narrower(argv, failure))
    # The workspace will be gone; its files are told as in the project.
    here = re.compile(rf"(?:file://)?{re.escape(os.path.realpath(workspace))}/([^\s:()'\"]*\w)")
    whole = digest(failure.message, tree) or failure.message
    message = here.sub(lambda path: path[1] if tree.has_file(path[1]) else path[0], whole)
    packages = [str(each) for each in Path(failure.file).parents if tree.has_file(f"{each}/package.json")]
    if "--workspaces" in argv and packages[:1] not in ([], ["."]):
        rerun = join((*argv[: argv.index("--workspaces")], "--workspace", packages[0]))
    return failure.model_copy(update={"message": message, "source": hide(source), "rerun": rerun})


def with_examples(
    result: CheckResult, argv: Sequence[str], workspace: Path, hide: Callable[[str], str]
) -> CheckResult:
    """The result with one failure of each group explained and in full (K41); arguments as for `explained`."""
    told = list(result.failures)
    examples = {group[0] for group in groups(map(FailureRef.of, told))[:FULL_FAILURES]}
    room = _CODE_CHARACTERS // max(1, len(examples))
    for place in examples:
        told[place] = explained(told[place], argv, workspace, hide, room=room)
    return result.model_copy(update={"failures": bound(told, examples), "whole": tuple(map(in_full, told))})


def with_subtests(failures: Iterable[Failure], output: str) -> Iterator[Failure]:
    """A test runner's failures; tests with failing subtests list the subtests' names."""
    found: dict[str, list[str]] = {}
    for match in _SUBTEST.finditer(output):
        found.setdefault(match["test"], []).append((match["after"] or match["before"]).strip())
    for failure in failures:
        if names := [name for name in found.get(failure.name, ()) if name]:
            more = f" and {len(names) - _MOST_SUBTESTS} more" if len(names) > _MOST_SUBTESTS else ""
            listed = f"{failure.message}\nfailing subtests: {', '.join(names[:_MOST_SUBTESTS])}{more}"
            failure = failure.model_copy(update={"message": listed})
        yield failure


def of_files(failures: Iterable[Failure], output: str, workspace: Path) -> Iterator[Failure]:
    """A test runner's failures. Those of whole files are measured, and so not owed, if no later report can show that
    they pass: of what Node.js could not load, which says what it printed, and of modules collected for doctests alone.
    """
    tree = SourceTree(workspace)
    for failure in failures:
        path, told = failure.file if failure.name == failure.file else "", dict[str, str]()
        is_module = path.endswith(".py") and not is_test(path) and tree.has_file(path)
        if path and failure.message.startswith(_CRASHED):
            before, *_ = re.split(rf"(?m)^✖ (?:.*/)?{re.escape(path)} \(\d", output, maxsplit=1)
            said = _ENDED.split(before)[-1].strip("\n") if before != output else ""
            text = said or failure.message
            kind, frame = error_type(None, "", text, failure.error_type), str(deepest(text, tree) or "")
            told = {"message": text, "error_type": kind, "frame": frame, "measure": measure_of(text)}
        elif is_module and not _TESTS.search(bytes_if_any(workspace / path)):
            told = {"measure": measure_of(failure.message)}
        yield failure.model_copy(update=told)


_TESTS: Final = re.compile(rb"(?i)test|assert|>>>")
_CRASHED: Final = "test failed\n"
_ENDED: Final = re.compile(r"^[✔✖▶﹣] .* \(\d[\d.]*ms\).*$", re.MULTILINE)
"""The line of a test, a suite or a file, after what it printed."""
_REPORT: Final = re.compile(r"(?:output=)?\{(?:junit|sarif|coverage|eslint|jest)\}")
_FOR_REPORTS: Final = re.compile(
    r"junit_\w+=.*|--(?:test-)?reporter(?:-destination)?=.*|--cov-fail-under=0|--?json"
)
_RUNNERS: Final = word_set("pytest unittest ruff mypy bandit eslint vitest jest mocha go cargo")
_SETTINGS: Final = re.compile(r"^(?:-[ocp]|--doctest-glob)\0|\0(?:-[ocp]$|--doctest-)")
"""pytest's options with settings, and their values, without which a test may not be found."""
_OPTION: Final = re.compile(r"--?\w")
_FIXTURE: Final = re.compile(r"\.(?:setUp|tearDown)(?:Class|Module)$")
# A package may also have dots; a test begins with one of Go's four words.
_GO_TEST: Final = re.compile(r"(\S+?)\.((?:Test|Example|Fuzz|Benchmark)(?![a-z]).*)")


def without_reports(argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` without the options that only write a report file."""
    kept: list[str] = []
    for part in argv:
        if _REPORT.fullmatch(part) or part.startswith("junit_"):
            if kept and _OPTION.match(kept[-1]):
                kept.pop()
        elif not _REPORT.search(part) and not _FOR_REPORTS.fullmatch(part):
            kept.append(part)
    # A person reads the tool's default format instead.
    for form in {"sarif", "xunit", "json"}.intersection(kept) if len(kept) < len(argv) else ():
        place = kept.index(form)
        del kept[place - 1 if _OPTION.match(kept[place - 1]) else place : place + 1]
    return tuple(kept)


def narrower(argv: Sequence[str], failure: Failure) -> tuple[str, ...]:
    """The command that runs `failure` alone; empty if the runner is unknown or cannot name it."""
    names = [part.rsplit("/", 1)[-1] for part in argv]
    place = next((place for place, name in enumerate(names) if name in _RUNNERS), -1)
    if place < 0:  # a script that calls `unittest.main` takes names
        above, _, named = failure.name.partition("__main__.")
        return (*argv, named) if named and not above and argv[-1].endswith(".py") else ()
    name, runner, rest = names[place], tuple(argv[: place + 1]), tuple(argv[place + 1 :])
    file, last = failure.file, failure.name.rpartition("::")[2]
    is_doctest = failure.message.startswith("Doctest: ")  # unittest cannot load one by its name
    match name, rest:
        case "pytest", _ if file and failure.name.startswith(file):
            without_coverage = ("--no-cov",) if any(part.startswith("--cov") for part in rest) else ()
            # Only Python identifiers are certainly classes; other collectors' names are not test ids.
            is_id = all(part.isidentifier() for part in failure.name.partition("[")[0].split("::")[1:-1])
            by_name = (file, "-k", last) if last.isidentifier() else (file,)
            pairs = zip(("", *rest), rest, strict=False)
            settings = (word for before, word in pairs if _SETTINGS.search(f"{before}\0{word}"))
            return (*runner, *settings, *without_coverage, *((failure.name,) if is_id else by_name))
        case "unittest", _ if "." in failure.name and " " not in failure.name and not is_doctest:
            # Its id begins at the folder it was collected from, perhaps another one.
            id_ = _FIXTURE.sub("", failure.name)
            is_here = f"{id_}.".startswith(f"{file.removesuffix('.py').replace('/', '.')}.")
            of_fixture = ".*" if id_ != failure.name else ""
            return (*runner, id_) if is_here else (*runner, *rest, "-k", f"*{id_}{of_fixture}")
        case "ruff", (("check" | "format") as kind, *_) if file:
            return (*runner, kind, *(("--select", failure.name) if kind == "check" else ("--diff",)), file)
        case (("mypy" | "bandit" | "eslint"), _) if file:
            return (*runner, *takewhile(re.compile(r"-(?![pm]$)").match, rest), file)
        case (("vitest" | "jest"), _) if file:
            run = ("run",) if name == "vitest" else ()
            # vitest joins suite titles with " > " in a report, and with a space in its filter.
            title = last.replace(" > ", " ")
            return (*runner, *run, file, *(("-t", title) if title and not file.endswith(title) else ()))
        # Not the whole check, nor a hook, which no filter finds.
        case "mocha", _ if failure.name != failure.check and not last.startswith('"'):
            return (*runner, *rest, "-f", failure.name.replace("::", " ", 1))
        case "go", ("test", *options):
            # A word with neither a dot nor a slash is the value of an option, not a package.
            kept = takewhile(lambda part: part.startswith("-") or not {".", "/"} & set(part), options)
            words = (*runner, "test", *(part for part in kept if part != "-json"))
            if not (test := _GO_TEST.fullmatch(failure.name)):
                return (*words, failure.name)
            return (*words, "-run", "/".join(f"^{re.escape(part)}$" for part in test[2].split("/")), test[1])
        case "cargo", ("test", *options):
            command = (*runner, "test", *takewhile("--".__ne__, options))
            path = failure.name.partition("::")[2]
            if failure.name == BUILD:
                return (*command, "--no-run")
            source, is_doc_test, item = path.partition(" -")
            if is_doc_test:  # rustdoc takes each word of its name separately
                return (*command, "--doc", item.strip() or source)
            return (*command, path, "--", "--exact") if path else ()
    return ()
