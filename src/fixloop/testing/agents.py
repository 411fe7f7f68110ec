"""A conformance kit for agents of any kind: fourteen scenarios, played through each door by which agents get work.

`python -m fixloop.testing.agents [DOOR…]` plays them through fixloop's doors, against a separate deployment, and prints
the results. For another kind of connection write a `Door` and give it to `play`; `Site` is the deployment.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

PATIENCE_SECONDS: Final = 90.0
CALC: Final = "def add(a, b):\n    return a - b\n"
CHECK: Final = "import calc, sys\nsys.exit(calc.add(2, 3) != 5)\n"
GOOD: Final = {"calc.py": CALC.replace("-", "+")}
WRONG: Final = {"calc.py": CALC.replace("-", "*")}
NOTHING: Final = {"calc.py": CALC}
GATE: Final = {"check.py": "import sys\nsys.exit(0)\n"}
GARBAGE: Final = {"": "this is no fix at all"}
"""An agent's submission that is not an edit."""
TOML: Final = """\
base = "none"
[specialist.test-runner]
command = ["python", "check.py"]
[limits]
fix_minutes = {minutes}
reminder_window_minutes = {window}
[fixer]
{fixer}
"""

Edit = Mapping[str, str]
"""File → its new text."""


class Work(NamedTuple):
    """A request that an agent has taken."""

    issue: int
    key: str
    """Identifies the request."""
    facts: Mapping[str, Any]
    """What the door needs to answer it."""


class Answer(NamedTuple):
    """The response to the agent."""

    status: str
    """`accepted`, `unchanged`, `refused` or `too_late`."""
    text: str


class Door(Protocol):
    """A way for an agent to get its work and submit it."""

    name: str
    cannot: Mapping[str, str]
    """Scenario → why it does not apply here."""
    too_many_bytes: int
    """A size above the limit of a fix here."""

    def take(self, issue: int, agent: str = "coder") -> Work | None:
        """Take the open request of this issue for an agent; None if there is none for it."""

    def hand_in(self, work: Work, edit: Edit, *, key: str = "", fence: int | None = None) -> Answer:
        """Submit a fix; `fence`: a different one from the claim's."""

    def decline(self, work: Work, kind: str, text: str) -> Answer: ...


class Site:
    """A project with one bug, served by `fixloop serve` with workers and an embedded Redis."""

    def __init__(
        self, folder: Path, *, fixer: str = 'agent = "coder"\n[agent.coder]', minutes: float = 30
    ) -> None:
        self.folder, self.project = folder, folder / "project"
        self.project.mkdir(parents=True)
        toml = TOML.format(fixer=fixer, minutes=minutes, window=0.02 if minutes < 1 else 5)
        for name, text in {"calc.py": CALC, "check.py": CHECK, "fixloop.toml": toml}.items():
            (self.project / name).write_text(text)
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message=work")
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator["Site"]:
        """Serve it until the block ends."""
        words = [sys.executable, "-m", "fixloop.cli", "serve", "--port", "0", "-c", "2"]
        with subprocess.Popen(
            words, cwd=self.project, env=self._environment(), stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            if "serving at " not in line:
                raise RuntimeError(f"the server did not start: {line}{process.stderr.read()}")
            self.url = line.split("serving at ")[1].split(";")[0]
            try:
                yield self
            finally:
                process.terminate()
                process.wait(PATIENCE_SECONDS)

    def fixloop(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run one command in the project to its end."""
        command = [sys.executable, "-m", "fixloop.cli", *words]
        env, seconds = self._environment(), PATIENCE_SECONDS
        return subprocess.run(
            command, cwd=self.project, env=env, input=stdin, capture_output=True, text=True, timeout=seconds
        )

    def begin(self, issue: int) -> None:
        """Submit the feature; its check fails, and a fix is requested."""
        done = self.fixloop("enqueue", "--issue", str(issue))
        if done.returncode:
            raise RuntimeError(done.stderr)

    def state(self, issue: int) -> Mapping[str, Any]:
        """The output of `fixloop status ISSUE --json`."""
        found: Mapping[str, Any] = json.loads(self.fixloop("status", str(issue), "--json").stdout)
        return found

    def wait(self, issue: int, is_so: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """The state once `is_so` holds. Raises AssertionError after PATIENCE_SECONDS."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while not is_so(state := self.state(issue)):
            assert time.monotonic() < ends, f"issue {issue} is {state['status']}, run {state['iteration']}"
            time.sleep(0.2)
        return state

    def fixes(self, issue: int) -> int:
        """The number of accepted fixes."""
        log = json.loads(self.fixloop("log", str(issue), "--json").stdout)
        count: int = log["statistics"]["fix_completions"]
        return count

    def token(self, agent: str) -> str:
        """A token of an agent."""
        return self.fixloop("token", "create", agent, "--role", "agent", "--agent", agent).stdout.strip()

    def patch(self, edit: Edit) -> str:
        """An edit as a unified diff against the feature as submitted."""
        if "" in edit:
            return edit[""]
        folder = Path(tempfile.mkdtemp(dir=self.folder)) / "copy"
        shutil.copytree(self.project, folder, ignore=shutil.ignore_patterns(".fixloop"))
        for name, text in edit.items():
            (folder / name).write_text(text)
        return self._git("diff", at=folder)

    def _git(self, *words: str, at: Path | None = None) -> str:
        person = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
        return subprocess.run(
            ["git", *person, *words], cwd=at or self.project, check=True, capture_output=True, text=True
        ).stdout

    def _environment(self) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith("FIXLOOP_")}
        return {**given, "FIXLOOP_CACHE_DIR": str(self.folder / "cache")}


def _waits_for_person(state: Mapping[str, Any]) -> bool:
    return state["owner"] == "person" and bool(state["paused"])


def _is_settled(state: Mapping[str, Any]) -> bool:
    return bool(state["outcome"]) or _waits_for_person(state)


def _wait_for_work(door: Door, issue: int) -> Work:
    """Wait for the request of this issue."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while (work := door.take(issue, "coder")) is None:
        assert time.monotonic() < ends, f"issue {issue} was never offered"
        time.sleep(0.2)
    return work


def _assert_accepted(answer: Answer) -> None:
    assert answer.status == "accepted", answer


def fixes_at_once(site: Site, door: Door, issue: int) -> None:
    """A fix is submitted, and passes."""
    _assert_accepted(door.hand_in(_wait_for_work(door, issue), GOOD))
    assert site.wait(issue, _is_settled)["outcome"] == "success"


def claims_twice(site: Site, door: Door, issue: int) -> None:
    """A second claim returns the same request."""
    first, second = _wait_for_work(door, issue), _wait_for_work(door, issue)
    assert first.key == second.key
    _assert_accepted(door.hand_in(second, GOOD))


def two_agents_claim(site: Site, door: Door, issue: int) -> None:
    """Only one of two agents gets the request."""
    work = _wait_for_work(door, issue)
    assert door.take(issue, "other") is None
    _assert_accepted(door.hand_in(work, GOOD))


def is_late(site: Site, door: Door, issue: int) -> None:
    """A request that has ended can no longer be answered."""
    work = _wait_for_work(door, issue)
    site.fixloop("cancel", str(issue), "--reason", "nobody wants it any more")
    site.wait(issue, _is_settled)
    answer = door.hand_in(work, GOOD)
    assert answer.status in ("too_late", "refused"), answer
    assert site.fixes(issue) == 0


def changes_nothing(site: Site, door: Door, issue: int) -> None:
    """`I fixed it` without a change never passes."""
    answer = door.hand_in(_wait_for_work(door, issue), NOTHING)
    if answer.status == "accepted":
        site.wait(issue, lambda state: state["iteration"] > 1 or _is_settled(state))
    else:
        assert answer.status == "unchanged", answer
    assert site.state(issue)["outcome"] != "success"


def fixes_wrongly(site: Site, door: Door, issue: int) -> None:
    """A wrong fix makes the run fail, and another fix is requested."""
    _assert_accepted(door.hand_in(_wait_for_work(door, issue), WRONG))
    state = site.wait(
        issue, lambda state: (state["owner"], state["iteration"]) == ("agent", 2) or _is_settled(state)
    )
    assert state["outcome"] is None
    assert state["iteration"] >= 2


def is_silent(site: Site, door: Door, issue: int) -> None:
    """No agent answers: a person is asked after the timeout."""
    site.wait(issue, _waits_for_person)
    assert site.fixes(issue) == 0


def hands_in_too_much(site: Site, door: Door, issue: int) -> None:
    """A fix that is too large is refused with its size, and no part of it is accepted."""
    # Random digits hardly compress.
    edit = {"calc.py": f"{GOOD['calc.py']}# {secrets.token_hex(door.too_many_bytes // 2)}\n"}
    answer = door.hand_in(_wait_for_work(door, issue), edit)
    if answer.status == "accepted":
        site.wait(issue, _is_settled)
    else:
        assert answer.status == "refused", answer
        assert any(word in answer.text for word in ("bytes", "MB", "MiB")), answer
    assert site.state(issue)["outcome"] != "success"


def uses_another_fence(site: Site, door: Door, issue: int) -> None:
    """A fix with a guessed fence is not accepted, and the claim stays valid."""
    work = _wait_for_work(door, issue)
    answer = door.hand_in(work, GOOD, fence=int(work.facts["fence"]) + 1)
    assert answer.status == "too_late", answer
    _assert_accepted(door.hand_in(work, GOOD))


def declines(site: Site, door: Door, issue: int) -> None:
    """The agent declines: a person is asked, with the reason, and no run is counted."""
    _assert_accepted(door.decline(_wait_for_work(door, issue), "blocked", "there is no database here"))
    assert site.wait(issue, _waits_for_person)["iteration"] == 1
    assert "there is no database here" in site.fixloop("inbox").stdout


def hands_in_twice(site: Site, door: Door, issue: int) -> None:
    """The same fix twice counts once."""
    work = _wait_for_work(door, issue)
    _assert_accepted(door.hand_in(work, GOOD, key="one"))
    again = door.hand_in(work, GOOD, key="one")
    assert again.status in ("accepted", "too_late"), again
    site.wait(issue, _is_settled)
    assert site.fixes(issue) == 1


def never_read_the_answer(site: Site, door: Door, issue: int) -> None:
    """An agent that died after its request repeats it, and gets the first answer or `too_late`."""
    work = _wait_for_work(door, issue)
    door.hand_in(work, GOOD, key="lost")
    site.wait(issue, _is_settled)
    again = door.hand_in(work, GOOD, key="lost")
    assert again.status in ("accepted", "too_late"), again
    assert site.fixes(issue) == 1


def touches_the_check(site: Site, door: Door, issue: int) -> None:
    """A fix that changes the check passes only if a person accepts it."""
    _assert_accepted(door.hand_in(_wait_for_work(door, issue), GATE))
    state = site.wait(issue, lambda state: _is_settled(state) or state["iteration"] > 1)
    assert state["outcome"] != "success", "a check that says yes to everything"


def hands_in_garbage(site: Site, door: Door, issue: int) -> None:
    """Anything but a fix is refused with the reason, and a later fix is still accepted."""
    answer = door.hand_in(_wait_for_work(door, issue), GARBAGE)
    assert answer.status == "refused", answer
    assert answer.text
    _assert_accepted(door.hand_in(_wait_for_work(door, issue), GOOD))
    assert site.wait(issue, _is_settled)["outcome"] == "success"


SCENARIOS: Final[Mapping[str, Callable[[Site, Door, int], None]]] = {
    each.__name__.replace("_", " "): each
    for each in (
        *(fixes_at_once, claims_twice, two_agents_claim, is_late, changes_nothing, fixes_wrongly, is_silent),
        *(hands_in_too_much, uses_another_fence, declines, hands_in_twice, never_read_the_answer),
        *(touches_the_check, hands_in_garbage),
    )
}


class Verdict(NamedTuple):
    scenario: str
    result: str
    """`held`, `failed` or `not here`."""
    detail: str = ""


def play(
    site: Site, door: Door, scenarios: Sequence[str] = tuple(SCENARIOS), first: int = 1
) -> Iterator[Verdict]:
    """Play scenarios through a door, each with a separate issue, numbered from `first`."""
    for issue, name in enumerate(scenarios, first):
        if name in door.cannot:
            yield Verdict(name, "not here", door.cannot[name])
            continue
        site.begin(issue)
        try:
            SCENARIOS[name](site, door, issue)
            yield Verdict(name, "held")
        except AssertionError as error:
            yield Verdict(name, "failed", str(error)[:300])
        finally:
            # The next scenario would be offered an open request.
            with suppress(subprocess.TimeoutExpired):
                site.fixloop("cancel", str(issue), "--reason", "the scenario is over")


def main(words: Sequence[str]) -> int:
    """Play all scenarios through the named doors, or all; print a line for each; returns 1 if one failed."""
    from fixloop.testing.doors import opened

    failed = 0
    for name in words or ("command", "files", "mailbox", "http", "mcp"):
        with tempfile.TemporaryDirectory(prefix="fixloop-agents-") as folder:
            for verdict in opened(name, Path(folder)):
                failed += verdict.result == "failed"
                line = f"{name:<8} {verdict.result:<8} {verdict.scenario}  {verdict.detail}"
                print(line.rstrip(), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
