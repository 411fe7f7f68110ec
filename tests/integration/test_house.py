"""What `make lint` says of the code's structure."""

import pytest

from tests import house
from tests.house import figures, main

pytestmark = pytest.mark.slow


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
