from ledger.budget import parse_limits, warnings


def test_limits_are_read_from_lines():
    assert parse_limits("food = 400\nrent=800.50  # until May\n") == {
        "food": 40000,
        "rent": 80050,
    }


def test_a_category_over_its_limit_is_named_with_the_excess():
    assert warnings({"food": 40250, "fun": 1}, {"food": 40000}) == [
        "food: 2.50 over the limit of 400.00"
    ]


def test_a_category_at_its_limit_is_fine():
    assert warnings({"food": 40000}, {"food": 40000}) == []
