"""ESLint's `--format json`: errors fail, warnings where the exit code says so (`--max-warnings`).

Refuses a list without files. Findings that the code suppresses are none.
"""

import json

from fixloop.protocol.failures import Failure
from fixloop.reports.document import json_object
from fixloop.reports.limits import clean
from fixloop.reports.report import Report, Unusable, finding, findings_report
from fixloop.reports.tree import SourceTree

_ERROR = 2


def read_eslint(content: bytes, tree: SourceTree) -> Report:
    """What the JSON in `content` says. Raises Unusable: it is not ESLint's, or names no file that was looked at."""
    # The reader of objects refuses what two readers would understand differently; ESLint writes a list.
    files = json_object(b'{"files":' + content + b"}")["files"]
    if not isinstance(files, list) or not all(isinstance(file, dict) for file in files):
        raise Unusable("is JSON, but not ESLint's: it is no list of files")
    if not all({"filePath", "messages"} <= file.keys() for file in files):
        raise Unusable(f"is JSON, but not ESLint's: {json.dumps(files[0])[:80]} is no file")
    if not files:
        raise Unusable("proves nothing: it names no file that was looked at")
    errors: list[Failure] = []
    warnings: list[Failure] = []
    for file in files:
        path = tree.relative(file["filePath"])
        for message in file["messages"]:
            is_error = message["severity"] == _ERROR
            rule = message.get("ruleId") or ("fatal" if message.get("fatal") else "eslint")
            line, text = message.get("line") or None, clean(message["message"])
            found = finding(rule, path, line, text, is_warning=not is_error)
            (errors if is_error else warnings).append(found)
    return findings_report(errors, warnings, f"{len(files)} files")
