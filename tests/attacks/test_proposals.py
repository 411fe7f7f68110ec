"""Every command line that a text suggests is accepted in that state, for every profile."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import redis

from fixloop.errors import ExitCode
from fixloop.profiles.cycle.events import CycleFinished
from fixloop.protocol.rendering import render_answer_format
from fixloop.store.redis_store import RedisStore
from tests.attacks.sizes import size
from tests.fixtures.command_stage import Agents, Said, said
from tests.fixtures.profile_stage import Profiles

pytestmark = pytest.mark.slow

Capsys = pytest.CaptureFixture[str]
CODE: Final = re.compile(r"`(fixloop [a-z][^`]*)`")
LINE: Final = re.compile(r"^(?:[^`\n]*: |next +| *)(fixloop [a-z][^#`\n]*?)(?: +#.*)?$", re.MULTILINE)
LASTING: Final = ("doctor", "enqueue", "flower", "init", "resume", "run", "watch", "worker")
"""They start processes or inspect the machine: only their existence is checked."""
TOML: Final = '[specialist.test-runner]\ncommand = "true {junit}"\n'
PHASE_RESULT: Final = (
    "PHASE_RESULT:\n- phase: {}\n- status: {}\n- files_written: []\n- summary: done\n- issues: {}\n"
)
RETURNED: Final = {
    "planner": {"status": "completed", "spec": "specs/auth.md"},
    "builder": {"status": "completed", "commit": "abc1234"},
    "reviewer": {"status": "approved"},
    "fixer": {"status": "fixes_applied"},
}
LOOKING: Final = ("inbox", "log", "status")
TYPED: Final = (
    *("status {}", "inbox", "fixed {}", "decide {} manual-fix", "write {} coverage 1 --agent builder"),
    *(
        "pause {}",
        "continue {}",
        "ack {}",
        "decide {} skip",
        "fixed {} --file ANSWER",
        "cancel {}",
        "push {}",
    ),
    *("apply {}", "send {} ra hello", "reject {} --reason x", "files {} --rebuild", "purge {}"),
)
"""What a person may type at any time: the answers suggest commands, too, the first ones most of them."""


class Proposal(NamedTuple):
    """A command line, and what the same text says to do before it."""

    command: str
    after: str = ""


def proposals(text: str) -> list[Proposal]:
    """What a text proposes; a submission below a receipt comes after it."""
    found = list(dict.fromkeys([*CODE.findall(text), *LINE.findall(text)]))
    receipt = next((each for each in found if each.startswith(("fixloop ack", "fixloop mailbox"))), "")
    return [Proposal(each, receipt * each.startswith("fixloop fixed")) for each in found]


def git(*words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


class World:
    """A checkout, a cache and a Redis that can be put back."""

    def __init__(self, redis_url: str, place: Path, capsys: Capsys) -> None:
        self.store = RedisStore(redis_url)
        self.place = place
        self._redis = redis.Redis.from_url(redis_url)
        self._capsys = capsys
        self._keys: dict[bytes, bytes] = {}
        self._is_changed = False
        self.issue = "7"

    def type(self, command: str) -> Said:
        """`fixloop COMMAND`, with its placeholders replaced."""
        words = shlex.split(command.removeprefix("fixloop "))
        if "ANSWER" in words and words[0] == "fixed":
            (self.place / "answer").write_text(self._answer(words))
        filled = {"ANSWER": str(self.place / "answer") if words[0] == "fixed" else "JWT", "TEXT": "a reason"}
        filled |= {"KIND": "needs-info", "WHY": "a reason"}
        return said(self._capsys, *(filled.get(word, word) for word in words))

    def done(self, *commands: str) -> None:
        for command in commands:
            told = self.type(command)
            assert told.code in (ExitCode.DONE, ExitCode.WAITS), (command, told)

    def changed(self, typed: str, told: Said) -> str:
        """The command, if it has changed something."""
        if told.code != ExitCode.DONE or typed.split()[0] in LOOKING:
            return ""
        self._is_changed = True
        return typed

    def played(self, before: str, proposal: Proposal) -> str:
        """The refusal of a suggestion, tried after `before`; empty: none."""
        word = proposal.command.split()[1]
        if word in LASTING:
            return "" if self.type(f"{word} --help").code == ExitCode.DONE else "there is no such command"
        self.put_back()
        for command in filter(None, (before, proposal.after)):
            self._is_changed = True
            self.type(command)
        answer = self.type(proposal.command)
        self.changed(proposal.command.removeprefix("fixloop "), answer)
        return "" if answer.code in (ExitCode.DONE, ExitCode.WAITS) else answer.err

    def keep(self) -> None:
        self._keys = {key: bytes(self._redis.dump(key) or b"") for key in self._redis.scan_iter()}
        shutil.copytree(self.place / "live", self.place / "kept", symlinks=True)

    def put_back(self) -> None:
        """A refused or reading command needs no reset: a refusal is a line of the history."""
        if not self._is_changed:
            return
        self._is_changed = False
        self._redis.flushall()
        for key, value in self._keys.items():
            self._redis.restore(key, 0, value)
        live = self.place / "live"
        for path in live.iterdir():
            shutil.rmtree(path)
        shutil.copytree(self.place / "kept", live, symlinks=True, dirs_exist_ok=True)
        os.chdir(live / "shop")

    def close(self) -> None:
        self.store.close()
        self._redis.close()

    def validation(self, script: str, **further: object) -> None:
        """A validation workflow of this checkout as issue 7; its fixer is outside."""
        self.done("enqueue --profile cycle --issue 1", "cancel 1")
        (workflow,) = (name for name, _ in self.store.workflows())
        found = self.store.read(workflow)
        assert found is not None
        known, own = json.loads(found.snapshot), f"{workflow[:8]}-7-1"
        frozen = self.store.get_artifact(workflow, known["configuration"])
        assert frozen is not None
        agents = Agents(self.store)
        facts = {name: known[name] for name in ("project", "snapshot", "tip", "configuration")}
        agents.run(
            agents.start(7, script=script, **{"workflow": own, "fixer": "outside", **facts, **further})
        )
        self.store.put_artifact(own, frozen)
        self.issue = own if "parent" in further else "7"

    def works(self, agent: str, answer: str, file: str = "") -> None:
        """An agent of issue 7 reads its request, leaves a file and answers."""
        told = self.type(f"ack 7 --agent {agent}")
        if file:
            (Path(told.err.split("work in ")[1].split(", then ")[0]) / file).write_text("print(1)\n")
        (self.place / "given").write_text(answer)
        self.done(f"fixed 7 --agent {agent} --file {self.place / 'given'}")

    def _answer(self, words: list[str]) -> str:
        if "--agent" not in words:
            return render_answer_format(7, 1, "test-runner")
        agent = words[words.index("--agent") + 1]
        return (
            json.dumps(RETURNED[agent]) if agent in RETURNED else PHASE_RESULT.format(agent, "success", "[]")
        )


@pytest.fixture
def world(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> Iterator[World]:
    """An empty Redis; the current directory is a checkout."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    (tmp_path / "live" / "shop").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "live" / "shop")
    monkeypatch.setenv("FIXLOOP_STATE_URL", redis_url)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "live" / "cache"))
    git("init", "-q", "-b", "main")
    Path("specs").mkdir()
    Path("specs/auth.md").write_text("Log in.\n")
    Path("fixloop.toml").write_text('[fixer]\nagent = "coder"\n[agent.coder]\n[handoff]\n[cycle]\n' + TOML)
    git("add", "-A")
    git("commit", "-qm", "first")
    made = World(redis_url, tmp_path, capsys)
    yield made
    made.close()


def validation(world: World, *commands: str, script: str = "1 1 0", **further: object) -> None:
    world.validation(script, **further)
    world.done(*(each.replace(" 7", f" {world.issue}") for each in commands))


def cycle(world: World, *commands: str) -> None:
    world.done("enqueue --profile cycle --issue 7 --name OAuth --task x", *commands)


def escalated_cycle(world: World, *commands: str) -> None:
    cycle(world)
    for agent in ("ra", "ep"):
        world.works(agent, PHASE_RESULT.format(agent, "success", "[]"))
    world.works("cd", PHASE_RESULT.format("cd", "partial", "['user: CSV or JSON?']"))
    world.done(*commands)


def refused_in_cycle(world: World) -> None:
    cycle(world, "ack 7 --agent ra")
    (world.place / "none").write_text("I am done")
    assert world.type(f"fixed 7 --agent ra --file {world.place / 'none'}").code == ExitCode.USAGE


def two_agents(world: World) -> None:
    plan = {"ra": [], "frontend": [], "ep": ["ra"], "cd": ["ep", "frontend"], "vas": ["cd"]}
    (world.place / "plan").write_text(json.dumps(plan))
    world.done(f"enqueue --profile cycle --issue 7 --plan {world.place / 'plan'}", "ack 7 --agent frontend")


def finished(world: World, number: int) -> None:
    """The orchestrator's own step, which workers do."""
    engine = Profiles(world.store).cycles
    (workflow,) = (name for name, _ in world.store.workflows(live_only=True))
    engine.apply(workflow, CycleFinished(), operation=str(number))


def whole_cycle(world: World) -> None:
    cycle(world)
    for agent in ("ra", "ep", "cd", "vas"):
        world.works(agent, PHASE_RESULT.format(agent, "success", "[]"), "app.py" if agent == "cd" else "")
    finished(world, 1)


def handoff(world: World, *commands: str) -> None:
    world.done("enqueue --profile handoff --issue 7 --name Auth --task x", *commands)


def reviewing(world: World, *commands: str) -> None:
    handoff(world)
    for agent in ("planner", "builder"):
        world.works(agent, json.dumps(RETURNED[agent]))
    world.done(*commands)


def asking(world: World, *commands: str, **facts: object) -> None:
    handoff(world)
    asked = {"type": "escalation", "reason": "spec_ambiguity", "details": "which auth?", **facts}
    world.works("planner", f"{json.dumps(asked)}\n{json.dumps(RETURNED['planner'])}")
    world.done(*commands)


def reviewed(world: World) -> None:
    reviewing(world)
    world.works("reviewer", json.dumps(RETURNED["reviewer"]), "app.py")


SCENES: Final[dict[str, Callable[[World], object]]] = {
    "validation: a fix is asked": validation,
    "validation: it was acknowledged": lambda world: validation(world, "ack 7"),
    "validation: a declared agent is asked": partial(validation, agent="coder"),
    "validation: blocked": lambda world: validation(world, "fixed 7 --blocked x"),
    "validation: a manual fix": lambda world: validation(world, "fixed 7 --blocked x", "decide 7 manual-fix"),
    "validation: paused while it works for another": lambda world: validation(
        world, "pause 7", parent="0a1b2c3d-9-1"
    ),
    "validation: paused": lambda world: validation(world, "pause 7"),
    "validation: cancelled": lambda world: validation(world, "cancel 7"),
    "validation: passed": partial(validation, script="-"),
    "cycle: asked": cycle,
    "cycle: begun": lambda world: cycle(world, "ack 7 --agent ra"),
    "cycle: an answer was refused": refused_in_cycle,
    "cycle: two are asked": two_agents,
    "cycle: escalated": escalated_cycle,
    "cycle: paused": lambda world: cycle(world, "pause 7"),
    "cycle: escalated and paused": lambda world: escalated_cycle(world, "pause 7"),
    "cycle: ended": whole_cycle,
    "cycle: cancelled": lambda world: cycle(world, "cancel 7"),
    "handoff: asked": handoff,
    "handoff: begun": lambda world: handoff(world, "ack 7 --agent planner"),
    "handoff: a review is asked": reviewing,
    "handoff: a review has begun": lambda world: reviewing(world, "ack 7 --agent reviewer"),
    "handoff: rejected": lambda world: reviewing(world, "reject 7 --agent reviewer --reason x"),
    "handoff: a question": asking,
    "handoff: a choice": lambda world: asking(world, options=["JWT", "OAuth 2"]),
    "handoff: a question beside": lambda world: asking(world, blocking=False),
    "handoff: a question while paused": lambda world: asking(world, "pause 7"),
    "handoff: approved": reviewed,
    "handoff: cancelled": lambda world: handoff(world, "cancel 7"),
}


@pytest.mark.proves("C66", "D20", "K20")
@pytest.mark.parametrize("scene", SCENES)
def test_every_command_that_a_text_suggests_is_accepted(world: World, scene: str) -> None:
    SCENES[scene](world)
    world.keep()
    refused: dict[str, str] = {}
    known: set[tuple[str, Proposal]] = set()
    for typed in (each.format(world.issue) for each in TYPED[: size(5, len(TYPED))]):
        told = world.type(typed)
        before = world.changed(typed, told)
        for proposal in proposals(told.out + told.err):
            if (before, proposal) not in known:
                known.add((before, proposal))
                answer = world.played(before, proposal)
                if answer:
                    refused[f"{typed}: {proposal.command}"] = answer
        world.put_back()

    assert refused == {}
