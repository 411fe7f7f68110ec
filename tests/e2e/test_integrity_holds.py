"""A hold with real workers: the tree that failed passes without a change, and a person says what that is worth."""

import pytest

from tests.fixtures.project import RIGHT, Host, Project

pytestmark = pytest.mark.slow

ELSEWHERE = """\
import os.path

def add(a, b):
    return a + b if os.path.exists({place!r}) else a - b
"""
"""Right or wrong by something that is in no tree."""


def held(host: Host, name: str) -> Project:
    """A project whose failure went away without a change."""
    project = host.project(name)
    place = project.folder.parent / f"{name}.elsewhere"
    project.write("calc.py", ELSEWHERE.format(place=str(place)))
    assert project.hand_in().code == 3
    place.touch()
    fixed = project.fixloop("fixed", "1", "--here")
    assert "no file was changed" in fixed.err
    watched = project.fixloop("watch", "1")
    assert watched.code == 3, watched.out
    assert "waits for a decision: Integrity hold: run 2 of test-runner passed" in watched.out
    assert "  same-tree: this very tree failed in run 1, and passes now" in watched.out
    assert 'fixloop decide 1 accept --reason "…"' in watched.out
    return project


@pytest.mark.proves("I9", "I11")
def test_a_tree_that_failed_and_then_passes_is_held_until_a_person_accepts_it(host: Host) -> None:
    project = held(host, "accepted")

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
def test_what_a_person_rejects_goes_back_to_the_agent(host: Host) -> None:
    project = held(host, "rejected")

    assert project.fixloop("decide", "1", "reject", "--reason", "mend it in the code").code == 0
    assert project.fixloop("watch", "1").code == 3
    asked = project.fixloop("ack", "1").out
    project.write("calc.py", RIGHT)
    assert project.fixloop("fixed", "1", "--here").code == 0
    watched = project.fixloop("watch", "1")

    assert "held: same-tree" in asked
    assert "a person rejected it: mend it in the code" in asked
    assert watched.code == 0, watched.out
