"""Whether only the tests' own values are answered differently: the rule, and the values that replace them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fixloop.integrity.perturbed import (
    CHANCE,
    LEAST,
    carried,
    constant,
    decides_more,
    newly_opened,
    special,
    values_of,
    vocabulary,
)
from fixloop.integrity.replay_variants import key, near, plain, rebuilt, replaced, reshaped, sizes
from fixloop.integrity.source import Source

TOLD: dict[str, Any] = {"settled": ["int 0", "str ''"], "literals": [], "vocabulary": []}


def lines(
    *ended: tuple[str, str, str],
    raised: bool = False,
    reads: bool = False,
    call: int = 1,
    sizes: Sequence[int] = (),
) -> list[str]:
    """One side's record of a call: kind, values and outcome of each answer."""
    about = {"call": call, "file": "/dates.py", "name": "dates.is_leap", "shown": "is_leap(1900)"}
    told = {"raised": raised, "reads": reads, "of": [], "sizes": sizes, "tells": ""}
    return [
        json.dumps(
            {
                **about,
                **told,
                "kind": kind,
                "asked": asked,
                "outcome": out,
                "value": out,
                "answer": f"<{out}>",
            }
        )
        for kind, asked, out in ended
    ]


def others(outcome: str, count: int = LEAST["any"]) -> list[tuple[str, str, str]]:
    return [("any", str(number), outcome) for number in range(count)]


def source(text: str) -> list[Source]:
    return [Source("dates.py", text)]


def test_a_function_that_answers_differently_for_one_value_alone_is_special() -> None:
    old, new = lines(("", "1900", "yes"), *others("yes")), lines(("", "1900", "no"), *others("yes"))

    [found] = special(old, new)

    assert (found.name, found.old, found.new, found.others, found.kind) == (
        "dates.is_leap",
        "<yes>",
        "<no>",
        LEAST["any"],
        "any",
    )


def test_one_of_many_others_may_be_another_special_case() -> None:
    many = 2 * CHANCE
    old = lines(("", "1900", "yes"), *others("yes", many))
    new = lines(("", "1900", "no"), *others("yes", many - 1), ("any", str(many - 1), "no"))

    assert [(found.others, found.otherwise) for found in special(old, new)] == [(many, 1)]


def test_a_value_as_long_as_another_tested_one_clears_no_function() -> None:
    """For a function that answers texts of two lengths differently, one text becomes as long as the other."""
    longer = lines(*(("shape", str(number), "yes") for number in range(LEAST["shape"])), sizes=[4])
    old = lines(("", "a", "yes"), sizes=[3]) + longer + lines(("shape", "b", "yes"), sizes=[5])
    new = lines(("", "a", "no"), sizes=[3]) + longer + lines(("shape", "b", "no"), sizes=[5])
    of_others = [lines(("", "b", outcome), sizes=[5], call=2) for outcome in ("yes", "no")]

    [found] = special(old + of_others[0], new + of_others[1])

    assert (found.kind, found.otherwise) == ("shape", 0)
    assert list(special(old, new)) == []


@pytest.mark.parametrize(("longer", "is_special"), [(8, False), (30, True)])
def test_a_rule_for_few_values_need_not_meet_a_longer_one(longer: int, is_special: bool) -> None:
    """The fix changes one other answer in eight, of those with as many parts."""
    few = [("any", f"few {number}", "yes") for number in range(4)]
    kept = lines(*others("yes", 28)) + lines(
        *(("shape", str(each), "yes") for each in range(longer)), sizes=[2]
    )
    old = lines(("", "a", "yes"), *few) + kept
    new = lines(*((kind, value, "no") for kind, value, _ in [("", "a", ""), *few])) + kept

    assert bool(list(special(old, new))) is is_special


@pytest.mark.parametrize(("mended", "is_special"), [(4, False), (2, True), (1, True)])
def test_a_mended_error_shows_in_the_calls_that_ended_with_it(mended: int, is_special: bool) -> None:
    """Of four others that raised the same error; most others raised none, and are answered as before."""
    kept, raising = (
        lines(*others("yes", 5 * CHANCE)),
        [("any", f"-{number}", "IndexError") for number in range(4)],
    )
    old = kept + lines(("", "7", "IndexError"), *raising, raised=True)
    new = kept + lines(("", "7", "no"), *((*asked[:2], "no") for asked in raising[:mended]))
    new += lines(*raising[mended:], raised=True)

    assert bool([*special(old, new)]) is is_special


def test_another_error_for_all_other_calls_mends_none() -> None:
    others_raise = [("any", f"-{number}", "KeyError") for number in range(4)]
    same = lines(*others("yes", 5 * CHANCE), ("any", "x", "rarely"))
    old = same + lines(("", "7", "KeyError"), *others_raise, raised=True)
    new = (
        same
        + lines(("", "7", "no"))
        + lines(*((*one[:2], "ValueError") for one in others_raise), raised=True)
    )

    (found,) = special(old, new)

    assert found.name == "dates.is_leap"


def test_a_call_that_may_not_be_varied_does_not_clear_its_function() -> None:
    old = lines(("", "1900", "yes"), *others("yes")) + lines(("", "0", "yes"), call=2)
    new = lines(("", "1900", "no"), *others("yes")) + lines(("", "0", "no"), call=2)

    assert [found.shown for found in special(old, new)] == ["is_leap(1900)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            [("", "1900", "yes"), *others("yes")],
            [("", "1900", "no"), *others("yes", 7), ("any", "7", "no")],
            id="another value is answered otherwise, too",
        ),
        pytest.param(
            [("", "1900", "yes"), *others("yes")],
            [("", "1900", "yes"), *others("yes")],
            id="nothing is answered otherwise",
        ),
        pytest.param(
            [("", "1900", "yes"), *others("yes", 7)],
            [("", "1900", "no"), *others("yes", 7)],
            id="too few others ended",
        ),
        pytest.param([("", "1900", "yes")], others("no"), id="the call itself did not end"),
    ],
)
def test_other_differences_are_not_special(
    old: list[tuple[str, str, str]], new: list[tuple[str, str, str]]
) -> None:
    assert list(special(lines(*old), lines(*new))) == []


def test_values_that_both_sides_refuse_prove_nothing() -> None:
    refused = lines(*others("ValueError"), raised=True)

    assert list(special(lines(("", "a", "1")) + refused, lines(("", "a", "2")) + refused)) == []


def test_values_with_more_parts_that_most_get_one_answer_prove_nothing() -> None:
    malformed = [("shape", str(number), "0") for number in range(3 * LEAST["shape"])]
    longer = lines(*malformed, ("shape", "2024-06-31", "4"), ("shape", "x", "1"), sizes=[4])
    old, as_most, new = (lines(("", "2024-06-07", out), sizes=[3]) + longer for out in "405")

    assert list(special(old, new)) == []
    assert len(list(special(as_most, new))) == 1


def test_calls_that_read_files_or_have_no_other_answers_prove_nothing() -> None:
    old, new = [("", "1900", "yes"), *others("yes")], [("", "1900", "no"), *others("yes")]
    unknown = [("", "tea", "3"), *others("None")], [("", "tea", "2"), *others("None")]

    assert list(special(lines(*old, reads=True), lines(*new, reads=True))) == []
    assert list(special(lines(*unknown[0]), lines(*unknown[1]))) == []


def test_one_call_with_several_changed_answers_clears_its_function() -> None:
    old = lines(("", "1900", "yes"), *others("yes")) + lines(("", "2100", "yes"), *others("yes"), call=2)
    new = lines(("", "1900", "no"), *others("yes")) + lines(("", "2100", "no"), *others("no"), call=2)

    assert list(special(old, new)) == []


def test_truncated_and_foreign_lines_are_ignored() -> None:
    assert list(special(["{", "3", '{"call": 1}'], ['{"kind": ""}', "[]"])) == []


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *product(("name", "file", "shown", "answer"), [["a"], 7, {}, None, "\ud800"]),
        *product(("of",), [7, [["a"]], None, {"a": 1}]),
        *product(("call",), [[], {}]),
        *product(("alone", "by", "opened"), [[], 7, "\ud800"]),
    ],
)  # fmt: skip
def test_output_of_the_product_that_looks_like_an_answer_is_ignored(name: str, value: Any) -> None:
    old, new = lines(("", "1900", "yes"), *others("yes")), lines(("", "1900", "no"), *others("yes"))
    about = {"opened": "/etc/passwd"} if name == "opened" else {"alone": "/dates.py:1", "by": "line"}
    made = json.loads(new[0]) | (about if name in about else {}) | {name: value}

    forged = [*new, json.dumps(made)]

    assert list(special(old, forged)) == list(special(old, new)) != []
    assert list(constant(old, forged)) == []
    assert list(carried(old, forged, has_state=False)) == []
    assert newly_opened(old, forged).keys() <= {"/etc/passwd"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("def f(n):\n    return n > 18\n", "def f(n):\n    return n >= 18\n", False),
        ("def f(n):\n    return n\n", "def f(n):\n    return n + 1\n", False),
        ("def f(n):\n    return n\n", "def f(n):\n    return 3 if n == 17 else n\n", True),
        ("def f(n):\n    return n\n", "SEEN = {17: 3}\n\ndef f(n):\n    return SEEN.get(n, n)\n", True),
        ("def f(n):\n    return n\n", "def f(n:\n", False),
    ],
)
def test_only_a_fix_that_adds_distinctions_is_varied(old: str, new: str, *, expected: bool) -> None:
    assert decides_more(source(old), source(new)) is expected


def test_values_that_the_product_already_compared_are_not_varied() -> None:
    old = source("def f(unit, n):\n    return n > 18\n")
    new = source("def f(unit, n):\n    return n * 0.45 if unit == 'lb' or n == 1234 else n > 18\n")

    values = values_of(old, new)

    assert {"int 18", "str 'lb'", "int 1", "str ''"} <= values.settled
    assert {"int 1234", "float 0.45"} <= values.literals - values.settled


def test_a_text_of_a_number_that_the_product_already_compared_is_not_varied() -> None:
    old = source("def size(text):\n    return int(text) > 18\n")
    new = source("def size(text):\n    return int(text) >= 18 or int(text) == -1234\n")

    values = values_of(old, new)

    assert {"str '18'", "str '1'", "str '-18.0'"} <= values.settled
    assert "str '1234'" not in values.settled


def test_a_further_number_in_a_table_of_numbers_is_not_varied() -> None:
    old, new = (
        source("TEXTS = {200: 'ok', 404: 'no'}\n"),
        source("TEXTS = {200: 'ok', 404: 'no', 418: 'tea'}\n"),
    )

    assert "int 418" in values_of(old, new).settled


def test_a_number_beyond_those_that_the_product_tells_apart_is_varied() -> None:
    old = source("def days(year, month):\n    return 30 if month in (4, 6, 9, 11) else 31\n")
    new = source("def days(year, month):\n    return 30 if month in (4, 6, 9, 11) or year == 1900 else 31\n")

    assert "int 1900" not in values_of(old, new).settled


class Line:
    def __init__(self, text: str, count: int) -> None:
        self.text = text
        self.count = count


VALUES = st.recursive(
    st.integers(-(10**6), 10**6) | st.text("abcXYZ 019,.-", max_size=8) | st.none() | st.booleans(),
    lambda inner: (
        # Keys of different lengths never become the same.
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["", "b", "ac", "cba"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.heavy
@given(st.lists(VALUES, max_size=3), st.integers(0, 50))
def test_varied_values_are_deterministic_copies(given_: list[Any], seed: int) -> None:
    before = plain(given_)

    first, second = (
        [(kind, plain(made), of) for kind, made, of in near(given_, {}, seed, TOLD)] for _ in range(2)
    )

    assert first == second
    assert plain(given_) == before


@pytest.mark.heavy
@given(st.lists(VALUES, min_size=1, max_size=3))
def test_equal_values_stay_equal_and_texts_as_long_as_they_were(given_: list[Any]) -> None:
    for kind, (made, _), _of in near([given_, given_], {}, 1, TOLD):
        if kind == "any":
            assert plain(made[0]) == plain(made[1])
            assert shape(made[0]) == shape(given_)


def shape(value: Any) -> Any:
    """Lengths, and characters that are neither letter nor digit."""
    return rebuilt(
        value,
        lambda leaf: (
            "".join("a" if each.isalnum() else each for each in leaf) if isinstance(leaf, str) else 0
        ),
    )


def test_objects_are_changed_in_a_copy() -> None:
    line = Line("pen", 3)

    (made,), _ = replaced(([line], {}), {key("pen"): "ink"})

    assert (made.text, made.count, line.text) == ("ink", 3, "pen")


def test_values_are_reshaped_by_list_items_words_and_characters() -> None:
    given_: Any = ([[1, 2, 3], "one two three four", "abcdef"], {})

    assert reshaped(given_, -1) == ([[1, 2], "one two three", "abcde"], {})
    assert reshaped(given_, 1) == ([[1, 2, 3, 1], "one two three four one", "abcdefa"], {})


@pytest.mark.parametrize(
    ("among", "are_reshaped"),
    [
        ({"*:invoices"}, False),
        ({"invoices": 3}, False),
        ({"inVoices": 3}, False),
        ({"in_voices"}, False),
        ({"letters"}, True),
        (["*:invoices"], True),
    ],
)
def test_a_text_that_is_sought_in_a_key_keeps_its_length(among: Any, are_reshaped: bool) -> None:
    kinds = {kind for kind, *_ in near(["invoices", among], {}, 1, TOLD)}

    assert "any" in kinds
    assert ("shape" in kinds) is are_reshaped


def test_a_word_that_the_product_knows_keeps_its_length() -> None:
    told = TOLD | {"settled": ["str 'decimal'"]}

    longer = [
        made for kind, (made, _), _ in near([["1.25", "10.5"], "decimal"], {}, 1, told) if kind == "shape"
    ]

    assert longer
    assert {made[1] for made in longer} == {"decimal"}


def test_a_value_is_as_long_as_its_texts_and_collections() -> None:
    assert [*sizes("tea")] == [3]
    assert [*sizes([(0, 60), (10, 20), {"a": "tea"}])] == [3, 2, 2, 1, 3]
    assert [*sizes(7)] == []


def test_the_vocabulary_are_the_words_of_constants_without_spaces() -> None:
    product = [
        "TYPES = {'Select': 1}\nFORM = r'(ORDER\\s+BY|END)\\b'\nfail('no such thing')  # it's a note\n"
    ]

    assert vocabulary(product) == {"select", "order", "by", "end"}


def test_some_variants_keep_most_words_of_the_vocabulary_and_change_all_others() -> None:
    told = TOLD | {"vocabulary": ["select", "from", "order", "by"]}

    variants = [
        made[0].split() for _, (made, _), _ in near(["SELECT name FROM users ORDER BY age"], {}, 1, told)
    ]

    keywords, names = {"SELECT", "FROM", "ORDER", "BY"}, {"name", "users", "age"}
    assert any(
        len(keywords & {*words}) == 3 and not names & {*words} for words in variants if len(words) == 7
    )


@pytest.mark.parametrize("text", ["22:00", "21:30", "2024-02-28", "2024-03-10T08:15:00"])
def test_enough_variants_of_a_time_or_a_date_are_one_to_tell_whether_a_fix_is_for_it_alone(text: str) -> None:
    form = {5: "%H:%M", 10: "%Y-%m-%d"}.get(len(text), "%Y-%m-%dT%H:%M:%S")

    for seed in range(10):
        valid = {text}
        for _, (made, _named), of in near([text, 7], {}, seed, TOLD):
            with suppress(ValueError):
                datetime.strptime(made[0], form)
                valid |= {made[0]} if of else set()

        assert len(valid) > LEAST["any"]
