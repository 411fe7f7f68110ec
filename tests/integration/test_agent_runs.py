"""One run of an agent as a command, on a real repository: its input, its accepted results, its refusals."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.engine.engine import ProfileEngine
from fixloop.errors import UsageError
from fixloop.outside.mailbox import Mailboxes
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.intake import cycle_started
from fixloop.repository.snapshot import take_snapshot
from fixloop.statefiles.agent_run import Played
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.repositories import git, make_repository
from workers.commands.crew import Commands
from workers.steps.step import Heart, Step

pytestmark = pytest.mark.slow

WORKFLOW = "0a1b2c3d-7-1"
STEPS = "one\n\n\ntwo\n"
OWN = ".workflow/.cycle/c.progress"
SETTINGS = """
[cycle.agent.RA]
command = ["{python}", "-c", '''{ra}''']
env = ["SHOP_TOKEN"]
[cycle.agent.docs]
command = ["{python}", "-c", '''{docs}''']
depends_on = []
"""


class Site:
    """A repository, a cycle of it with two agents that begin together, and the crew that runs them."""

    def __init__(self, folder: Path, ra: str, docs: str = "") -> None:
        text = SETTINGS.format(python=sys.executable, ra=ra, docs=docs)
        self.repository = make_repository(folder / "shop", {"fixloop.toml": text, "shop.py": STEPS})
        self.store = MemoryStore(lambda: datetime(2026, 1, 22, tzinfo=UTC))
        self.engine = ProfileEngine(self.store, CYCLE)
        self.crew = Commands(folder / "cache")
        configuration = load_configuration(self.repository, profile="cycle")
        snapshot = take_snapshot(self.repository, issue=7, cache=folder / "cache")
        event = cycle_started(
            configuration,
            workflow=WORKFLOW,
            issue=7,
            name="OAuth",
            cycle_id="c",
            queue=f"run-{WORKFLOW}",
            configuration=self.store.put_artifact(WORKFLOW, configuration.to_json().encode()),
            snapshot=snapshot.model_dump_json(exclude_defaults=True),
            tip=snapshot.commit,
        )
        assert self.engine.start(event).status == "ok"

    def step(self, agent: str) -> Step:
        claim = self.store.claim(f"{WORKFLOW}.{agent}.1.1", "me", f"token {agent}")
        assert claim.ticket is not None
        holding = self.engine.held(CYCLE, claim.ticket, claim, "me")
        return Step(self.engine, Heart(), holding, Mailboxes("redis://localhost:1"))

    def played(self, step: Step) -> Played:
        found = self.store.read(WORKFLOW)
        assert found is not None
        played = self.crew.play(step, found.snapshot)
        assert played is not None
        return played

    def mirror(self, *args: str) -> str:
        """What git says of the objects that the crew keeps."""
        (bare,) = (self.repository.parent / "cache" / "mirrors").glob("*.git")
        return git(bare, *args)


WRITES = f"""
import os, pathlib, sys
print("thinking", file=sys.stderr)
assert "# RA: requirements for OAuth" in sys.stdin.read()
assert os.environ["FIXLOOP_ROLE"] == "ra" and pathlib.Path(".workflow/.cycle/c.json").is_file()
own = pathlib.Path("{OWN}/ra")
own.mkdir(parents=True, exist_ok=True)
(own / "requirements.md").write_text("FR-001, by " + os.environ["SHOP_TOKEN"])
pathlib.Path("shop.py").write_text("one!\\ntwo\\n")
print("PHASE_RESULT:")
"""


@pytest.mark.proves("C11", "C18", "R13")
def test_an_agent_s_files_are_taken_its_other_output_ignored_and_no_secret_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-3141592653")
    site = Site(tmp_path, WRITES)

    played = site.played(site.step("ra"))

    assert (played.answer, played.error, played.wrong) == ("PHASE_RESULT:\n", "", "")
    (document,) = played.writings.documents
    assert site.store.get_artifact(WORKFLOW, document.digest) == b"FR-001, by ***"
    assert site.mirror("diff", "--name-only", played.brought.base, played.brought.tip) == "shop.py"
    assert site.store.get_artifact(WORKFLOW, played.brought.bundle)
    assert git(site.repository, "status", "--porcelain") == ""


@pytest.mark.proves("C5", "D37")
@pytest.mark.parametrize(
    ("program", "error", "wrong"),
    [
        ("import sys; print('half done'); sys.exit('no tokens left')", "exit code 1: no tokens left", ""),
        (
            "import pathlib; pathlib.Path('.workflow/.cycle/c.json').write_text('{}')",
            "",
            "ra may read this file and not change it: .workflow/.cycle/c.json",
        ),
    ],
)
def test_a_run_that_failed_or_wrote_others_files_contributes_nothing(
    tmp_path: Path, program: str, error: str, wrong: str
) -> None:
    site = Site(tmp_path, program)

    played = site.played(site.step("ra"))

    assert error in played.error
    assert wrong in played.wrong
    assert (played.answer, played.brought.tip, played.writings) == ("", "", None)
    assert played.error or played.wrong


@pytest.mark.proves("C43", "K17")
@pytest.mark.parametrize(("docs", "merged"), [("one\n\n\ntwo!\n", "one!\n\n\ntwo!\n"), ("1\n\n\ntwo\n", "")])
def test_the_second_of_two_simultaneous_runs_is_merged_or_repeated(
    tmp_path: Path, docs: str, merged: str
) -> None:
    def edits(text: str) -> str:
        return f"open('shop.py', 'w').write({text!r})"

    site = Site(tmp_path, edits("one!\n\n\ntwo\n"), edits(docs))
    first, second = site.step("ra"), site.step("docs")
    ahead, behind = site.played(first).brought, site.played(second).brought
    state: Any = site.engine.state(WORKFLOW).with_(tip=ahead.tip)

    if not merged:
        with pytest.raises(UsageError, match=r"the same lines in shop\.py"):
            site.crew.bring_onto(second, state, behind.base, behind.tip)
        return
    brought = site.crew.bring_onto(second, state, behind.base, behind.tip)
    assert brought.base == ahead.tip
    assert site.mirror("show", f"{brought.tip}:shop.py") == merged.strip()
    assert site.store.get_artifact(WORKFLOW, brought.bundle)
