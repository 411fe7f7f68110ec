"""What `cargo clippy --message-format=json` prints: lints and build errors, one JSON object on a line.

Refuses an output without the last message, which says how the build ended. Lines that are no JSON are Cargo's
own talk.
"""

import json
from typing import Any

from fixloop.protocol.failures import Failure
from fixloop.reports.limits import clean
from fixloop.reports.report import Report, Unusable, finding, findings_report
from fixloop.reports.tree import SourceTree


def read_clippy(content: bytes, tree: SourceTree) -> Report:
    """The findings in `content`; the same in two targets is one. Raises Unusable: the build did not end."""
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
            # A closing `2 warnings emitted` or `aborting due to` is no finding.
            if spans or (
                message["level"] == "error" and not str(message["message"]).startswith("aborting due to")
            ):
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
