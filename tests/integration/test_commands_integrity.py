"""A hold at the command line: its display, who may answer, and how often each rule held."""

from pathlib import Path

import pytest

from fixloop.errors import ExitCode
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.specialists import specialist as slot
from tests.fixtures.command_stage import Agents, on_redis, said
from tests.unit.test_findings import finished

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


def a_hold(agents: Agents, issue: int = 47) -> str:
    workflow = agents.start(issue, trusted="commit-0", fixer="outside")
    agents.apply(workflow, finished(1, "words"))
    return workflow


@pytest.mark.proves("I11")
def test_inbox_and_status_show_both_sides_and_the_answers_of_a_hold(agents: Agents, capsys: Capsys) -> None:
    a_hold(agents)

    for told in (said(capsys, "inbox").out, said(capsys, "status", "47").out):
        assert "words: words was seen (tests/test_a.py:3)" in told
        assert "- assert a == 1" in told
        assert "+ assert a" in told
        assert 'fixloop decide 47 accept --reason "…"' in told
    [item] = said(capsys, "inbox", "--json").document["items"]
    assert [each["rule"] for each in item["findings"]] == ["words"]
    assert "### Findings" in said(capsys, "log", "47", "--format", "markdown").out


@pytest.mark.proves("I10", "A51")
@pytest.mark.parametrize("word", ["accept", "reject", "skip"])
@pytest.mark.parametrize("role", [MAIN_AGENT, slot("test-runner").handle])
def test_a_process_that_fixloop_runs_does_not_decide_on_a_hold(
    agents: Agents, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, word: str, role: str
) -> None:
    workflow = a_hold(agents)
    monkeypatch.setenv("FIXLOOP_ROLE", role)

    refused = said(capsys, "decide", "47", word)

    assert refused.code == ExitCode.USAGE
    assert f"not for {role}" in refused.err
    assert agents.engine.state(workflow).paused


@pytest.mark.proves("I11", "A13")
def test_accept_and_reject_are_refused_where_nothing_is_held(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 1 1 1")
    agents.run(workflow)

    refused = said(capsys, "decide", "47", "accept")
    unknown = said(capsys, "decide", "47", "approve")

    assert refused.code == unknown.code == ExitCode.USAGE
    assert "accept answers an integrity hold, and ESC-47-test-runner-" in refused.err
    assert "choose from manual-fix, skip, abort, extend\n" in unknown.err


@pytest.mark.proves("I12")
def test_holds_and_their_decisions_are_counted_including_archived_ones(
    agents: Agents, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_ARCHIVE_DIR", str(tmp_path / "archive"))
    assert "nothing has been held yet" in said(capsys, "integrity", "--project", "0a1b2c3d").err
    for issue, word in enumerate(["accept"] * 10 + ["reject", "skip"], 50):
        workflow = a_hold(agents, issue)
        said(capsys, "decide", workflow, word, "--reason", "because")
        said(capsys, "cancel", workflow)
    a_hold(agents, 49)
    said(capsys, "archive", "--older-than", "0")

    told = said(capsys, "integrity", "--project", "0a1b2c3d")

    [rule] = said(capsys, "integrity", "--json", "--project", "0a1b2c3d").document["rules"]
    assert rule == {"rule": "words", "held": 13, "accepted": 10, "rejected": 1, "other": 1, "open": 1}
    head, row = (line.split() for line in told.out.splitlines())
    assert dict(zip(head, row, strict=True)) == {name: str(value) for name, value in rule.items()}
    assert 'of 11 decisions on words, 10 accepted what it held: [integrity] off = ["words"]' in told.err
