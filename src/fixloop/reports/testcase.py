"""Reads one test of a JUnit report: its name, file and result.

Owns test names, which must be the same in every run (K7): they depend only on the report's own attributes and on which
files exist, never on the text of a failure.
"""

import os
import re
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element

from junitparser import xunit2

from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import CONTEXT_BYTES, cut, plain, short_name
from fixloop.reports.report import SourceTree, failure_of, place_in
from fixloop.reports.tracebacks import deepest, error_type, frames_in, line_in, raised_in

# Values that GoogleTest and CTest write as an attribute; others write an element.
_NOT_RUN: Final = frozenset({"notrun", "disabled", "skipped", "suppressed", "ignored"})
_DID_FAIL: Final = frozenset({"fail", "failed", "failure", "error"})

# pytest begins each stream, even an empty one, with a line such as `--- Captured Out ---`.
_BANNER: Final = re.compile(r"^-{3,} ?Captured (?:Log|Out|Err) ?-{3,}$\n?", re.MULTILINE)

# pytest's message for every file that it could not import.
_NOT_COLLECTED: Final = "collection failure"
# What ends a message that pytest cut, as the text has all of it.
_CUT: Final = re.compile(r"(?:\.\.\.)?\n\[(?:\+\d+ more lines?|truncated); full report in element text\]\Z")
# Node's test runner wraps each error in one of its own, which repeats it, and writes its message without line breaks.
_CAUSE: Final = re.compile(r"\[?Error \[ERR_TEST_FAILURE\]: .*?\n  cause: (.*)\n\}\Z", re.DOTALL)


class Case(NamedTuple):
    name: str
    file: str
    outcome: RunOutcome
    failure: Failure | None
    faults: int
    """The number of failures and errors it lists."""
    flaky: bool
    """Passed, but only on a rerun."""


class _Fault(NamedTuple):
    tag: str
    type: str | None
    message: str
    text: str


def read_case(element: Element, suite: str, tree: SourceTree) -> Case:
    """The test in `element`, whose <testsuite> is called `suite`."""
    case: Any = xunit2.TestCase.fromelem(element)
    results = list(case.result)
    faults = [
        _Fault(result._tag, result.type, result.message or "", "".join(result._elem.itertext()))
        for result in results
        if result._tag != "skipped"
    ]
    tags = {result._tag for result in results}
    states = {element.get(name, "").strip().lower() for name in ("status", "result")}
    outcome = RunOutcome.PASSED
    if "error" in tags:
        outcome = RunOutcome.ERROR
    elif "failure" in tags or states & _DID_FAIL:
        outcome = RunOutcome.FAILED
    elif "skipped" in tags or states & _NOT_RUN:
        outcome = RunOutcome.SKIPPED
    name, file = _identity(element, suite, tree)
    failure = None
    if outcome in {RunOutcome.FAILED, RunOutcome.ERROR}:
        unsaid = _Fault("failure", None, "the report says that it failed", "")
        failure = _failure(name, file, faults or [unsaid])
        # The end of what the test printed.
        streams = (case.system_out, case.system_err)
        printed = "\n".join(filter(None, (_BANNER.sub("", plain(text or "")).strip() for text in streams)))
        failure = _with_place(failure, element, cut(printed, CONTEXT_BYTES), tree)
    flaky = outcome is RunOutcome.PASSED and (case.is_flaky or case.is_rerun)
    return Case(name, file, outcome, failure, max(len(faults), failure is not None), flaky)


def suite_failure(element: Element, suite: str, tree: SourceTree) -> Failure:
    """A <failure> or <error> in a suite, outside any test."""
    cause = _Fault(str(element.tag), element.get("type"), element.get("message", ""), element.text or "")
    file = tree.relative(suite)
    return _failure(short_name(suite or "suite"), file if tree.has_file(file) else "", [cause])


def _failure(name: str, file: str, faults: list[_Fault]) -> Failure:
    texts = []
    for fault in faults:
        # The message and the text after it, without repeating the message if the text begins with it (B21). Lists show
        # the first line of a failure: pytest's text begins with the test's own source instead.
        message, text = _CUT.sub("", plain(fault.message).strip()), plain(fault.text).strip("\n").rstrip()
        if message == _NOT_COLLECTED:
            message = raised_in(text) or message
        if wrapped := _CAUSE.match(text):
            message, text = "", wrapped[1].replace("\n  ", "\n")
        is_in_text = text.lstrip().removeprefix(f"{fault.type}: ").startswith(message)
        texts.append("\n".join(filter(None, ("" if is_in_text else message, text))) or fault.tag)
    first = faults[0]
    kind = error_type(first.type, plain(first.message), plain(first.text), first.tag)
    return failure_of(name, kind, "\n\n".join(texts), file)


def _with_place(failure: Failure, element: Element, context: str, tree: SourceTree) -> Failure:
    # `tests/test_a.py` for the class `tests.test_a` when the text names that file, or `packages/a/tests/test_a.py`.
    classname = element.get("classname", "")
    named = f"{classname.replace('.', '/')}.py"
    is_in_text = classname and named in failure.message and line_in(failure.message, named)
    inner = (one.file for one in frames_in(failure.message, tree) if one.file.endswith(f"/{named}"))
    file = failure.file or (next(inner, named) if is_in_text else place_in(failure.message, tree)[0])
    given = element.get("line") or ""
    is_positive = given.isascii() and given.isdigit() and int(given[:9]) > 0
    line = line_in(failure.message, file) or (int(given) if is_positive else None)
    frame = str(deepest(failure.message, tree) or "")
    return failure.model_copy(update={"file": file, "line": line, "context": context, "frame": frame})


def _identity(element: Element, suite: str, tree: SourceTree) -> tuple[str, str]:
    name, classname = element.get("name", ""), element.get("classname", "")
    if file := tree.relative(element.get("file", "")):
        module = file.removesuffix(".py").replace("/", ".")
        below = "" if classname == module else classname.removeprefix(f"{module}.")
        parts = [part for part in below.split(".") if part]
    else:
        file, parts = tree.module_file(classname or name)
    # A part that is not a Python identifier may contain dots: `check.test` of a file collector.
    odd = next((place for place, part in enumerate(parts) if not part.isidentifier()), len(parts))
    parts = [*parts[:odd], *([".".join(parts[odd:])] if parts[odd:] else [])]
    if not file:
        paths = map(tree.relative, (suite, name))
        file, parts = next(filter(tree.has_file, paths), ""), [classname] if classname else []
    # The placeholder for a file that could not be collected: node:test names it by its path, Jest after the suite,
    # which is the file, and pytest after the module, without a class.
    is_path, is_suite = os.path.isabs(name), name == suite
    is_module = not is_suite and not classname and bool(name) and tree.module_file(name) == (file, [])
    if file and (is_module or (name and (is_path or is_suite) and tree.relative(name) == file)):
        return short_name(file), file
    if file.endswith(".py"):
        return short_name("::".join([file, *parts, *([name] if name else [])])), file
    whole = f"{classname}::{name}" if classname and name and classname != name else name or classname
    return short_name(whole or suite or "unnamed test"), file
