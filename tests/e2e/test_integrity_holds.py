"""A hold with real workers: the tree that failed passes without a change, and a person decides."""

import socket
from collections.abc import Iterator

import pytest

from tests.fixtures.project import RIGHT, Host, Project

pytestmark = pytest.mark.slow

ELSEWHERE = """\
import socket

def add(a, b):
    with socket.socket() as there:
        return a - b if there.connect_ex(("127.0.0.1", {port})) else a + b
"""
"""Passes or fails by something outside the tree."""


@pytest.fixture
def service() -> Iterator[socket.socket]:
    """A port of this machine on which nothing listens yet."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        yield found


def held(host: Host, name: str, service: socket.socket) -> Project:
    """A project whose failure went away without a change."""
    project = host.project(name)
    project.write("calc.py", ELSEWHERE.format(port=service.getsockname()[1]))
    assert project.submit().code == 3
    service.listen()
    fixed = project.fixloop("fixed", "1", "--here")
    assert "no file was changed" in fixed.err
    watched = project.fixloop("watch", "1")
    assert watched.code == 3, watched.out
    assert "waits for a decision: Integrity hold: run 2 of test-runner passed" in watched.out
    assert "  same-tree: this very tree failed in run 1, and passes now" in watched.out
    assert 'fixloop decide 1 accept --reason "…"' in watched.out
    return project


@pytest.mark.proves("I9", "I11")
def test_a_tree_that_failed_and_then_passes_is_held_until_a_person_accepts_it(
    host: Host, service: socket.socket
) -> None:
    project = held(host, "accepted", service)

    decided = project.fixloop("decide", "1", "accept", "--reason", "the database was away")
    watched = project.fixloop("watch", "1")

    assert decided.code == 0, decided.err
    assert watched.code == 0, watched.out
    assert "accepted: passed (1 specialist, 2 runs" in watched.out
    assert "the database was away" in project.log()
    assert project.fixloop("audit", "verify", "1").code == 0
    [rule] = project.fixloop("integrity", "--json").document["rules"]
    assert (rule["rule"], rule["held"], rule["accepted"]) == ("same-tree", 1, 1)


@pytest.mark.proves("I11", "B44")
def test_a_rejected_change_goes_back_to_the_agent(host: Host, service: socket.socket) -> None:
    project = held(host, "rejected", service)

    assert project.fixloop("decide", "1", "reject", "--reason", "mend it in the code").code == 0
    assert project.fixloop("watch", "1").code == 3
    asked = project.fixloop("ack", "1").out
    project.write("calc.py", RIGHT)
    assert project.fixloop("fixed", "1", "--here").code == 0
    watched = project.fixloop("watch", "1")

    assert "held: same-tree" in asked
    assert "a person rejected it: mend it in the code" in asked
    assert watched.code == 0, watched.out
