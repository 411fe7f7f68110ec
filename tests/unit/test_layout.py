"""The common layout of the protocol's records; each whole layout is in its golden file (A86, B57)."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from fixloop.protocol import rendering
from fixloop.protocol.rendering import fill, render
from tests.fixtures.message_samples import ESCALATION, REPORT, SAMPLES
from tests.unit.test_rendering import GOLDEN


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.md").read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    return text.split(f"{title}\n", 1)[1].split("\n---\n", 1)[0]


@pytest.mark.proves("A45", "A48")
def test_an_escalation_has_its_sections_in_order_and_awaits_a_decision() -> None:
    text = render(ESCALATION)

    assert re.findall(r"^### (.*)", text, re.MULTILINE) == [
        "Escalation Summary",
        "Persistent Failures",
        "Iteration History",
        "Recommended Actions",
    ]
    assert "\n**Awaiting**: User Decision\n" in text


@pytest.mark.proves("B51", "B63")
def test_there_are_exactly_four_options_each_with_steps_and_one_risk() -> None:
    options = re.split(
        r"^\*\*Option \d: ", section(render(ESCALATION), "### Recommended Actions"), flags=re.M
    )[1:]

    assert len(options) == 4
    for option in options:
        steps = re.findall(r"^- (.*)", option, re.MULTILINE)
        assert [step.startswith("Risk: ") for step in steps] == [False] * (len(steps) - 1) + [True]
        assert len(steps) >= 3


@pytest.mark.proves("B21", "B22", "B6", "B7")
def test_a_report_has_one_block_of_failure_and_one_of_fix_for_each_failure() -> None:
    text = render(REPORT)

    failures = re.findall(r"^#### Failure (\d+): ", text, re.MULTILINE)
    assert failures == re.findall(r"^#### Fix for Failure (\d+)$", text, re.MULTILINE) == ["1", "2"]
    assert text.count("\n**Recommendation**:") == text.count("\n**Approach**: ") == 2


@pytest.mark.proves("B8", "B20")
def test_critical_failures_can_be_distinguished_from_the_others() -> None:
    text = render(REPORT)

    assert re.findall(r"^\*\*Priority\*\*: (\w+)", text, re.MULTILINE) == ["High", "Critical", "High"]
    assert "**Severity**: Critical\n" in text
    assert "**Critical Failures**: 1\n" in text


@pytest.mark.proves("A20", "A26", "A34")
@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("failure-report", "Validation Orchestrator (recursive-communicator skill)"),
        ("escalation", "Validation Orchestrator (recursive-communicator skill)"),
        ("fix-completion", "Feature Implementer Main Agent"),
        ("revalidation-result-fail", "Test Runner Specialist"),
    ],
)
def test_the_footer_is_the_sender_with_its_skill_where_it_has_one(name: str, signature: str) -> None:
    assert f"\n---\n\n**Sent by**: {signature}\n" in render(SAMPLES[name])


TEMPLATES = {
    path.name.removesuffix(".md.j2") for path in Path(rendering.__file__).parent.glob("templates/*.j2")
}
#: The six templates that the skill names and the further ones of its template file, by the names of ours.
NAMED = (
    *("failure-report", "fix-request", "revalidation-trigger", "success", "escalation", "flow-log"),
    *("fix-completion", "revalidation-result-pass", "revalidation-result-fail", "timeout-reminder"),
)


@pytest.mark.proves("B58", "B57")
@pytest.mark.parametrize("name", NAMED)
def test_every_template_that_the_documents_name_can_be_rendered_by_its_name(name: str) -> None:
    assert name in TEMPLATES
    with pytest.raises(UndefinedError):  # it lacks facts, and is no TemplateNotFound
        fill(name)
    assert golden(name)


@pytest.mark.proves("B57", "A86")
def test_every_template_has_a_golden_file() -> None:
    inner = {"answer-format", "failure", "sent"}  # parts of `delivery`, `sending` and violation notices

    assert {path.stem for path in GOLDEN.glob("*.md")} >= TEMPLATES - inner
