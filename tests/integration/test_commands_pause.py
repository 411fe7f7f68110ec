"""`pause` and `continue`, their callers, and `status` of running operations, on workflows in a real Redis."""

from datetime import timedelta

import pytest

from fixloop.errors import ExitCode
from fixloop.protocol.events import BlockerSignalled, Cancelled
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.specialists import Status, specialist as slot
from tests.fixtures.command_stage import Agents, on_redis, said

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


@pytest.mark.proves("A14", "K21")
def test_a_pause_is_shown_everywhere_and_ended_by_continue(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)

    paused = said(capsys, "pause", "47", "--reason", "lunch")

    assert paused.code == ExitCode.DONE
    assert "issue 47 is paused by" in paused.err
    document = said(capsys, "status", "47", "--json").document
    assert (document["paused"], document["owner"], document["deadline"]) == (True, "person", None)
    assert (document["held"]["reason"], document["held"]["kept"]) == ("lunch", 0)
    assert "paused" in said(capsys, "status", "47").out
    assert "AWAITING_FIX (paused)" in said(capsys, "status").out
    (item,) = said(capsys, "inbox", "--json").document["items"]
    assert (item["waits_for"], item["commands"]) == ("continue", ["fixloop continue 47"])
    assert "waits for whoever paused it" in said(capsys, "inbox").out

    continued = said(capsys, "continue", "47")

    assert continued.code == ExitCode.DONE
    assert "continues: test-runner is AWAITING_FIX" in continued.err
    document = said(capsys, "status", "47", "--json").document
    assert (document["paused"], document["held"], document["owner"]) == (False, None, "agent")
    history = said(capsys, "log", "47", "--all").out
    assert "paused by" in history
    assert "lunch" in history


@pytest.mark.proves("A14")
def test_pausing_or_continuing_twice_is_accepted(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0", fixer="outside"))

    codes = [said(capsys, word, "47").code for word in ("pause", "pause", "continue", "continue")]

    assert codes == [ExitCode.DONE] * 4
    history = said(capsys, "log", "47", "--all").out
    assert history.count("paused by") == 1


@pytest.mark.proves("A14", "K20")
@pytest.mark.parametrize("word", ["pause", "continue"])
def test_an_ended_workflow_is_neither_paused_nor_continued(agents: Agents, capsys: Capsys, word: str) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.apply(workflow, Cancelled())

    refused = said(capsys, word, "47")

    assert refused.code == ExitCode.USAGE
    assert "issue 47 ended already (cancelled)" in refused.err
    assert "refused:" in said(capsys, "log", "47", "--all").out


@pytest.mark.proves("A14", "K20")
def test_a_decision_waits_for_the_end_of_a_pause(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 1 1", fixer="outside")
    agents.run(workflow)
    agents.apply(workflow, BlockerSignalled(by="ann", text="no access"))
    said(capsys, "pause", "47")

    refused = said(capsys, "decide", "47", "skip")
    said(capsys, "continue", "47")

    assert refused.code == ExitCode.USAGE
    assert "`fixloop continue 47` first" in refused.err
    assert said(capsys, "decide", "47", "skip").code == ExitCode.DONE


@pytest.mark.proves("A14", "G8")
def test_an_answer_during_a_pause_is_kept_and_processed_later(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    said(capsys, "pause", "47")

    kept = said(capsys, "fixed", "47", "--blocked", "no access")

    assert kept.code == ExitCode.DONE
    assert "it is kept; `fixloop continue 47` resumes it" in kept.err
    assert not agents.engine.state(workflow).paused
    assert "events kept meanwhile: 1" in said(capsys, "status", "47").out
    continued = said(capsys, "continue", "47")
    assert "it waits for a decision" in continued.err
    assert agents.engine.state(workflow).paused


@pytest.mark.proves("A51", "A3", "G1")
def test_a_check_cannot_answer_for_an_agent(
    agents: Agents, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    tester = slot("test-runner").handle
    monkeypatch.setenv("FIXLOOP_ROLE", tester)

    refused = said(capsys, "ack", "47")

    assert refused.code == ExitCode.USAGE
    assert f"not for {tester} to bring; it comes from {MAIN_AGENT} or User" in refused.err
    assert agents.engine.state(workflow).active.status is Status.AWAITING_FIX
    assert f"refused: fix-acknowledged from {tester}" in said(capsys, "log", "47", "--all").out


@pytest.mark.proves("A51", "A13", "K27")
@pytest.mark.parametrize("words", [("cancel", "47"), ("pause", "47"), ("decide", "47", "skip")])
def test_a_fixer_cannot_decide(
    agents: Agents, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    agents.apply(workflow, BlockerSignalled(by="ann", text="no access"))
    monkeypatch.setenv("FIXLOOP_ROLE", MAIN_AGENT)

    refused = said(capsys, *words)

    assert refused.code == ExitCode.USAGE
    assert f"not for {MAIN_AGENT}" in refused.err
    assert agents.engine.state(workflow).paused


@pytest.mark.proves("K20", "A69")
def test_second_and_late_answers_are_refused_and_reported(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    agents.apply(workflow, BlockerSignalled(by="ann", text="no access"))
    said(capsys, "decide", "47", "abort")

    for word in ("extend", "skip", "manual-fix"):
        refused = said(capsys, "decide", "47", word)
        assert refused.code == ExitCode.USAGE
        assert refused.err.count("\n") == 1
        assert "issue 47 ended already (aborted)" in refused.err
    late = said(capsys, "fixed", "47")

    assert late.code == ExitCode.USAGE
    history = said(capsys, "log", "47", "--all").out
    assert "refused: decision-made from User" in history
    assert f"refused: fix-completed from {MAIN_AGENT}" in history


@pytest.mark.proves("A90")
def test_status_shows_running_operations_with_their_limits(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0", fixer="outside"))

    document = said(capsys, "status", "47", "--json").document
    text = said(capsys, "status", "47").out

    fix, iteration = document["operations"]
    assert (fix["name"], fix["specialist"], fix["iteration"]) == ("main-agent-fix", "test-runner", 1)
    assert (fix["limit_seconds"], fix["reminded"]) == (1800.0, False)
    assert 0 <= fix["elapsed_seconds"] < timedelta(minutes=1).total_seconds()
    assert (iteration["name"], iteration["limit_seconds"]) == ("total-iteration", 1800.0)
    assert "main-agent-fix of test-runner, for 00:0" in text
    assert "of 30:00" in text
