"""The choice of a sandbox, and the surroundings of a hidden path."""

import sys
from pathlib import Path

import pytest

from fixloop.errors import InfrastructureError
from fixloop.machine.landlock import around
from fixloop.machine.sandbox import Confinement, confined, means_in_use


def test_the_surroundings_of_hidden_paths_are_everything_else(tmp_path: Path) -> None:
    for name in ("a/b/hidden/deep", "a/b/seen", "a/own", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a/b/hidden")
    (tmp_path / "a/file").touch()
    top = str(tmp_path)

    found = set(around(top, [f"{top}/a/b/hidden"]))

    assert found == {f"{top}/a/b/seen", f"{top}/a/own", f"{top}/a/file", f"{top}/c"}
    assert list(around(top, ["/elsewhere"])) == [top]
    assert list(around(top, [top])) == []


def test_a_system_without_a_sandbox_says_so_and_runs_unconfined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert means_in_use() == ("none", "this system has neither bubblewrap nor Landlock")
    made = confined(Confinement(()), {}, cwd=Path("/"))
    assert (made.name, made.before, made.rules, dict(made.variables)) == ("none", (), "", {})
    with pytest.raises(InfrastructureError, match="a sandbox is required, and there is none: this system"):
        confined(Confinement(()), {}, cwd=Path("/"), mode="require")


def test_the_operator_overrides_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    assert means_in_use("off") == ("none", "it is switched off")
    monkeypatch.setenv("FIXLOOP_SANDBOX", "off")
    assert means_in_use("require") == ("none", "it is switched off")
    confined(Confinement(()), {}, cwd=Path("/"), mode="require")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("FIXLOOP_SANDBOX", "require")
    with pytest.raises(InfrastructureError, match="a sandbox is required"):
        confined(Confinement(()), {}, cwd=Path("/"), mode="off")
