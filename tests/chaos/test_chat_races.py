"""
Twenty engineers race for a number: 50 rounds in `make test`, 1,000 in `make chaos`.

Four processes of five threads: none shares open files with another.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from fixloop.chat.directory import read_chat
from fixloop.chat.events import ChatRead
from fixloop.chat.rules import examine
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, PLAN, Stage
from tests.proofs import ROOT

RACERS: Final = 20
PROCESSES: Final = 4
TOGETHER: Final = 25
"""Rounds in one chat; a chat has room for 999 messages."""

pytestmark = pytest.mark.slow


class Racers:
    """Processes that start on a command."""

    def __init__(self, count: int) -> None:
        names = [f"racer {at}" for at in range(count)]
        self._processes = [self._start(names[at::PROCESSES]) for at in range(PROCESSES)]
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

    def _start(self, names: list[str]) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.chaos.chat_racer", *names]
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def race(self, chat: Path, number: int = 0) -> list[str]:
        """All of them post to `chat`, for `number` or for the next one; their answers."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{chat} {number}\n")
            process.stdin.flush()
        lines = [process.stdout.readline() for process in self._processes if process.stdout]
        return [answer for line in lines for answer in json.loads(line)]

    def end(self) -> None:
        for process in self._processes:
            process.communicate(timeout=60)


@pytest.fixture(scope="module")
def racers() -> Iterator[Racers]:
    with ExitStack() as ending:
        made = Racers(RACERS)
        ending.callback(made.end)
        yield made


def prepared(parent: Path, number: int) -> Stage:
    """A chat in which the engineers may answer."""
    stage = Stage(parent).open(PLAN._replace(id=f"{number:04}"))
    stage.post(ARCHITECT, ENGINEER)
    stage.let(ChatRead(ENGINEER))
    return stage


def rounds() -> int:
    return 1000 if settings.get_current_profile_name() == "chaos" else 50


@pytest.mark.proves("E32", "S30")
def test_exactly_one_of_twenty_racing_posts_gets_a_number(racers: Racers, tmp_path: Path) -> None:
    for chat in range(rounds() // TOGETHER):
        stage = prepared(tmp_path, chat + 1)
        for number in range(2, 2 + TOGETHER):
            answers = racers.race(stage.path, number)

            won = [answer for answer in answers if not answer.startswith("refused")]
            assert won == [f"{number:03}-to-architect.md"]
            assert all("is taken by" in answer for answer in answers if answer not in won)
        assert examine(read_chat(stage.path)) == []


@pytest.mark.proves("E32", "E27", "E30", "S30")
def test_twenty_that_post_at_once_get_consecutive_numbers(racers: Racers, tmp_path: Path) -> None:
    stage = prepared(tmp_path, 1)

    answers = [*racers.race(stage.path), *racers.race(stage.path)]

    assert sorted(answers) == [f"{number:03}-to-architect.md" for number in range(2, 2 + 2 * RACERS)]
    assert examine(read_chat(stage.path)) == []
