"""Detecting that the owner of a ticket has died: at once, never wrongly."""

import os

import pytest

from fixloop.machine.owner import (
    VARIABLE,
    age_seconds,
    identity,
    is_dead_here,
    machine,
    owner,
    pid_of,
    supervisor_of,
)


def test_this_process_is_alive() -> None:
    assert not is_dead_here(identity())


@pytest.mark.parametrize("owner", ["", "nobody", f"elsewhere/{machine()}/1/2", f"{machine()}/x/1"])
def test_an_owner_on_another_machine_is_unknown(owner: str) -> None:
    assert not is_dead_here(owner)


def test_a_reused_pid_is_another_process() -> None:
    assert is_dead_here(f"{machine()}/{os.getpid()}/1")


def test_an_owner_names_its_process() -> None:
    assert pid_of(identity()) == os.getpid()
    assert (pid_of(""), pid_of("nobody"), pid_of(f"{machine()}/x/1")) == (None, None, None)


def test_a_process_knows_its_age() -> None:
    first = age_seconds()

    assert 0.0 < first <= age_seconds() < 24 * 3600.0


@pytest.mark.proves("K40")
def test_a_process_of_a_worker_names_its_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (owner(), supervisor_of(owner())) == (identity(), "")
    monkeypatch.setenv(VARIABLE, identity(1))

    named = owner()

    assert supervisor_of(named) == identity(1)
    assert pid_of(named) == os.getpid()
    assert not is_dead_here(named)
    assert is_dead_here(f"{machine()}/{os.getpid()}/1@1:2")
    assert (supervisor_of(""), supervisor_of("nobody@"), supervisor_of("nobody")) == ("", "", "")
