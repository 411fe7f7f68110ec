"""Reads a report file and says what it proves.

No content of a file raises: a file that cannot be read is an error, never a pass or a traceback.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from fixloop.configuration.commands import PLACEHOLDERS
from fixloop.configuration.values import OUTPUTS, FailOn
from fixloop.errors import UsageError
from fixloop.protocol.checks import RunOutcome
from fixloop.reports.cargotest import read_cargo_test
from fixloop.reports.coverage import read_coverage
from fixloop.reports.document import LIMIT_BYTES, read_bytes
from fixloop.reports.gotest import read_go_test
from fixloop.reports.jest import read_jest
from fixloop.reports.junit import read_junit
from fixloop.reports.lint import read_clippy, read_eslint
from fixloop.reports.report import Report, SourceTree, Unusable
from fixloop.reports.sarif import read_sarif

KINDS: Final = (*PLACEHOLDERS, *OUTPUTS)
_READERS: Final[Mapping[str, Callable[[bytes, SourceTree], Report]]] = {
    "junit": read_junit,
    "jest": read_jest,
    "eslint": read_eslint,
    "go-test": read_go_test,
    "cargo-test": read_cargo_test,
    "clippy": read_clippy,
}
"""The readers that need only the file and the workspace."""


def read_report(
    path: Path,
    kind: str,
    *,
    root: Path | None = None,
    fail_on: FailOn = FailOn.ERROR,
    gate: float | None = None,
    limit_bytes: int = LIMIT_BYTES,
) -> Report:
    """
    The result of the report at `path`: PASSED, FAILED or, if it proves nothing, ERROR with one sentence.

    `kind`: one of `KINDS`, else UsageError is raised. `root`: the workspace; paths in the report become relative to it,
    and ids of tests name files in it. `gate`: the minimum percentage of a coverage report.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown kind of report {kind!r}; known are {', '.join(KINDS)}")
    digest, subject, tree = "", f"the {kind} report {path.name}", SourceTree(root)
    try:
        content = read_bytes(path, limit_bytes)
        digest = hashlib.sha256(content).hexdigest()
        if kind == "sarif":
            report = read_sarif(content, tree, fail_on)
        elif kind == "coverage":
            report = read_coverage(content, tree, gate)
        else:
            report = _READERS[kind](content, tree)
    except Unusable as error:
        return Report(outcome=RunOutcome.ERROR, reason=f"{subject} {error}", digest=digest)
    # Whatever a parser raises for a malformed file: it proves nothing, and no worker dies.
    except Exception as error:
        reason = f"{subject} is not shaped like one ({type(error).__name__})"
        return Report(outcome=RunOutcome.ERROR, reason=reason, digest=digest)
    reason = f"{subject} {report.reason}" if report.outcome is RunOutcome.ERROR else report.reason
    return report.model_copy(update={"digest": digest, "reason": reason})
