"""`lock`, `unlock`, `write`, `heartbeat`: one agent has a lock, others wait or skip, and a late one changes nothing."""

from pathlib import Path

import pytest

from fixloop.commands.session import open_session
from fixloop.errors import ExitCode, RefusedError
from fixloop.profiles.handoff.events import AgentActivated, LockReleased
from fixloop.profiles.handoff.lock_commands import taken
from fixloop.profiles.handoff.state import Limits
from fixloop.protocol.agent_events import Cancelled
from tests.fixtures.command_stage import said
from tests.fixtures.profile_stage import Profiles, on_redis

pytestmark = pytest.mark.slow

profiles = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]
AUTH = "src/auth.ts"


@pytest.mark.proves("D24", "D26", "D30", "K10")
def test_a_held_lock_is_skipped_by_others_and_free_once_released(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.handoff()

    first = said(capsys, "lock", "9", AUTH, "--agent", "builder")
    again = said(capsys, "lock", "9", AUTH, "--agent", "builder")
    other = said(capsys, "lock", "9", AUTH, "--agent", "fixer", "--skip")
    longer = said(capsys, "lock", "9", AUTH, "--agent", "builder", "--extend")
    freed = said(capsys, "unlock", "9", AUTH, "--agent", "builder", "--token", "1")

    assert (first.code, first.out, again.out, longer.out) == (ExitCode.DONE, "1\n", "1\n", "1\n")
    assert (other.code, other.out) == (ExitCode.WAITS, "")
    assert f"{AUTH} is builder's until" in other.err
    assert freed.code == ExitCode.DONE
    assert profiles.handoffs.state(workflow).locks == {}


@pytest.mark.proves("D27", "D28", "G18")
def test_an_expired_lock_is_taken_over_and_its_late_owner_changes_nothing(
    profiles: Profiles, capsys: Capsys
) -> None:
    workflow = profiles.handoff(limits=Limits(lease_seconds=0.0))

    said(capsys, "lock", "9", AUTH, "--agent", "builder")
    over = said(capsys, "lock", "9", AUTH, "--agent", "fixer")
    late = said(capsys, "unlock", "9", AUTH, "--agent", "builder")

    assert (over.code, over.out) == (ExitCode.DONE, "2\n")
    assert "taken over from builder" in over.err
    assert late.code == ExitCode.WRONG
    assert "another agent took it over" in late.err
    assert profiles.handoffs.state(workflow).locks[AUTH].agent == "fixer"


@pytest.mark.proves("D29", "D30", "G17")
def test_a_waiting_agent_gets_a_released_lock_and_adds_nothing_to_the_history(profiles: Profiles) -> None:
    workflow = profiles.handoff()
    with open_session() as session:
        taken(session, workflow, AUTH, "builder", wait=False)
        before, pauses = len(session.store.history(workflow)), list[float]()

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                profiles.apply(workflow, LockReleased(sender="builder", resource=AUTH))

        held = taken(session, workflow, AUTH, "fixer", wait=True, pause=pause)

        assert held is not None
        assert (held.agent, pauses) == ("fixer", [1.0, 2.0, 4.0])
        assert len(session.store.history(workflow)) == before + 2


@pytest.mark.proves("D29", "D30")
def test_a_waiting_agent_is_told_the_holder_once_and_stops_with_the_workflow(
    profiles: Profiles, capsys: Capsys
) -> None:
    workflow = profiles.handoff()
    with open_session() as session:
        taken(session, workflow, AUTH, "builder", wait=False)
        pauses = list[float]()

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                profiles.apply(workflow, Cancelled(reason="enough"))

        capsys.readouterr()
        with pytest.raises(RefusedError, match="ended"):
            taken(session, workflow, AUTH, "fixer", wait=True, pause=pause)

    assert capsys.readouterr().err.count("is builder's until") == 1


def test_an_agent_that_can_never_hold_a_lock_is_refused_at_once(profiles: Profiles, capsys: Capsys) -> None:
    profiles.handoff()
    said(capsys, "lock", "9", AUTH, "--agent", "builder")

    stranger = said(capsys, "lock", "9", AUTH, "--agent", "ann")

    assert stranger.code == ExitCode.USAGE
    assert "'ann' is no agent of a handoff workflow" in stranger.err


@pytest.mark.proves("D34", "G18")
def test_a_heartbeat_of_an_outside_agent_extends_no_lock(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.handoff()
    early = said(capsys, "heartbeat", "9", "--agent", "planner")
    profiles.apply(workflow, AgentActivated(agent="planner"))
    said(capsys, "lock", "9", AUTH, "--agent", "planner")
    before = profiles.handoffs.state(workflow)

    told = said(capsys, "heartbeat", "9", "--agent", "Planner")

    state = profiles.handoffs.state(workflow)
    began, heard = before.agent("planner").last_active, state.agent("planner").last_active
    assert (told.code, told.out, told.err) == (ExitCode.DONE, "", "")
    assert began is not None
    assert heard is not None
    assert heard > began
    assert state.locks == before.locks
    assert "planner, run 1: begun by somebody outside, last heard 00:00 ago" in (
        said(capsys, "status", "9").out
    )
    profiles.apply(workflow, Cancelled(reason="enough"))
    late = said(capsys, "heartbeat", "9", "--agent", "planner")
    assert (early.code, late.code) == (ExitCode.USAGE, ExitCode.USAGE)
    assert "planner is idle; only who is active has a heartbeat" in early.err


@pytest.mark.proves("D27", "K10")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("unlock", "9", AUTH, "--agent", "fixer"),
            "fixer does not hold the lock of src/auth.ts; nobody has it",
        ),
        (("lock", "9", AUTH, "--agent", "ann"), "'ann' is no agent of a handoff workflow"),
        (
            ("lock", "7", AUTH, "--agent", "fixer"),
            "is a cycle workflow; this command is for agents of handoffs",
        ),
        (("lock", "9", AUTH, "--agent", "fixer", "--skip", "--extend"), "exclude each other"),
        (
            ("write", "9", "coverage", "81", "--agent", "fixer"),
            "without the lock of state.json; take it with `fixloop lock 9 state.json --agent fixer`",
        ),
        (("write", "9", "", "81", "--agent", "fixer"), "a field's name has 1 to 200 characters, not 0"),
        (("write", "9", "log", "x" * 16_001, "--agent", "fixer"), "a value has at most 16000 characters"),
    ],
)
def test_an_invalid_lock_or_release_is_refused_in_one_sentence(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    profiles.handoff()
    profiles.cycle()

    told = said(capsys, *words)

    assert told.code == ExitCode.USAGE
    assert sentence in told.err
    assert told.err.count("\n") == 1


@pytest.mark.proves("D19", "D45")
def test_the_holder_of_the_lock_writes_its_own_fields_and_the_last_write_wins(
    profiles: Profiles, capsys: Capsys
) -> None:
    workflow = profiles.handoff()
    said(capsys, "lock", "9", "state.json", "--agent", "builder")

    first = said(capsys, "write", "9", "coverage", '{"lines": 81.5}', "--agent", "builder")
    again = said(capsys, "write", "9", "coverage", "rising", "--agent", "builder", "--seen", "0")

    assert (first.code, first.out, again.code, again.out) == (ExitCode.DONE, "1\n", ExitCode.DONE, "2\n")
    state = profiles.handoffs.state(workflow)
    assert state.metadata == {"coverage": "rising"}
    assert "over a newer value" in said(capsys, "log", "9", "--all").out


@pytest.mark.proves("D46", "G10")
def test_a_write_to_a_critical_field_waits_for_a_person(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.handoff()
    said(capsys, "lock", "9", "state.json", "--agent", "builder")

    held = said(capsys, "write", "9", "iteration", "5", "--agent", "builder")

    assert held.code == ExitCode.WAITS
    assert "iteration is held until a person has reviewed it" in held.err
    assert profiles.handoffs.state(workflow).iteration == 1
    assert "builder wants to write iteration" in said(capsys, "inbox").out
