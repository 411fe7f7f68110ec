"""Declining a fix: its forms, and which lines of a test are shown with the claim."""

import json

import pytest

from fixloop.protocol.answers import InvalidAnswer, parse_answer
from fixloop.protocol.declining import Kind, excerpt, file_of


def parse(text: str) -> tuple[bool, Kind | None, str]:
    found = parse_answer(text, issue=101, iteration=1, specialist="test-runner")
    return found.ready, found.declined, found.blocker


@pytest.mark.parametrize(
    "answer",
    [
        "DECLINED test-is-wrong: it expects 2 + 2 to be 5\n",
        json.dumps({"decline": {"kind": "test-is-wrong", "text": "it expects 2 + 2 to be 5"}}),
        '```json\n{"decline": {"kind": "test-is-wrong", "text": "it expects 2 + 2 to be 5"}}\n```\n',
    ],
)
def test_a_complete_answer_may_decline(answer: str) -> None:
    assert parse(answer) == (False, Kind.TEST_IS_WRONG, "it expects 2 + 2 to be 5")


def test_declining_needs_a_known_kind_and_a_reason() -> None:
    with pytest.raises(
        InvalidAnswer, match="'too-hard' is no reason to decline; there are test-is-wrong, needs-info"
    ):
        parse("DECLINED too-hard: it is")
    for said in ({}, {"kind": "blocked"}, {"kind": "blocked", "text": " "}, "no"):
        with pytest.raises(InvalidAnswer, match='field "decline" is to have'):
            parse(json.dumps({"decline": said}))
    with pytest.raises(InvalidAnswer, match="None"):
        parse(json.dumps({"decline": {"text": "why"}}))


def test_a_test_is_shown_from_its_definition_to_the_next() -> None:
    text = (
        "import shop\n\n\nclass TestShop:\n    def test_a(self):\n        pass\n\n"
        "    def test_sum(\n        self,\n    ):\n        assert shop.sum(2, 2) == 5\n\n"
        "    def test_z(self):\n        pass\n"
    )

    shown = excerpt(text, "tests/test_shop.py::TestShop::test_sum[2-2]", 11)

    assert shown == "    def test_sum(\n        self,\n    ):\n        assert shop.sum(2, 2) == 5"


def test_without_a_definition_the_lines_around_the_place_are_shown() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 101))

    shown = excerpt(text, "adds up", 50).splitlines()

    assert (shown[0], shown[-1]) == ("line 36", "line 65")
    assert excerpt("func TestSum(t *testing.T) {\n\tfail()\n}\n", "shop/TestSum", None).endswith("}")
    assert excerpt("", "a", None) == ""


def test_the_file_of_a_test_is_that_of_its_id() -> None:
    assert file_of("tests/test_shop.py::test_a", "shop.py") == "tests/test_shop.py"
    assert file_of("adds up", "shop.test.ts") == "shop.test.ts"
