"""Findings of ESLint and clippy: errors fail; warnings fail if the exit code is not 0 (as with `--max-warnings`).

Reads ESLint's `--format json`, and `cargo clippy --message-format=json`: one JSON object per line, among Cargo's own
lines. Refuses an output that covers no file, or of a build that did not end.
"""

import json
from typing import Any

from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import clean
from fixloop.reports.document import json_object
from fixloop.reports.report import Report, SourceTree, Unusable, finding, findings_report


def read_eslint(content: bytes, tree: SourceTree) -> Report:
    """The report of the JSON in `content`. Raises Unusable: it is not ESLint's, or names no checked file."""
    # `json_object` refuses ambiguous JSON, but reads only objects; ESLint writes a list.
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
            is_error = message["severity"] == 2
            rule = message.get("ruleId") or ("fatal" if message.get("fatal") else "eslint")
            line, text = message.get("line") or None, clean(message["message"])
            found = finding(rule, path, line, text, is_warning=not is_error)
            (errors if is_error else warnings).append(found)
    return findings_report(errors, warnings, f"{len(files)} files")


def read_clippy(content: bytes, tree: SourceTree) -> Report:
    """The findings in `content`; the same one in two targets counts once. Raises Unusable: the build did not end."""
    errors: dict[tuple[object, ...], Failure] = {}
    warnings: dict[tuple[object, ...], Failure] = {}
    targets, ended = set(), False
    for line in content.split(b"\n"):
        if not line.startswith(b'{"reason":'):
            continue
        entry = json.loads(line)
        if entry["reason"] == "compiler-message":
            message = entry["message"]
            spans: list[dict[str, Any]] = message.get("spans", [])
            span = next((span for span in spans if span["is_primary"]), {})
            path, number = tree.relative(span.get("file_name", "")), span.get("line_start")
            rule = (message.get("code") or {}).get("code") or message["level"]
            text = clean(message.get("rendered") or message["message"]).strip()
            found = finding(rule, path, number, text, is_warning=message["level"] == "warning")
            kept = errors if str(message["level"]).startswith("error") else warnings
            # A closing `2 warnings emitted` or `aborting due to` is not a finding.
            is_closing = message["level"] != "error" or str(message["message"]).startswith("aborting due to")
            if spans or not is_closing:
                kept[found.key, found.line, found.message] = found
        elif entry["reason"] == "build-finished":
            ended = True
        if "target" in entry:
            targets.add(entry["target"]["src_path"])
    if not ended:
        raise Unusable("is not whole: it does not say that the build is finished")
    if not targets:
        raise Unusable("proves nothing: it names no target")
    return findings_report(tuple(errors.values()), tuple(warnings.values()), f"{len(targets)} targets")
