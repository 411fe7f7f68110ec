from inventory.__main__ import replay
from inventory.reorder import proposals
from inventory.stock import Stock


def test_only_items_below_their_minimum_are_ordered():
    stock = Stock({"tea": 10, "mugs": 12})

    assert proposals(stock, {"tea": 30, "mugs": 12}, {"tea": 10}) == {"tea": 2}


def test_a_week_is_replayed_day_by_day():
    week = {
        "opening": {"tea": 5},
        "minimum": {"tea": 20},
        "pack": {"tea": 10},
        "days": [{"delivered": {"tea": 10}}, {"sold": {"tea": 5}}],
    }

    assert replay(week) == {"tea": 1}
