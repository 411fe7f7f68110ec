"""What waits for a person: since when, the effect of each answer, and the error in its own words."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fixloop.errors import ExitCode
from fixloop.profiles.validation.presenter import PRESENTER
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.event import Moment
from fixloop.protocol.events import FixFailed, RunFinished
from fixloop.protocol.state import State
from tests.fixtures.command_stage import Agents, on_redis, said

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]
NO_FIXER = "no fixer is configured: to have an agent fix it, add [fixer] with its command to fixloop.toml"


def asked_of_a_person(agents: Agents) -> tuple[str, State]:
    workflow = agents.start(fixer="outside")
    return workflow, agents.run(workflow)


def failing_fixer(agents: Agents) -> str:
    workflow = agents.start()
    agents.run(workflow, 2)
    for attempt in (1, 2, 3):
        agents.apply(
            workflow,
            FixFailed(
                specialist="test-runner",
                iteration=1,
                attempt=attempt,
                error="the fixer ended with exit code 1",
                output_tail="starting\n\n  fatal: invalid object\n name 'main'\n",
            ),
        )
    return workflow


def unable(agents: Agents, error: str) -> str:
    workflow = agents.start()
    for attempt in (1, 2):
        event = RunFinished(
            step="validate",
            specialist="test-runner",
            iteration=1,
            attempt=attempt,
            outcome="error",
            tree="tree-0",
            error=error,
        )
        agents.apply(workflow, event)
    return workflow


def test_the_start_of_a_wait_for_a_fix_does_not_move_with_the_clock(agents: Agents, tmp_path: Path) -> None:
    workflow, state = asked_of_a_person(agents)
    found = agents.store.read(workflow)
    assert found is not None
    # An hour in which no engine ran: its clock had stopped.
    later = replace(found, moment=Moment(found.moment.at + timedelta(hours=1), found.moment.clock))

    [now], [then] = (list(PRESENTER.items(each, state, tmp_path)) for each in (found, later))

    assert now["since"] == then["since"]
    assert state.operation is not None
    assert state.operation.asked_at is not None
    assert now["since"] == iso_stamp(state.operation.asked_at)


def test_without_a_fixer_every_command_says_what_to_configure(agents: Agents, capsys: Capsys) -> None:
    asked_of_a_person(agents)

    told = said(capsys, "inbox").out

    assert NO_FIXER in told
    assert "fixloop ack 47    # shows the request and makes a directory to work in" in told
    assert "fixloop fixed 47  # submits the fix" in told
    assert "no fixer is configured" in said(capsys, "status", "47").out


def test_a_declared_agent_is_no_missing_fixer(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(fixer="outside", agent="coder"))

    assert "no fixer" not in said(capsys, "inbox").out + said(capsys, "status", "47").out


def test_status_begins_with_what_it_waits_for(agents: Agents, capsys: Capsys) -> None:
    asked_of_a_person(agents)

    lines = said(capsys, "status", "47").out.splitlines()

    assert lines[1].startswith("WAITS  ")
    assert "for a fix of 3 failures since " in lines[1]
    assert not any(line.startswith("at work") for line in lines)


def test_workflows_waiting_for_a_person_come_first_in_the_list(agents: Agents, capsys: Capsys) -> None:
    unable(agents, "the disk is full")
    agents.start(48)

    rows = said(capsys, "status").out.splitlines()

    assert [row.split()[0] for row in rows[1:]] == ["#47", "#48"]


def test_a_fixer_that_crashed_is_reported_with_its_last_output_everywhere(
    agents: Agents, capsys: Capsys
) -> None:
    failing_fixer(agents)
    words = "the fixer ended with exit code 1; it said last: starting / fatal: invalid object / name 'main'"

    watched = said(capsys, "watch", "47")
    shown = {
        "watch": watched.out,
        "inbox": said(capsys, "inbox").out,
        "log": said(capsys, "log", "47", "--all").out,
        "report": said(capsys, "report", "47").out,
    }

    assert watched.code == ExitCode.WAITS
    assert [name for name, text in shown.items() if words not in text] == []
    assert [name for name, text in shown.items() if "Unresponsive" in text] == []
    assert "exit code 1; it said last" in said(capsys, "status", "47").out


def test_after_a_missing_tool_is_installed_the_same_run_is_repeated(agents: Agents, capsys: Capsys) -> None:
    unable(agents, "`ruff` was not found (exit code 127); install it or correct the command")

    lines = said(capsys, "watch", "47").out.splitlines()

    choices = [line for line in lines if line.startswith("fixloop decide")]
    assert [line.split()[3] for line in choices] == ["extend", "manual-fix", "skip", "abort"]
    assert choices[0] == (
        "fixloop decide 47 extend      # repeats the run on the same code "
        "(recommended: install what is missing, then the same run is made again)"
    )
    assert "# continues without Test Execution: its failures become known issues" in choices[2]


def test_the_json_inbox_lists_the_choices_with_reasons(agents: Agents, capsys: Capsys) -> None:
    unable(agents, "the disk is full")

    [item] = said(capsys, "inbox", "--json").document["items"]

    assert [each["command"] for each in item["choices"]] == item["commands"]
    assert [bool(each["because"]) for each in item["choices"]] == [True, False, False, False]
    assert item["choices"][0]["command"] == "fixloop decide 47 manual-fix"


def test_after_the_last_phase_the_log_names_no_next_phase(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0"))

    assert "Deployment" not in said(capsys, "log", "47", "--json").out
