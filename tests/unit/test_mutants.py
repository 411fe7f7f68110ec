"""The table of rules that `make mutants` switches off fits the sources and the tests."""

import ast

import pytest

from tests.mutants.rules import PROTOCOL, Rule, WrongRule, proofs_of, rules, switched_off
from tests.proofs import ROOT, statements

RULES = rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_can_be_switched_off(rule: Rule) -> None:
    before = (ROOT / PROTOCOL / rule.file).read_text(encoding="utf-8")

    assert ast.dump(ast.parse(switched_off(rule))) != ast.dump(ast.parse(before))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_has_a_quick_test_that_cites_it(rule: Rule) -> None:
    stated = {number for told in statements().values() for number in told}

    assert set(rule.requirements) <= stated
    assert proofs_of(rule)


def test_there_are_thirty_rules_and_no_two_are_called_alike() -> None:
    assert len(RULES) == len({rule.name for rule in RULES}) == 30


def test_a_snippet_that_is_not_there_or_there_twice_is_refused() -> None:
    with pytest.raises(WrongRule, match="occurs 0 times"):
        switched_off(RULES[0]._replace(snippet="no such line"))
    with pytest.raises(WrongRule, match=r"occurs [2-9]\d* times"):
        switched_off(RULES[0]._replace(snippet="def "))


def test_a_replacement_that_is_no_python_is_refused() -> None:
    with pytest.raises(WrongRule, match="does not compile"):
        switched_off(RULES[0]._replace(replacement="return ("))
