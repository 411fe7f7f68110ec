"""Recorded calls of JavaScript: what is read of them, their variants, and which trees' answers are compared."""

import json
from typing import Any

import pytest

from fixloop.integrity.node_calls import answers_of, calls_of, itself, job_of, lines_of, variants
from fixloop.integrity.perturbed import Values, changed, decides_more, special, values_of
from fixloop.integrity.source import Source

FILES = frozenset({"/calc/own.js"})
NOTHING_KEPT = Values(frozenset(), frozenset(), may_answer=False).kept


def call(
    *steps: tuple[str, list[Any]], answer: str = "1", file: str = "/calc/own.js", name: str = "own"
) -> str:
    return json.dumps([[[file, name, True]], steps, answer])


def answer(text: str, **more: Any) -> str:
    return json.dumps(
        {"raised": False, "reads": False, "opened": "", "after": "", "said": "", "text": text, "leaves": []}
        | more
    )


def test_a_call_is_shown_as_it_is_written() -> None:
    lines = [
        call(("()", ["tea", {"sugar": True}])),
        call(("new", [2]), (".add", [[1, None]]), (".total", []), name="Cart"),
        call(("new", [2]), ("=rate", []), name="Cart"),
        call(("make", [2]), ("()", [40]), name=""),
    ]

    calls = calls_of(lines, FILES)

    assert [each.shown for each in calls] == [
        'own("tea", {"sugar": true})',
        "new Cart(2).add([1, null]).total()",
        "new Cart(2).rate",
        "own(2)(40)",
    ]
    assert [each.name for each in calls] == ["own.own", "own.Cart.total", "own.Cart.rate", "own"]


def test_lines_that_are_no_calls_of_the_product_are_left_out() -> None:
    strange = ["", "[", "3", "null", "[[], [], 1]", '[[["/calc/own.js"]], [["()", 3]], 1]', "[" * 100_000]
    elsewhere = call(("()", [1]), file="/etc/passwd")

    assert calls_of([*strange, elsewhere], FILES) == []
    assert answers_of([*strange, "[0,0] {}", "[7,0] " + answer("1")], [0], FILES) == {}


def test_values_of_an_object_are_varied_and_its_names_are_not() -> None:
    [found] = calls_of([call(("()", [{"width": 250, "unit": "meter"}]))], FILES)

    [made] = variants({0: found}, NOTHING_KEPT).values()

    asked = json.loads(job_of([found], {0: made}))[0]["asked"]
    given = [steps[0][1][0] for steps in asked]
    assert given[0] == {"width": 250, "unit": "meter"}
    assert all(each.keys() == given[0].keys() for each in given)
    assert len({each["width"] for each in given}) > 20


def test_only_calls_that_answer_as_in_the_tests_and_not_as_before_are_varied() -> None:
    calls = calls_of([call(("()", [number])) for number in range(4)], FILES)
    old = answers_of([f"[{number},0] {answer('2')}" for number in range(3)], [*range(4)], FILES)
    new = answers_of(
        [f"[0,0] {answer('1')}", f"[1,0] {answer('2')}", f"[2,0] {answer('3')}", f"[3,0] {answer('1')}"],
        [*range(4)],
        FILES,
    )

    lines = [[*lines_of(calls, {}, side, frozenset())] for side in (old, new)]
    assert [own["call"] for own, *_ in changed(*lines)] == [0]


def test_the_answers_of_two_trees_become_lines_of_one_rule() -> None:
    calls = calls_of([call(("()", [1234]), answer="1")], FILES)
    asked = variants(dict(enumerate(calls)), NOTHING_KEPT)
    texts = [f"[0,{number}] {answer('2')}" for number in range(1, len(asked[0]))]
    old, new = (answers_of([f"[0,0] {answer(own)}", *texts], [0], FILES) for own in ("2", "1"))

    lines = [[*lines_of(calls, asked, side, frozenset())] for side in (old, new)]

    assert [(each.shown, each.old, each.new, each.otherwise) for each in special(*lines)] == [
        ("own(1234)", "2", "1", 0)
    ]
    assert itself(calls[0]) == asked[0][0]


def test_distinctions_and_values_of_javascript_are_seen() -> None:
    old = [Source("own.js", "export const f = (n) => n > 18;\n")]
    new = [Source("own.js", "export const f = (n) => (n === 1e3 || n === 0.45 ? 'much more' : n > 18);\n")]

    values = values_of(old, new)

    assert decides_more(old, new)
    assert not decides_more(old, [Source("own.js", "export const f = (n) => n >= 18;\n")])
    assert "int 18" in values.settled
    assert {"int 1000", "float 0.45", "str 'much more'"} <= values.literals
    assert values.may_answer


def test_a_further_number_of_a_switch_of_numbers_is_not_varied() -> None:
    switch = "switch (n) { case 200: return 1; case 404: return 2; }\n"
    table = "const texts = { 200: 'ok', 404: 'no' };\n"
    for text, more in ((switch, "case 418: return 3; }"), (table, ", 418: 'tea' }")):
        old, new = ([Source("own.js", each)] for each in (text, text.replace("}", more)))

        assert "int 418" in values_of(old, new).settled


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (["/node/fs.js:1", "/calc/own.js:12", "/calc/own.js:3"], "/calc/own.js:12"),
        (["/calc/own.js"], None),
        (["/calc/other.js:12"], None),
        ([], None),
    ],
)
def test_what_is_refused_is_told_by_the_first_line_of_a_changed_file(
    refused: list[str], told: str | None
) -> None:
    calls = calls_of([call(("()", [1]))], FILES)
    answers = answers_of([f"[0,0] {answer('1', refused=refused)}"], [0], ["/calc/own.js"])

    lines = map(json.loads, lines_of(calls, {}, answers, frozenset()))

    assert [each["alone"] for each in lines if "by" in each] == ([told] if told else [])


@pytest.mark.parametrize("refused", [[7], 7, None])
def test_a_forged_place_of_a_refusal_is_no_answer(refused: object) -> None:
    assert answers_of([f"[0,0] {answer('1', refused=refused)}"], [0], FILES) == {}
