"""What a person sees of a held run, the possible answers, and the counts."""

from datetime import UTC, datetime

import pytest

from fixloop.commands.choices import SHOWN_LINES, choices, finding_lines
from fixloop.commands.integrity import holds_in
from fixloop.commands.outcome import next_command, result_lines
from fixloop.protocol import events as ev
from fixloop.protocol.checks import Finding
from fixloop.protocol.messages import Decision
from tests.fixtures.command_stage import Agents
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.script import fails, held
from tests.fixtures.validation_stage import Stage


def held_stage() -> Stage:
    return Stage([fails("a"), held("words", "changed-test")], trusted="commit-0").run()


def test_both_sides_are_shown_and_long_ones_shortened() -> None:
    long = "\n".join(f"line {number}" for number in range(SHOWN_LINES + 3))
    found = Finding(
        rule="words", text="the product names pytest", file="src/a.py", line=3, old="x\ny", new=long
    )

    lines = finding_lines([found, Finding(rule="same-tree", text="it failed")])

    assert lines[:4] == [
        "  words: the product names pytest (src/a.py:3)",
        "    - x",
        "    - y",
        "    + line 0",
    ]
    assert lines[-3:] == [
        "    + … 3 more lines",
        "  same-tree: it failed",
        "  without these rules the verdict would be: passed",
    ]
    assert len([line for line in lines if line.startswith("    + line")]) == SHOWN_LINES
    assert finding_lines(()) == []


@pytest.mark.proves("I11")
def test_the_last_lines_name_the_hold_and_its_answers() -> None:
    state = held_stage().state

    head, *lines = result_lines(state)

    assert head.startswith(
        "#101 a feature waits for a decision: Integrity hold: run 2 of test-runner passed, and is held by words, "
        "changed-test (ESC-101-test-runner-"
    )
    assert "  words: words was seen (tests/test_a.py:3)" in lines
    assert "a broke" not in "\n".join(lines), "what has been mended is no failure"
    answers = [line for line in lines if line.startswith("fixloop decide 101")]
    assert answers[0].startswith('fixloop decide 101 accept --reason "…"')
    assert answers[1].startswith('fixloop decide 101 reject --reason "…"')
    assert len(answers) == len(Decision)
    assert not any("recommended" in line for line in answers)
    assert next_command(state) == "fixloop inbox"


def test_the_answers_to_other_escalations_are_unchanged() -> None:
    state = Stage([fails("a")] * 3).run().state

    assert {each.command.split()[3] for each in choices(state)} == {"manual-fix", "skip", "abort", "extend"}


def finished(iteration: int, *rules: str) -> ev.RunFinished:
    found = held(*rules).findings
    return ev.RunFinished(
        step="validate" if iteration == 1 else "recheck",
        specialist="test-runner",
        iteration=iteration,
        outcome="passed",
        tree="tree-0",
        findings=found,
    )


@pytest.mark.proves("I12")
def test_each_hold_counts_once_for_each_rule_with_its_answer() -> None:
    agents = Agents(MemoryStore(lambda: datetime(2026, 3, 1, 9, 0, tzinfo=UTC)))
    workflow = agents.start(trusted="commit-0", fixer="outside")
    for rules, decision in ((("words", "words"), Decision.EXTEND), (("words", "gate"), Decision.REJECT)):
        agents.apply(workflow, finished(1, *rules))
        agents.apply(workflow, ev.DecisionMade(decision=decision, by="ann"))

    assert list(holds_in(agents.store.history(workflow))) == [
        (("words",), "extend"),
        (("words", "gate"), "reject"),
    ]
    open_one = agents.start(48, trusted="commit-0")
    agents.apply(open_one, finished(1, "words"))
    assert list(holds_in(agents.store.history(open_one))) == [(("words",), "")]
    agents.apply(open_one, ev.Cancelled(by="ann"))
    assert list(holds_in(agents.store.history(open_one))) == [(("words",), "cancelled")]
