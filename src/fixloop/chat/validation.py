"""`fixloop chat validate`: checks trees of chats, a pull request's title and logs of agents, and reports the findings
to people, programs and code hosts."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from fixloop import __version__
from fixloop.chat.channels import log_findings
from fixloop.chat.directory import read_chat
from fixloop.chat.rules import examine
from fixloop.chat.tree import chats_below, printable, read_source
from fixloop.chat.vocabulary import AREAS, RULES, Finding, errors_of, shown
from fixloop.errors import UsageError

PLACE: Final = "pull-request"
"""The file in findings about a title."""
_TITLE: Final = re.compile(r"[0-9]{4} \[([a-z]{2})\] [a-z0-9-]+")
_COUNTED: Final = ("chats", "messages", "errors", "warnings")
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Examined(NamedTuple):
    """What was checked, and the findings."""

    chats: int
    messages: int
    findings: Sequence[Finding]

    @property
    def errors(self) -> int:
        return len(errors_of(self.findings))

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors


def examine_all(
    trees: Iterable[Path] = (), *, title: str | None = None, logs: Iterable[Path] = (), legacy_until: int = 0
) -> Examined:
    """Check everything, each chat once; a tree without a chat is refused, because unchecked chats have not passed."""
    findings = title_findings(title) if title is not None else []
    chats = messages = 0
    seen: set[Path] = set()
    for tree in trees:
        found = [one for one in chats_below(tree) if isinstance(one, Finding) or one.resolve() not in seen]
        if not found and not seen:
            raise UsageError(f"there is no chat in {tree}; name a chat, or a directory with chats")
        for one in found:
            if isinstance(one, Finding):
                findings.append(one)
                continue
            seen.add(one.resolve())
            chat = read_chat(one)
            findings += examine(chat, legacy_until)
            chats, messages = chats + 1, messages + len(chat.messages)
    for log in logs:
        name = printable(str(log))
        source = read_source(log, name)
        findings += log_findings(source.text, name) if source.text is not None else source.findings
    return Examined(chats, messages, findings)


def title_findings(title: str) -> list[Finding]:
    """The errors in the title of a chat's pull request (E40); a trailing line end from a shell is accepted."""
    text = title.removesuffix("\n").removesuffix("\r")
    hit = _TITLE.fullmatch(text)
    if hit is not None and hit[1] in AREAS:
        return []
    told = f"the title is {shown(text)}; it has to be {{id}} [{{area}}] {{slug}}, such as 0005 [dx] gh-sync"
    if hit is not None:
        told = f"the area in {shown(text)} is {hit[1]}; it has to be one of {', '.join(AREAS)}"
    return [Finding("pull-request", PLACE, told, field="title", value=text)]


def as_text(examined: Examined) -> str:
    """One line for each finding, and a summary."""
    return "\n".join([*map(str, examined.findings), summed_up(examined)])


def summed_up(examined: Examined) -> str:
    """`2 chats, 3 messages: 1 error, 0 warnings`"""
    counts = {name: getattr(examined, name) for name in _COUNTED}
    told = [f"{count} {name.removesuffix('s') if count == 1 else name}" for name, count in counts.items()]
    return f"{', '.join(told[:2])}: {', '.join(told[2:])}"


def as_json(examined: Examined) -> dict[str, Any]:
    """`chats, messages, errors, warnings, findings[]`; a line is null for a finding about a whole file."""
    counts = {name: getattr(examined, name) for name in _COUNTED}
    return counts | {"findings": [each._asdict() | {"line": each.line or None} for each in examined.findings]}


def as_sarif(examined: Examined) -> dict[str, Any]:
    """A log with one run; it contains every rule, violated or not."""
    results = []
    for finding in examined.findings:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file)}}
        if finding.line:
            place["region"] = {"startLine": finding.line}
        results.append(
            {
                "ruleId": finding.rule,
                "ruleIndex": list(RULES).index(finding.rule),
                "level": finding.level.value,
                "message": {"text": finding.message},
                "locations": [{"physicalLocation": place}],
            }
        )
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    driver = {"name": "fixloop-chat", "version": __version__, "rules": rules}
    invocations = [{"executionSuccessful": True}]
    run = {"tool": {"driver": driver}, "invocations": invocations, "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
