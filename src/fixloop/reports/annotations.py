"""Findings in the forms of tools that write no `path:line: message`: annotations for a CI, TypeScript's, Prettier's.

Annotations carry a level: where one is an error, warnings are left out, for they are not why the command failed.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from fixloop.protocol.failures import Failure, Severity
from fixloop.reports.limits import short_name
from fixloop.reports.tree import SourceTree

# oxlint and biome with the format `github`.
_ANNOTATION: Final = re.compile(r"::(?P<level>error|warning) (?P<keys>[^:]{1,2000})::(?P<message>.+)")
_KEY: Final = re.compile(r"(?:^|,)(file|line|title)=([^,]*)")
_TYPESCRIPT: Final = re.compile(
    r"(?P<path>[^\s(][^(]{0,500})\((?P<line>\d{1,7}),\d{1,7}\): "
    r"(?P<level>error|warning) (?P<code>TS\d+): (?P<message>.+)"
)
_PRETTIER: Final = re.compile(
    r"\[(?P<level>warn|error)\] (?P<path>[^:]{1,500}?)(?:: (?P<message>.+?(?: \((?P<line>\d+):\d+\))?))?$"
)


def annotations_in(output: str, tree: SourceTree) -> tuple[Failure, ...]:
    """The findings in `output` that stand in one of these forms and name a file of the workspace."""
    found = [finding for text in output.splitlines() for finding in _findings(text, tree)]
    errors = tuple(finding for finding in found if finding.severity is not Severity.LOW)
    return errors or tuple(found)


def _findings(text: str, tree: SourceTree) -> Iterator[Failure]:
    if match := _ANNOTATION.match(text):
        keys = dict(_KEY.findall(match["keys"]))
        path = tree.relative(unquote(keys.get("file", "")))
        message = re.sub(rf"^{re.escape(path)}:\d+:\d+: ", "", unquote(match["message"]))
        rule = unquote(keys.get("title", "")) or match["level"]
        finding = _finding(path, keys.get("line"), rule, message, match["level"])
    elif match := _TYPESCRIPT.match(text):
        finding = _finding(
            tree.relative(match["path"]), match["line"], match["code"], match["message"], match["level"]
        )
    elif match := _PRETTIER.match(text):
        message = match["message"] or "is not formatted as Prettier would"
        rule = "format" if match["level"] == "warn" else "syntax"
        finding = _finding(tree.relative(match["path"]), match["line"], rule, message, "error")
    else:
        return
    if tree.has_file(finding.file):
        yield finding


def _finding(path: str, line: str | None, rule: str, message: str, level: str) -> Failure:
    return Failure(
        name=short_name(rule),
        file=path,
        line=int(line) if line and line.isdigit() else None,
        error_type=short_name(rule),
        message=message.strip(),
        severity=Severity.LOW if level == "warning" else Severity.MEDIUM,
    )
