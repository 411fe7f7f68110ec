"""The notify step of cycles and handoffs as workers do it: a real command that gets what waits, on the real engine."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.engine.engine import ProfileEngine, ProfileHolding
from fixloop.engine.profile import profile_named
from fixloop.machine.sandbox import means_in_use
from fixloop.outside.mailbox import Mailboxes
from fixloop.profiles.cycle.intake import cycle_started
from fixloop.profiles.handoff.intake import handoffs_started
from fixloop.protocol.agent_events import AgentFailed
from fixloop.protocol.event import Event
from fixloop.protocol.ticket import Ticket
from tests.fixtures.memory_store import MemoryStore
from workers.steps.execution import STEP_HANDLERS
from workers.steps.step import Heart, Step, crew

pytestmark = pytest.mark.slow

WORKFLOW = "0a1b2c3d-7-1"


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.delenv("FIXLOOP_CREW", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    crew.cache_clear()
    yield
    crew.cache_clear()


class Waiting:
    """A workflow whose first agent has failed for good, and the ticket that notifies of it."""

    def __init__(self, folder: Path, profile: str, command: str, queue: str = "") -> None:
        (folder / "fixloop.toml").write_text(f"notify = {command!r}\n{AGENT[profile]}")
        self.store = MemoryStore(lambda: datetime(2026, 1, 22, tzinfo=UTC))
        self.profile = profile_named(profile)
        self.engine: ProfileEngine[Any] = ProfileEngine(self.store, self.profile)
        assert self.engine.start(self._begun(folder, queue)).status == "ok"
        found = self.store.read(WORKFLOW)
        assert found is not None
        [first] = found.tickets
        holding = self.held(first.ticket)
        failed = FAILED[profile]
        [self.ticket] = self.engine.finish(holding, failed, holding.moment).steps

    def held(self, ticket: Ticket) -> ProfileHolding[Any]:
        claim = self.store.claim(ticket.id, "me", f"token {ticket.id}")
        assert claim.ticket is not None
        return self.engine.held(self.profile, claim.ticket, claim, "me")

    def tell(self) -> None:
        """The step, as a worker does it."""
        step = Step(self.engine, Heart(), self.held(self.ticket), Mailboxes("redis://localhost:1"))
        event = STEP_HANDLERS[self.profile.name].steps[self.ticket.step].do(step)
        assert event is not None
        assert step.finish(event).status == "ok"

    def _begun(self, folder: Path, queue: str) -> Any:
        configuration = load_configuration(folder, profile=self.profile.name)
        facts: dict[str, Any] = {
            "workflow": WORKFLOW,
            "issue": 7,
            "name": "OAuth",
            "queue": queue,
            "configuration": self.store.put_artifact(WORKFLOW, configuration.to_json().encode()),
        }
        if self.profile.name == "cycle":
            return cycle_started(configuration, cycle_id="c", **facts)
        return handoffs_started(configuration, **facts)


AGENT = {
    "cycle": "[cycle.agent.RA]\ncommand = 'run'\n",
    "handoff": "[handoff.agent.planner]\ncommand = 'run'\n",
}
FAILED: dict[str, Event] = {
    "cycle": AgentFailed(agent="ra", reason="out of credit", fatal=True),
    "handoff": AgentFailed(agent="planner", reason="out of credit", fatal=True),
}


@pytest.mark.proves("K20", "R8")
@pytest.mark.parametrize("profile", AGENT)
def test_the_notification_says_who_is_awaited_and_why_and_is_recorded_once(
    profile: str, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path, profile, "sh -c 'cat >> $HOME/told'")

    waiting.tell()

    told = (tmp_path / "told").read_text()
    assert told.startswith("#7 OAuth waits for you")
    assert told.count("fatal_error") == 1
    assert "out of credit" in told
    assert waiting.store.claim(waiting.ticket.id, "another", "its token").status != "ok"
    *_, last = waiting.store.history(WORKFLOW)
    assert last.body["notes"] == ["notified: sh ended with exit code 0"]
    assert waiting.store.verify(WORKFLOW) == []


@pytest.mark.proves("K20")
@pytest.mark.parametrize(
    ("command", "why"),
    [("sh -c 'exit 3'", "sh ended with exit code 3"), ("no-such-mailer", "no-such-mailer was not found")],
)
@pytest.mark.parametrize("profile", AGENT)
def test_a_command_that_fails_changes_nothing_but_a_note(
    profile: str, command: str, why: str, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path, profile, command)
    before = waiting.engine.state(WORKFLOW)

    waiting.tell()

    found = waiting.store.read(WORKFLOW)
    assert found is not None
    assert found.tickets == ()
    assert waiting.engine.state(WORKFLOW).with_(last_at=before.last_at) == before
    *_, last = waiting.store.history(WORKFLOW)
    assert last.body["notes"] == [f"notified: {why}"]


@pytest.mark.parametrize(("queue", "seen"), [("", False), ("run-0a1b2c3d-7-1", True)])
@pytest.mark.parametrize("profile", AGENT)
def test_a_shared_worker_hides_its_variables_from_the_command(
    profile: str, queue: str, seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", "redis://:of-all@queue:6379")
    waiting = Waiting(tmp_path, profile, "sh -c 'env > $HOME/variables'", queue)

    waiting.tell()

    told = (tmp_path / "variables").read_text()
    assert f"HOME={tmp_path}\n" in told
    assert ("of-all" in told) == seen


@pytest.mark.parametrize("queue", ["", "run-0a1b2c3d-7-1"])
@pytest.mark.proves("I3")
def test_on_a_shared_worker_the_command_is_confined_as_a_check(
    queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if means_in_use().name == "none":
        pytest.skip("there is no sandbox here")
    monkeypatch.delenv("FIXLOOP_SANDBOX_WRITABLE")

    Waiting(tmp_path, "cycle", "sh -c 'touch $HOME/planted'", queue).tell()

    assert (tmp_path / "planted").exists() == bool(queue)
