"""What `make lint` says of the code's structure."""

import pytest

from tests import house
from tests.house import circles, figures, main


def test_a_circle_is_what_reaches_itself_through_others() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}

    assert circles(graph) == [{"a", "b", "c"}]
    assert circles(graph | {"c": {"d"}}) == []
    assert sorted(map(sorted, circles(graph | {"e": {"d"}}))) == [["a", "b", "c"], ["d", "e"]]


def test_a_figure_that_is_worse_fails_the_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    today = figures()
    monkeypatch.setattr(house, "figures", lambda: today)
    assert main() == 0, capsys.readouterr().out

    monkeypatch.setattr(house, "figures", lambda: today | {"circles_of_files": 9})
    assert main() == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "WORSE" in line] == [
        "circles_of_files"
    ]
