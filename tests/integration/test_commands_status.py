"""`status`, `inbox`, `watch` and `audit verify` on workflows in a real Redis."""

import io
import re
import signal
import threading

import pytest
import redis
from rich.console import Console

from fixloop.commands.outcome import result_lines
from fixloop.commands.screen import console
from fixloop.commands.session import open_session
from fixloop.commands.watch import follow
from fixloop.errors import ExitCode, UsageError
from fixloop.protocol.checks import Evidence, Unverified
from fixloop.protocol.events import BlockerSignalled, DecisionMade, FixCompleted, Paused, RunFinished
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion, WorkflowOutcome
from fixloop.store.keys import history_key, workflow_key
from fixloop.store.redis_store import RedisStore
from tests.fixtures.command_stage import PROJECT, Agents, on_redis, said
from tests.fixtures.redis_server import RedisServer

pytestmark = pytest.mark.slow

STATUS_KEYS = [
    *("issue", "name", "workflow_id", "profile", "status", "paused", "held", "verdict", "outcome", "owner"),
    *("phase", "specialist", "iteration", "max_iterations", "deadline", "operations", "report", "tree"),
    *("updated_at", "unverified", "specialists", "clocks_stand_still"),
]
SPECIALIST_KEYS = [
    *("name", "phase", "applicable", "status", "iteration", "max_iterations", "failures"),
    *("old", "evidence"),
]

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


def test_the_status_of_a_passed_issue_has_every_field_and_its_evidence(
    agents: Agents, capsys: Capsys
) -> None:
    workflow = agents.start(script="0")
    evidence = Evidence(check="pytest", command="pytest -q", exit_code=0, tree="tree-0")
    event = RunFinished(
        step="validate",
        specialist="test-runner",
        iteration=1,
        outcome="passed",
        tree="tree-0",
        evidence=(evidence,),
    )
    agents.apply(workflow, event)

    told = said(capsys, "status", "47", "--json")

    assert told.code == ExitCode.DONE
    document = told.document
    assert list(document) == STATUS_KEYS
    assert [list(each) for each in document["specialists"]] == [SPECIALIST_KEYS] * 6
    assert (document["status"], document["verdict"], document["outcome"]) == (
        "COMPLETED",
        "passed",
        "success",
    )
    assert document["deadline"] is None
    runner = document["specialists"][2]
    assert runner["applicable"]
    assert runner["evidence"][0]["command"] == "pytest -q"
    assert not document["specialists"][0]["applicable"]


def test_the_status_of_a_failing_issue_names_failures_owner_and_deadline(
    agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(script="2 1 0", fixer="outside"))

    document = said(capsys, "status", "47", "--json").document

    assert (document["status"], document["owner"], document["paused"]) == ("AWAITING_FIX", "agent", False)
    assert (document["phase"], document["iteration"], document["max_iterations"]) == ("Test Execution", 1, 5)
    assert (document["verdict"], document["outcome"]) == (None, None)
    assert document["deadline"].endswith("Z")
    assert document["deadline"] > document["updated_at"]
    assert [each["name"] for each in document["specialists"][2]["failures"]] == ["test_1", "test_2"]


def test_status_shows_why_it_stopped_the_failures_and_the_next_steps(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="2 2 2")
    agents.run(workflow)

    told = said(capsys, "status", "47")

    assert "Deadlock - no progress (ESC-47-test-runner-" in told.out
    assert "fixloop decide 47 manual-fix # you make and submit the fix" in told.out
    assert "2 (before: 2)" in told.out
    assert "fixloop/47" in told.out

    agents.apply(workflow, DecisionMade(decision=Decision.SKIP))
    told = said(capsys, "status", "47")
    assert "known issues of test-runner: test_1, test_2" in told.out
    assert "fixloop log 47" in told.out


def test_all_workflows_are_listed_live_ones_first(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(issue=1, script="0"))
    agents.start(issue=2, script="1 0")
    agents.run(agents.start(issue=3, script="0"))

    rows = said(capsys, "status", "--json").document["workflows"]
    table = said(capsys, "status").out.splitlines()

    assert [row["issue"] for row in rows] == [2, 3, 1] or [row["issue"] for row in rows] == [2, 1, 3]
    assert rows[0]["workflow_id"] == f"{PROJECT}-2-1"
    assert (rows[0]["iteration"], rows[0]["max_iterations"], rows[0]["paused"]) == (1, 5, False)
    assert table[1].startswith("#2")
    assert said(capsys, "status", "--json", "--project", "ffffffff").document == {
        "workflows": [],
        "metrics": {},
    }


def test_the_inbox_lists_decisions_with_their_commands_and_fixes_for_outside_agents(
    agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(issue=1, script="1 1 1"))
    agents.run(agents.start(issue=2, script="1 0", fixer="outside"))
    agents.run(agents.start(issue=3, script="0"))
    agents.start(issue=4, script="1 0")

    items = {item["issue"]: item for item in said(capsys, "inbox", "--json").document["items"]}

    assert sorted(items) == [1, 2]
    assert items[1]["commands"] == [
        f"fixloop decide 1 {name}" for name in ("manual-fix", "skip", "abort", "extend")
    ]
    assert items[1]["escalation_id"].startswith("ESC-1-test-runner-")
    assert (items[1]["waits_for"], items[1]["target"]) == ("decision", "User")
    assert (items[2]["waits_for"], items[2]["reason"]) == ("fix", "FIXREQ-2-1")
    assert items[2]["commands"] == ["fixloop ack 2", "fixloop fixed 2"]
    text = said(capsys, "inbox").out
    assert "waits for a decision" in text
    assert "fixloop decide 1 abort" in text


def test_a_blocker_and_a_manual_fix_are_in_the_inbox_too(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    agents.apply(workflow, BlockerSignalled(by="agent", text="the API key is gone"))

    (item,) = said(capsys, "inbox", "--json").document["items"]
    assert (item["reason"], item["detail"]) == ("Blocker", "agent: the API key is gone")

    agents.apply(workflow, DecisionMade(decision=Decision.MANUAL_FIX))
    (item,) = said(capsys, "inbox", "--json").document["items"]
    assert item["waits_for"] == "manual-fix"
    assert item["commands"] == ["fixloop fixed 47", "fixloop fixed 47 --here"]


def test_a_workflow_paused_by_a_person_says_how_to_continue(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)

    state = agents.apply(workflow, Paused(by="ann", reason="the machine is needed"))

    told = said(capsys, "status", "47").out
    assert re.search(
        r"^paused +by ann since .* UTC: the machine is needed; clocks are stopped$", told, re.MULTILINE
    )
    assert re.search(r"^next +fixloop continue 47$", told, re.MULTILINE)
    assert not re.search("^(deadline|engine)", told, re.MULTILINE)
    assert list(result_lines(state))[-1] == "fixloop continue 47"


def test_an_empty_inbox_says_so(agents: Agents, capsys: Capsys) -> None:
    told = said(capsys, "inbox")

    assert told.code == ExitCode.DONE
    assert told.err == "fixloop: nothing is waiting for you\n"
    assert told.out == ""


@pytest.mark.parametrize(
    ("script", "code", "last"),
    [("0", ExitCode.DONE, "#47 scripted 0: passed"), ("1 1 1", ExitCode.WAITS, "fixloop decide 47 extend")],
)
def test_watching_an_ended_issue_ends_at_once_with_the_exit_code_of_run(
    script: str, code: ExitCode, last: str, agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(script=script))

    told = said(capsys, "watch", "47")

    assert told.code == code
    assert told.out.splitlines()[-1].startswith(last)


def test_watching_an_aborted_issue_ends_with_1(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 1 1")
    agents.run(workflow)
    agents.apply(workflow, DecisionMade(decision=Decision.ABORT))

    told = said(capsys, "watch", "47")

    assert told.code == ExitCode.WRONG
    assert "aborted, not passed" in told.out


def test_following_on_a_pipe_prints_new_events_until_the_workflow_ends(agents: Agents) -> None:
    workflow = agents.start(script="1 0")
    out = io.StringIO()

    with open_session() as session:
        state = follow(session, workflow, tick=lambda: agents.run(workflow, 1), out=console(out)).state

    assert state.ended
    told = out.getvalue()
    titles = [
        "Failure detected",
        "Failure report",
        "Fix completion",
        "Re-validation trigger",
        "Success notification",
    ]
    places = [told.index(title) for title in titles]
    assert places == sorted(places)
    assert "\x1b" not in told


def test_following_on_a_terminal_redraws_one_view_until_the_workflow_ends(agents: Agents) -> None:
    workflow = agents.start(script="1 0")
    out = Console(file=io.StringIO(), force_terminal=True, width=100)

    with open_session() as session:
        state = follow(session, workflow, tick=lambda: agents.run(workflow), out=out).state

    assert state.ended
    assert isinstance(out.file, io.StringIO)
    assert "\x1b[" in out.file.getvalue(), "nothing was redrawn"
    assert "success" in out.file.getvalue()


def test_a_redis_that_is_restarted_does_not_end_a_watch(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RedisServer().start()
    store = RedisStore(server.url, patience_seconds=10)
    own = Agents(store)
    workflow = own.start(script="0")
    monkeypatch.setenv("FIXLOOP_STATE_URL", server.url)
    restart = threading.Timer(0.5, server.start)

    def injure() -> None:
        if not restart.is_alive() and restart.ident is None:
            server.signal(signal.SIGKILL)
            restart.start()
        else:
            own.run(workflow)

    try:
        with open_session() as session:
            state = follow(session, workflow, tick=injure, out=console(io.StringIO())).state
    finally:
        restart.join()
        store.close()
        server.end()

    assert state.outcome is WorkflowOutcome.SUCCESS


def test_watching_an_outside_agents_fix_without_a_terminal_ends_with_3(
    agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(script="2 0", fixer="outside"))

    told = said(capsys, "watch", "47")

    assert told.code == ExitCode.WAITS
    assert "#47 scripted 2 0 waits for a fix of 2 failures in test-runner run 1/5" in told.out
    assert told.out.splitlines()[-1] == "fixloop fixed 47  # submits the fix"


def test_audit_verifies_one_issue_or_a_whole_project(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(issue=1, script="3 1 0"))
    agents.run(agents.start(issue=2, script="1 1 1"))

    one = said(capsys, "audit", "verify", "1")
    every = said(capsys, "audit", "verify", "--project", PROJECT, "--json")

    assert one.code == every.code == ExitCode.DONE
    assert one.out == f"{PROJECT}-1-1: verified: 8 entries\n"
    assert [each["problems"] for each in every.document["workflows"]] == [[], []]
    assert all(each["replayed"] == each["entries"] for each in every.document["workflows"])


def test_audit_names_a_changed_entry_and_ends_with_1(agents: Agents, capsys: Capsys, redis_url: str) -> None:
    workflow = agents.start(script="1 0")
    agents.run(workflow)
    with redis.Redis.from_url(redis_url) as client:
        client.lset(history_key(workflow), 2, b"nonsense")

    told = said(capsys, "audit", "verify", "47")

    assert told.code == ExitCode.WRONG
    assert f"{workflow}: entry 3 " in told.out


def test_audit_notices_a_changed_snapshot(agents: Agents, capsys: Capsys, redis_url: str) -> None:
    one, other = agents.start(issue=1, script="0"), agents.start(issue=2, script="1 0")
    agents.run(one)
    with redis.Redis.from_url(redis_url) as client:
        client.hset(workflow_key(one), "snapshot", client.hget(workflow_key(other), "snapshot") or b"")

    told = said(capsys, "audit", "verify", "1")

    assert told.code == ExitCode.WRONG
    assert "the snapshot " in told.out


def test_an_issue_means_its_latest_workflow(agents: Agents) -> None:
    agents.run(agents.start(script="0"))
    second = agents.start(script="1 0", number=2)

    with open_session() as session:
        assert session.workflow_of(47) == session.workflow_of("#47") == second
        assert session.workflow_of(f"{PROJECT}-47-1") == f"{PROJECT}-47-1"
        assert session.workflow_of(47, "0a1b2c3d") == second


def test_the_current_project_is_preferred_and_an_ambiguous_number_refused(agents: Agents) -> None:
    agents.start(project="ledger")
    agents.start(project="shop", workflow="ffff0000-47-1")

    with open_session() as session:
        with pytest.raises(
            UsageError, match=r"issue 47 is in 2 projects: ledger \(0a1b2c3d\), shop \(ffff0000\)"
        ):
            session.workflow_of(47)
        assert session.workflow_of(47, "ffff0000") == "ffff0000-47-1"
        ours = agents.start(workflow=f"{session.project.hash8}-47-1")
        assert session.workflow_of(47) == ours


def test_without_an_issue_the_only_live_one_or_the_latest_is_meant(agents: Agents) -> None:
    with open_session() as session:
        ours = session.project.hash8
        with pytest.raises(UsageError, match="no workflow here yet"):
            session.workflow_of(None)
        agents.run(agents.start(workflow=f"{ours}-1-1", script="0"))
        agents.run(agents.start(workflow=f"{ours}-2-1", script="0"))
        assert session.workflow_of(None) == f"{ours}-2-1"
        agents.start(workflow=f"{ours}-1-2", script="1 0")
        assert session.workflow_of(None) == f"{ours}-1-2"
        agents.start(workflow=f"{ours}-9-1", script="1 0")
        with pytest.raises(UsageError, match=r"2 workflows are live here \(issues 1, 9\); name one"):
            session.workflow_of(None)


@pytest.mark.parametrize(
    ("issue", "sentence"),
    [
        ("48", "no workflow of issue 48; `fixloop status` lists all workflows"),
        ("abc", "'abc' is not an issue; use a positive whole number such as 47"),
        ("0", "'0' is not an issue"),
        ("9" * 400, "is not an issue"),
        ("0a1b2c3d-47-9", "no workflow 0a1b2c3d-47-9"),
    ],
)
def test_an_invalid_issue_is_one_sentence(issue: str, sentence: str, agents: Agents, capsys: Capsys) -> None:
    told = said(capsys, "log", issue)

    assert told.code == ExitCode.USAGE
    assert sentence in told.err
    assert told.err.count("\n") == 1


def test_changed_tests_and_gates_stay_marked_in_status_and_in_the_last_line(
    agents: Agents, capsys: Capsys
) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    completion = Completion(iteration=1, by="agent", tree="tree-1", tip="c1", marks=("tests/test_app.py",))
    agents.apply(workflow, FixCompleted(specialist="test-runner", completion=completion))
    agents.run(workflow)

    marked = "fixes touched tests or gates: tests/test_app.py"
    assert marked in said(capsys, "status", "47").out
    assert marked in said(capsys, "watch", "47").out.splitlines()[-1]


PYTEST = Unverified(
    name="pytest",
    specialist="test-runner",
    reason="not installed in .venv",
    remedy=".venv/bin/pip install pytest",
    blocks=True,
)
RUFF = Unverified(name="ruff", specialist="code-quality", reason="not installed in .venv")


def test_every_command_says_why_a_result_is_not_verified(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="0", specialists=("security",), unverified=(PYTEST,))
    agents.run(workflow)

    watched, one = said(capsys, "watch", "47"), said(capsys, "status", "47")
    document, listed = said(capsys, "status", "47", "--json").document, said(capsys, "status").out
    report, log = said(capsys, "report", "47").out, said(capsys, "log", "47", "--format", "markdown").out

    assert watched.code == ExitCode.WAITS
    assert watched.out.splitlines()[1:] == [
        "#47 scripted 0: not verified (what ran has passed: 1 specialist, 1 run, tree tree-0)",
        "  pytest of test-runner does not run here: not installed in .venv",
        "    .venv/bin/pip install pytest",
        "    or leave it out: list the checks in fixloop.toml (`fixloop init` does), "
        "with optional = true in its [specialist.test-runner]",
    ]
    assert "pytest of test-runner: not installed in .venv; .venv/bin/pip install pytest" in one.out
    assert (document["verdict"], document["outcome"]) == ("not_verified", "unverified")
    assert document["unverified"] == [PYTEST.model_dump()]
    assert "unverified" in listed
    assert "not verified here: pytest (not installed in .venv)" in report
    assert "Not verified (what ran has passed)" in log
    assert "all validations passed" not in report + log


def test_a_workflow_in_which_nothing_could_run_says_so_and_ends(agents: Agents, capsys: Capsys) -> None:
    agents.start(specialists=(), unverified=(PYTEST,))

    watched = said(capsys, "watch", "47")

    assert watched.code == ExitCode.WAITS
    assert watched.out.startswith(
        "#47 scripted 3 1 0: not verified: nothing could run here\n  pytest of test-runner"
    )
    assert said(capsys, "status", "47").code == ExitCode.DONE
    assert said(capsys, "inbox").out.strip() == ""
    assert "Nothing could run here" in said(capsys, "report", "47").out
    assert said(capsys, "log", "47", "--all").code == ExitCode.DONE


def test_the_line_of_a_pass_names_the_checks_that_did_not_run(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="0", unverified=(RUFF,)))

    watched = said(capsys, "watch", "47")

    assert watched.code == ExitCode.DONE
    last = watched.out.splitlines()[-1]
    assert last.startswith("#47 scripted 0: passed (")
    assert last.endswith("; not verified here: ruff (not installed in .venv)")
