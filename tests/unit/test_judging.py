"""Findings as stored: without secrets, within bounds, and without rules that a project switched off."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixloop.protocol.checks import Finding
from fixloop.secrets.redaction import Redaction
from workers.commands import specialist
from workers.commands.claim import Claim


def claimed(*off: str) -> Claim:
    ground = SimpleNamespace(redaction=Redaction(["hunter22"]))
    configuration = SimpleNamespace(integrity=SimpleNamespace(off=off))
    parts: dict[str, Any] = {"ground": ground, "configuration": configuration}
    return cast(Claim, SimpleNamespace(**parts))


def found_by(monkeypatch: pytest.MonkeyPatch, *found: Finding) -> None:
    def judge(claim: Claim) -> Iterator[Finding]:
        yield from found

    monkeypatch.setattr(specialist, "JUDGES", (judge,))


def test_a_shown_finding_has_no_secrets_or_parts_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    side = "x" * (specialist.SIDE_CHARACTERS - 4) + "hunter22"
    found_by(monkeypatch, Finding(rule="words", text="hunter22 is named", old=side, new="hunter22"))

    [found] = specialist.findings(claimed())

    assert "hunter22" not in found.text + found.old + found.new
    assert not found.old.endswith("hunt")
    assert len(found.old) <= specialist.SIDE_CHARACTERS


def test_very_many_findings_are_counted_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [Finding(rule="words", text=str(number)) for number in range(specialist.MOST_FINDINGS + 3)]
    found_by(monkeypatch, *many, Finding(rule="gate", text="once"))

    found = specialist.findings(claimed())

    assert len(found) == specialist.MOST_FINDINGS + 2
    assert [(each.rule, each.text) for each in found[-2:]] == [
        ("words", "3 more of this rule, not listed here"),
        ("gate", "1 more of this rule, not listed here"),
    ]


@pytest.mark.parametrize("off", ["words", "all"])
def test_a_rule_that_a_project_switched_off_finds_nothing(monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    found_by(monkeypatch, Finding(rule="words", text="seen"))

    assert specialist.findings(claimed(off)) == ()
