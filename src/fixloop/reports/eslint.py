"""ESLint's `--format json`: errors fail, warnings where the exit code says so (`--max-warnings`).

Refuses a list without files. Findings that the code suppresses are none.
"""

import json
from typing import Any

from fixloop.protocol.failures import Failure, Severity
from fixloop.reports.document import json_object
from fixloop.reports.limits import clean, short_name
from fixloop.reports.report import Report, Unusable
from fixloop.reports.results import findings_report
from fixloop.reports.tree import SourceTree

_ERROR = 2


def read_eslint(content: bytes, tree: SourceTree) -> Report:
    """
    What the JSON in `content` says.

    Raises:
        Unusable: it is not ESLint's, or names no file that was looked at.
    """
    files = _files(content)
    if not files:
        raise Unusable("proves nothing: it names no file that was looked at")
    errors: list[Failure] = []
    warnings: list[Failure] = []
    for file in files:
        path = tree.relative(file["filePath"])
        for message in file["messages"]:
            (errors if message["severity"] == _ERROR else warnings).append(_finding(path, message))
    return findings_report(errors, warnings, f"{len(files)} files")


def _files(content: bytes) -> list[dict[str, Any]]:
    # The reader of objects refuses what two readers would understand differently; ESLint writes a list.
    files = json_object(b'{"files":' + content + b"}")["files"]
    if not isinstance(files, list) or not all(isinstance(file, dict) for file in files):
        raise Unusable("is JSON, but not ESLint's: it is no list of files")
    if not all({"filePath", "messages"} <= file.keys() for file in files):
        raise Unusable(f"is JSON, but not ESLint's: {json.dumps(files[0])[:80]} is no file")
    return files


def _finding(path: str, message: dict[str, Any]) -> Failure:
    rule = message.get("ruleId") or ("fatal" if message.get("fatal") else "eslint")
    return Failure(
        name=short_name(rule),
        file=path,
        line=message.get("line") or None,
        error_type=short_name(rule),
        message=clean(message["message"]),
        severity=Severity.MEDIUM if message["severity"] == _ERROR else Severity.LOW,
    )
