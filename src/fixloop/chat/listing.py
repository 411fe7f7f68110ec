"""Findings for people, programs and code hosts: text, JSON, SARIF 2.1.0."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from fixloop import __version__
from fixloop.chat.findings import RULES, Finding, errors_of

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Examined(NamedTuple):
    """What was looked at, and what was found."""

    chats: int
    messages: int
    findings: Sequence[Finding]

    @property
    def errors(self) -> int:
        return len(errors_of(self.findings))


def as_text(examined: Examined) -> str:
    """One line for each finding, and one that sums up."""
    return "\n".join([*map(str, examined.findings), summed_up(examined)])


def summed_up(examined: Examined) -> str:
    """`2 chats, 3 messages: 1 error, 0 warnings`"""
    warnings = len(examined.findings) - examined.errors
    return (
        f"{_count(examined.chats, 'chat')}, {_count(examined.messages, 'message')}:"
        f" {_count(examined.errors, 'error')}, {_count(warnings, 'warning')}"
    )


def as_json(examined: Examined) -> dict[str, Any]:
    """`chats, messages, errors, warnings, findings[]`; a line is null where a finding is about a whole file."""
    return {
        "chats": examined.chats,
        "messages": examined.messages,
        "errors": examined.errors,
        "warnings": len(examined.findings) - examined.errors,
        "findings": [finding._asdict() | {"line": finding.line or None} for finding in examined.findings],
    }


def as_sarif(examined: Examined) -> dict[str, Any]:
    """A log with one run; every rule is in it, broken or not."""
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    driver = {"name": "fixloop-chat", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(finding) for finding in examined.findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _result(finding: Finding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file)}}
    if finding.line:
        place["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": finding.level.value,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }
