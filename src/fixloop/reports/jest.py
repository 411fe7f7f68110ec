"""Jest's `--json`: each test by its file and titles, and files that could not run.

Vitest's JSON reporter writes the same. Refuses a report that declares more tests than it lists.
"""

import re
from typing import Final

from fixloop.protocol.limits import clean
from fixloop.reports.document import json_object
from fixloop.reports.report import Report, SourceTree, Tests, Unusable
from fixloop.reports.tracebacks import line_in

_ENDS: Final = {"passed", "failed", "pending", "skipped", "todo", "disabled"}
_KIND: Final = re.compile(r"\s*(?:Uncaught )?([A-Za-z_$][\w$.]{0,100}(?:Error|Exception))\b")
_IN_SUITE: Final = re.compile(r"^[ \t]*●.*$", re.MULTILINE)


def read_jest(content: bytes, tree: SourceTree) -> Report:
    """The report of the JSON in `content`. Raises Unusable: not Jest's, incomplete, or of an interrupted run."""
    log = json_object(content)
    files, declared = log.get("testResults"), log.get("numTotalTests")
    if not isinstance(files, list) or not isinstance(declared, int):
        raise Unusable("is JSON, but not Jest's: it has no testResults or no numTotalTests")
    if log.get("wasInterrupted"):
        raise Unusable("is not whole: the run was interrupted")
    tests, listed = Tests(), 0
    for entry in files:
        path, results, before = tree.relative(entry["name"]), entry["assertionResults"], len(tests.failures)
        listed += len(results)
        for result in results:
            name = f"{path}::{' > '.join([*result.get('ancestorTitles', ()), result['title']])}"
            status = result["status"]
            if status not in _ENDS:
                raise Unusable(f"is not whole: {name} is {status!r}, which is no end of a test")
            if status == "passed":
                tests.passed.append(name)
            elif status == "failed":
                told = result.get("failureMessages") or ["the report says that it failed"]
                message = clean("\n\n".join(told))
                tests.fail(name, _kind(message, "failure"), message, path, line_in(message, path))
            else:
                tests.skipped += 1
        if entry["status"] == "failed" and len(tests.failures) == before:
            said = _IN_SUITE.sub("", clean(entry.get("message") or "")).strip()
            tests.fail(path, _kind(said, "test suite failed to run"), said, path, line_in(said, path))
        else:
            tests.not_counted.append(path)
    if declared > listed:
        raise Unusable(f"is not whole: it declares {declared} tests and lists {listed}")
    return tests.report()


def _kind(message: str, otherwise: str) -> str:
    return found[1] if (found := _KIND.match(message)) else otherwise
