"""The table of rules that `make mutants` switches off fits the sources and the tests."""

import ast
import re
from functools import cache

import pytest

from tests.mutants.rules import Rule, WrongRule, asked_first, proofs_of, replaced, rules, switched_off
from tests.mutants.sample import asked, drawn
from tests.proofs import ROOT, statements

RULES = rules()


@cache
def statements_of(file: str) -> list[ast.stmt]:
    return ast.parse((ROOT / file).read_text(encoding="utf-8")).body


def changes_something(rule: Rule) -> bool:
    """Whether the statements that the rule is a part of compile without it, and differ by more than their layout."""
    without = replaced(rule)
    before = (ROOT / rule.file).read_text(encoding="utf-8")
    if not rule.file.endswith(".py"):
        return without != before
    first = before[: before.index(rule.snippet)].count("\n") + 1
    last = first + rule.snippet.count("\n")
    touched = [node for node in statements_of(rule.file) if node.end_lineno and node.end_lineno >= first]
    begin = min(node.lineno for node in (touched[0], *getattr(touched[0], "decorator_list", ()))) - 1
    end = next((node.end_lineno for node in touched if node.end_lineno and node.end_lineno >= last), last)
    lines, others = before.splitlines(), without.splitlines()
    here, there = lines[begin:end], others[begin : len(others) - len(lines) + end]
    tree = ast.parse("\n".join(there))
    compile(tree, rule.file, "exec")
    return ast.dump(ast.parse("\n".join(here))) != ast.dump(tree)


@pytest.mark.heavy
def test_each_rule_can_be_switched_off() -> None:
    assert [rule.name for rule in RULES if not changes_something(rule)] == []


@pytest.mark.heavy
def test_each_rule_has_a_test() -> None:
    stated = {number for told in statements().values() for number in told}

    for rule in RULES:
        proofs = proofs_of(rule)
        assert proofs, rule.name
        assert set(rule.requirements) <= stated, rule.name
        assert set(rule.tests) <= {proof.name for proof in proofs}, rule.name


def test_each_of_sixty_requirements_picked_at_random_has_a_rule() -> None:
    assert [told for told in (asked(number, RULES) for number in drawn(60, 13)) if told] == []


def test_there_are_sixty_rules_and_no_two_have_the_same_name() -> None:
    assert len(RULES) == len({rule.name for rule in RULES}) >= 60


@pytest.mark.heavy
def test_before_a_rule_is_switched_off_its_quick_or_slow_tests_must_pass() -> None:
    quick = "test_a_request_states_the_goal_first"
    slow = "test_without_a_timekeeper_status_says_that_clocks_have_stopped"
    rule = RULES[0]._replace(requirements=(), tests=())

    assert asked_first(rule._replace(tests=(quick, slow))) == [f"tests/unit/test_grouping.py::{quick}"]
    assert asked_first(rule._replace(tests=(slow,))) == [f"tests/e2e/test_timekeeper.py::{slow}"]
    assert asked_first(rule) == []


@pytest.mark.heavy
def test_a_sample_repeats_for_its_seed_and_names_requirements_without_a_rule() -> None:
    numbers = drawn(40, 13)

    assert numbers == drawn(40, 13) != drawn(40, 14)
    assert len(set(numbers)) == 40
    asked_for = asked("D17", [])
    assert asked_for.startswith("D17: Of two agents that accept one handoff, one succeeds.\n")
    assert re.search(r"code  src/fixloop/profiles/handoff/runs\.py:\d+\n", asked_for)
    assert "::test_a_handoff_is_accepted_once_by_its_addressee_only" in asked_for
    assert asked("D17", [RULES[0]._replace(requirements=("D16", "D17"))]) == ""


def test_a_missing_or_repeated_snippet_is_refused() -> None:
    with pytest.raises(WrongRule, match="occurs 0 times"):
        switched_off(RULES[0]._replace(snippet="no such line"))
    with pytest.raises(WrongRule, match=r"occurs \d+ times"):
        switched_off(RULES[0]._replace(snippet="\n"))


def test_a_replacement_that_is_no_python_is_refused() -> None:
    with pytest.raises(WrongRule, match="does not compile"):
        switched_off(RULES[0]._replace(replacement="return ("))
