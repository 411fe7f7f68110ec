"""What `cargo clippy --message-format=json` prints: lints and build errors, one JSON object on a line.

Refuses an output without the last message, which says how the build ended. Lines that are no JSON are Cargo's
own talk.
"""

import json
from collections.abc import Iterator
from typing import Any

from fixloop.protocol.failures import Failure, Severity
from fixloop.reports.limits import clean, short_name
from fixloop.reports.report import Report, Unusable
from fixloop.reports.results import findings_report
from fixloop.reports.tree import SourceTree


def read_clippy(content: bytes, tree: SourceTree) -> Report:
    """
    What the messages in `content` say; the same finding in two targets is one.

    Raises:
        Unusable: the build did not come to its end, or built nothing.
    """
    errors: dict[tuple[object, ...], Failure] = {}
    warnings: dict[tuple[object, ...], Failure] = {}
    targets, ended = set(), False
    for entry in _messages(content):
        if entry["reason"] == "compiler-message":
            message = entry["message"]
            found = _finding(message, tree)
            kept = errors if str(message["level"]).startswith("error") else warnings
            if message.get("spans") or not _is_summary(message):
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


def _messages(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.split(b"\n"):
        if line.startswith(b'{"reason":'):
            yield json.loads(line)


def _is_summary(message: dict[str, Any]) -> bool:
    """A closing `2 warnings emitted` or `aborting due to`: neither is a finding."""
    return message["level"] != "error" or str(message["message"]).startswith("aborting due to")


def _finding(message: dict[str, Any], tree: SourceTree) -> Failure:
    spans: list[dict[str, Any]] = message.get("spans", [])
    span = next((span for span in spans if span["is_primary"]), {})
    code = (message.get("code") or {}).get("code") or message["level"]
    return Failure(
        name=short_name(code),
        file=tree.relative(span.get("file_name", "")),
        line=span.get("line_start"),
        error_type=short_name(code),
        message=clean(message.get("rendered") or message["message"]).strip(),
        severity=Severity.LOW if message["level"] == "warning" else Severity.MEDIUM,
    )
