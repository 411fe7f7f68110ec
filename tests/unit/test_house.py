"""Circles, as `make lint` finds them in the code's structure."""

from tests.house import circles


def test_a_circle_is_a_node_that_reaches_itself_through_others() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}

    assert circles(graph) == [{"a", "b", "c"}]
    assert circles(graph | {"c": {"d"}}) == []
    assert sorted(map(sorted, circles(graph | {"e": {"d"}}))) == [["a", "b", "c"], ["d", "e"]]
