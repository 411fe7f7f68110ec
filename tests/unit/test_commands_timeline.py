"""The order of events, what is derived from it, and what a replay finds."""

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fixloop.commands.presenter import is_away
from fixloop.commands.screen import console
from fixloop.commands.session import Seen
from fixloop.commands.timeline import Happening, happenings, with_ticks
from fixloop.commands.watch import view
from fixloop.engine.history import said
from fixloop.engine.replay import audit, replay
from fixloop.errors import RefusedError
from fixloop.profiles.validation.presenter import PRESENTER
from fixloop.protocol.event import Moment
from fixloop.protocol.events import Cancelled, Continued, DecisionMade, FixCompleted, Paused
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion
from tests.fixtures.command_stage import Agents
from tests.fixtures.memory_store import MemoryStore

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Clock:
    """A wall clock that tests set forward."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def agents(clock: Clock) -> Agents:
    return Agents(MemoryStore(clock))


def kinds(found: Sequence[Happening]) -> list[str]:
    return [each.kind for each in found]


@pytest.mark.proves("K39", "A85")
def test_status_changes_are_between_the_messages_that_name_them(agents: Agents) -> None:
    workflow = agents.start(script="1 0")
    agents.run(workflow)

    found = [
        each for each in happenings(agents.store.history(workflow)) if each.kind in ("status", "message")
    ]

    told = [
        each.message.message_id.split("-")[0] if each.message else each.change.after if each.change else ""
        for each in found
    ]
    assert told == [
        *("IN_PROGRESS", "FAIL", "DETECT", "AWAITING_FIX", "VFR", "FIXING", "FIXDONE"),
        *("RE_CHECKING", "REVAL", "PASS", "REVALRES", "COMPLETED", "SUCCESS"),
    ]


def test_decisions_receipts_and_evidence_are_distinguished(agents: Agents) -> None:
    workflow = agents.start(script="1 1 1")
    agents.run(workflow)
    agents.apply(workflow, DecisionMade(decision=Decision.SKIP, by="ann", reason="known"))

    found = list(happenings(agents.store.history(workflow)))

    decided = [each.text for each in found if each.kind == "decision"]
    assert decided[0].endswith("by ann: skip known")
    assert "failed but proceeding" in decided[1]
    assert "event" in kinds(found)


@pytest.mark.proves("B30", "K39")
def test_an_awaited_outside_agent_is_checked_every_two_minutes(agents: Agents, clock: Clock) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    clock.now += timedelta(minutes=7)

    ticks = [each for each in _all(agents, workflow) if each.kind == "tick"]

    assert [each.at - START for each in ticks] == [timedelta(minutes=n) for n in (2, 4, 6)]
    assert ticks[-1].text == "@feature-implementer-main is AWAITING_FIX for 06:00"


@pytest.mark.proves("B30")
def test_status_checks_end_with_the_workflow_and_are_never_stored(agents: Agents, clock: Clock) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    clock.now += timedelta(minutes=5)
    agents.apply(workflow, Cancelled(reason="no longer needed"))
    clock.now += timedelta(hours=1)

    found = _all(agents, workflow)

    assert kinds(found).count("tick") == 2
    assert "tick" not in kinds(list(happenings(agents.store.history(workflow))))
    assert [each.at for each in found] == sorted(each.at for each in found)


def test_no_agent_is_checked_while_a_person_decides(agents: Agents, clock: Clock) -> None:
    workflow = agents.start(script="1 1 1")
    assert agents.run(workflow).paused
    clock.now += timedelta(hours=1)

    assert "tick" not in kinds(_all(agents, workflow))


@pytest.mark.proves("A51", "A55", "K20")
def test_refusals_and_pauses_are_described_by_their_kind(agents: Agents) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    agents.apply(workflow, Paused(by="ann", reason="lunch"))
    with pytest.raises(RefusedError):
        agents.apply(workflow, DecisionMade(decision=Decision.SKIP, by="bob"))
    agents.apply(workflow, Continued(by="ann"))

    found = [(each.kind, each.text) for each in _all(agents, workflow)]

    assert ("pause", "paused by ann lunch") in found
    assert ("pause", "continued by ann after 00:00") in found
    told = list(PRESENTER.happened(agents.store.history(workflow)))
    assert any("paused by ann lunch" in line for line in told)
    assert any("refused: decision-made" in line for line in told)
    assert any(kind == "refusal" and text.startswith("refused: decision-made") for kind, text in found)


def _all(agents: Agents, workflow: str) -> list[Happening]:
    return list(with_ticks(agents.store.history(workflow), agents.store.now(workflow)))


@pytest.mark.proves("A85")
def test_a_message_is_fetched_with_its_text_and_attachment(agents: Agents) -> None:
    workflow = agents.start(script="2 0")
    agents.run(workflow)

    lines = list(said(agents.store.history(workflow)))

    assert any("Fix Request" in line.rendered and "Failure Report" in line.rendered for line in lines)


@pytest.mark.proves("A85")
def test_a_text_stored_in_full_is_shown_unchanged(agents: Agents) -> None:
    workflow = agents.start(script="2 0")
    agents.run(workflow)
    report = agents.store.history(workflow)[2]
    kept = dict(report.body["messages"][0])
    kept |= {"rendered": "# As version 1 said it", "attached": kept["attached"] | {"rendered": "so did it"}}

    [line] = said([replace(report, body={"messages": [kept]})])

    assert line.rendered == "# As version 1 said it\n---\n\nso did it"


def test_a_pipe_gets_one_line_for_each_message(agents: Agents) -> None:
    workflow = agents.start(script="1 0")
    state = agents.run(workflow)

    lines = list(PRESENTER.happened(agents.store.history(workflow)))

    assert sum("test-runner " in line for line in lines) >= state.lines == 6
    assert all("\n" not in line for line in lines)


def test_a_tools_escape_sequences_do_not_reach_the_terminal(agents: Agents) -> None:
    workflow = agents.start(script="1 0")
    agents.run(workflow)
    agents.run(workflow)
    clear = "\x1b[2J"
    other = agents.start(issue=48, script="1 1 1", fixer="outside")
    agents.run(other)
    agents.apply(other, Cancelled(by=f"ann{clear}", reason=clear))

    assert all(clear not in line for line in PRESENTER.happened(agents.store.history(other)))


def test_the_live_view_shows_runs_failures_now_and_before_and_the_deadline(
    agents: Agents, clock: Clock
) -> None:
    workflow = agents.start(script="5 2 0", fixer="outside")
    agents.run(workflow)
    done = Completion(iteration=1, by="agent", tip="c1", tree="tree-1")
    agents.apply(workflow, FixCompleted(specialist="test-runner", completion=done))
    agents.run(workflow)
    clock.now += timedelta(minutes=1)

    text = shown(agents, workflow)

    assert "2/5" in text
    assert "2 (before: 5)" in text
    assert "elapsed 00:01:00 · main-agent-fix of test-runner · deadline in 29:00 · agent's turn" in text


def test_the_live_view_says_when_no_worker_is_there_to_continue(agents: Agents) -> None:
    workflow = agents.start(script="1 0")

    assert "no worker is running" in shown(agents, workflow, away=True)
    assert "no worker is running" not in shown(agents, workflow)


def test_the_engine_is_away_when_its_clock_has_stopped() -> None:
    one, later = Moment(START, 10.0), START + timedelta(seconds=1)

    assert is_away(one, Moment(later, 10.0))
    assert not is_away(one, Moment(later, 11.0))
    assert not is_away(one, one)


def shown(agents: Agents, workflow: str, *, away: bool = False) -> str:
    found = agents.store.read(workflow)
    assert found is not None
    out = io.StringIO()
    console(out).print(view(Seen.of(found), away=away))
    return out.getvalue()


def test_a_history_replays_to_the_same_states_and_texts(agents: Agents) -> None:
    workflow = agents.start(script="3 3 3")
    agents.run(workflow)
    agents.apply(workflow, DecisionMade(decision=Decision.EXTEND, iterations=1))
    state = agents.run(workflow)

    found = audit(agents.store, workflow)

    assert found.problems == ()
    assert found.replayed == found.entries > 10
    assert state.active.max_iterations > 5


def test_a_forged_entry_is_named(agents: Agents) -> None:
    workflow = agents.start(script="2 0")
    agents.run(workflow)
    entries = agents.store.history(workflow)
    forged = entries[1].body["event"] | {"failures": entries[1].body["event"]["failures"][:1]}
    entries[1] = replace(entries[1], body=dict(entries[1].body) | {"event": forged})

    replayed, problems = replay(entries)

    assert replayed == 1
    assert problems[0] == "entry 2 leads to another state than the one that was recorded"


def test_a_changed_text_is_named(agents: Agents) -> None:
    workflow = agents.start(script="0")
    agents.run(workflow)
    entries = agents.store.history(workflow)
    messages = [dict(each) for each in entries[-1].body["messages"]]
    messages[1]["summary"] += "and more"
    entries[-1] = replace(entries[-1], body=dict(entries[-1].body) | {"messages": messages})

    _, problems = replay(entries)

    assert problems == ["entry 2: SUCCESS-47-test-runner-1 is not what was said"]


def test_an_entry_that_cannot_be_replayed_is_a_finding_and_no_traceback(agents: Agents) -> None:
    workflow = agents.start(script="2 0")
    agents.run(workflow)
    entries = agents.store.history(workflow)
    entries[1] = replace(entries[1], body=dict(entries[1].body) | {"event": {"kind": "nonsense"}})

    replayed, problems = replay(entries)

    assert replayed == 1
    assert problems[0].startswith("entry 2 cannot be replayed: ")


def test_decisions_of_another_version_are_not_replayed(agents: Agents) -> None:
    workflow = agents.start(script="2 0")
    agents.run(workflow)
    entries = agents.store.history(workflow)
    entries[2] = replace(entries[2], body=dict(entries[2].body) | {"decide": 0})

    assert replay(entries) == (2, [])
