import pytest

from inventory.stock import Stock


def test_deliveries_and_sales_change_the_count():
    stock = Stock({"tea": 4})
    stock.receive("tea", 6)

    assert stock.sell("tea", 3) == 0
    assert stock.count("tea") == 7


def test_a_sale_never_takes_more_than_there_is():
    stock = Stock({"tea": 2})

    assert stock.sell("tea", 5) == 3
    assert stock.count("tea") == 0


def test_a_delivery_of_nothing_is_refused():
    with pytest.raises(ValueError, match="a delivery of 0 tea"):
        Stock().receive("tea", 0)
