"""An agent that fixloop does not start, as its user sees it: `fixloop mailbox`, `fixloop fixed`, real workers (G1)."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.fixtures.patience import slack
from tests.fixtures.project import CALC, RIGHT, TOML, Host, Project, Told, completed, hosted, until

pytestmark = pytest.mark.slow

AGENT = '[fixer]\nagent = "coder"\n[agent.coder]\n'


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with hosted(tmp_path_factory.mktemp("agents")) as running:
        yield running


@pytest.fixture
def client(host: Host) -> Iterator[Any]:
    found: Any = redis.Redis.from_url(host.url)
    yield found
    found.close()


def submitted(host: Host, name: str, *, agent: str = AGENT) -> Project:
    """A project with a wrong sum, whose agent has been asked to fix it."""
    project = host.project(name, toml=agent + TOML)
    told = project.fixloop("enqueue", "--issue", "1")
    assert told.code == 0, told.err
    until(lambda: project.status()["owner"] == "agent", what="the offer")
    return project


def letters(client: Any, project: Project) -> list[bytes]:
    """The lists of the broker that hold the project's mailbox."""
    hash8 = project.status()["workflow_id"].split("-")[0]
    return [key for key in client.keys(f"fixloop.mailbox.{hash8}.coder*")]


def mended(document: dict[str, Any]) -> None:
    (Path(document["directory"]) / "calc.py").write_text(RIGHT)


def read(project: Project) -> dict[str, Any]:
    """The one message that `mailbox coder --json` finds."""
    told = project.fixloop("mailbox", "coder", "--json")
    assert told.code == 0, told.err
    (found,) = told.document["messages"]
    message: dict[str, Any] = found
    return message


@pytest.mark.proves("A4", "A6", "G1", "A5")
def test_a_waiting_agent_gets_the_report_fixes_it_and_the_workflow_completes(host: Host) -> None:
    project = host.project("waits", toml=AGENT + "acks = true\n" + TOML)
    reader = project.start("mailbox", "coder", "--wait", "--minutes", "1", "--json")
    assert project.fixloop("enqueue", "--issue", "1").code == 0

    out, err = completed(reader)

    assert reader.returncode == 0, err
    (message,) = json.loads(out)["messages"]
    assert (message["message_id"], message["attached"]) == ("VFR-1-test-runner-1", "FIXREQ-1-1")
    assert "1 + 2 is not 3" in message["text"]
    assert project.status()["status"] == "FIXING"
    mended(message)
    assert project.fixloop("fixed", "1").out == "calc.py\n"
    watched = project.fixloop("watch", "1")
    assert watched.code == 0, watched.out
    until(lambda: read(project)["type"] == "success", what="the success")
    assert "receipt by coder of VFR-1-test-runner-1" in project.log()
    assert project.read("calc.py") == CALC


@pytest.mark.proves("A53", "A55")
def test_status_changes_are_shown_once_with_the_next_message_and_not_alone(host: Host) -> None:
    project = submitted(host, "informed")

    told = project.fixloop("mailbox", "coder")
    again = project.fixloop("mailbox", "coder", "--json").document

    assert told.code == 0, told.err
    _, _, lines = told.out.partition("## Status Changes")
    assert "test-runner: FAIL → AWAITING_FIX by the orchestrator" in lines
    # Reading was the receipt, which changed the status once more.
    (change,) = again["status_changes"]
    assert (change["previous_status"], change["new_status"]) == ("AWAITING_FIX", "FIXING")
    assert (change["entity"], change["specialist"], change["issue"]) == ("Main Agent", "test-runner", 1)
    mended(again["messages"][0])
    assert project.fixloop("fixed", "1").code == 0
    assert project.fixloop("watch", "1").code == 0
    until(lambda: read(project)["type"] == "success", what="the success")
    assert project.fixloop("mailbox", "coder").code == 1


@pytest.mark.proves("G1", "K39", "A5")
def test_the_text_comes_from_the_state_even_when_the_mailbox_was_emptied(host: Host, client: Any) -> None:
    project = submitted(host, "emptied")
    found = letters(client, project)
    assert found
    client.delete(*found)

    told = project.fixloop("mailbox", "coder")

    assert told.code == 0, told.err
    assert told.out.startswith("Make 1 failing test of Test Execution pass")
    assert "## Rules" in told.out
    assert "work in " in told.err
    assert "`fixloop fixed 1`" in told.err
    status = project.fixloop("status", "1")
    assert "coder" in status.out
    assert project.status()["report"]["acknowledged_by"] == "coder"
    mended(read(project))
    assert project.fixloop("fixed", "1").code == 0
    assert project.fixloop("watch", "1").code == 0


@pytest.mark.proves("G1", "R8")
def test_a_fix_request_is_shown_until_answered_and_acknowledged_once(host: Host, client: Any) -> None:
    project = submitted(host, "twice")

    first, second = read(project), read(project)

    assert first == second
    assert letters(client, project) == []
    assert project.log().count("receipt by coder") == 1
    assert project.fixloop("fixed", "1").code == 0
    until(lambda: project.status()["iteration"] == 2, what="the second report")
    until(lambda: project.status()["owner"] == "agent", what="the second offer")
    assert read(project)["message_id"] == "VFR-1-test-runner-2"


@pytest.mark.proves("A71", "G2")
def test_a_notice_comes_with_the_request_that_is_still_open(host: Host) -> None:
    project = submitted(host, "notice")
    read(project)
    project.write("answer.md", "## Fix Completion\n\nall done\n")

    assert project.fixloop("fixed", "1", "--file", "answer.md", "--here").code == 2
    told = project.fixloop("mailbox", "coder", "--json")

    assert [message["type"] for message in told.document["messages"]] == [
        "failure-report",
        "protocol-violation",
    ]


@pytest.mark.proves("A70", "K5")
def test_a_mailbox_is_read_from_the_state_when_its_broker_is_unreachable(host: Host) -> None:
    project = submitted(host, "parted")
    nobody = f"unix://{project.folder.parent}/nobody.sock"

    told = project.fixloop("mailbox", "coder", FIXLOOP_BROKER_URL=nobody)

    assert told.code == 0, told.err
    assert "FIXREQ-1-1" in told.out
    assert "showing what the state has" in told.err


@pytest.mark.proves("A70")
def test_an_unreachable_redis_is_reported_where_no_workflow_is_known(host: Host) -> None:
    project = host.project("away", toml=AGENT + TOML)
    nobody = f"unix://{project.folder.parent}/nobody.sock"

    for told in (
        project.fixloop("mailbox", "coder", "--wait", FIXLOOP_BROKER_URL=nobody),
        project.fixloop("mailbox", "coder", "--wait", FIXLOOP_STATE_URL=nobody),
    ):
        assert told.code == 4, told.err
        assert told.refusal
        assert told.seconds < slack(10), "it waited for a message"


def test_an_empty_mailbox_is_exit_code_1(host: Host) -> None:
    project = host.project("empty", toml=AGENT + TOML)

    plain, as_json = project.fixloop("mailbox", "coder"), project.fixloop("mailbox", "coder", "--json")
    waited = project.fixloop("mailbox", "coder", "--wait", "--minutes", "0.01")

    assert (plain.code, plain.out, plain.err) == (1, "", "fixloop: no message for coder\n")
    assert (as_json.code, as_json.document["messages"]) == (1, [])
    assert (waited.code, waited.err) == (1, plain.err)
    assert 0.6 < waited.seconds < slack(20)


@pytest.mark.parametrize(
    ("name", "toml", "sentence"),
    [
        ("codr", AGENT, "no agent 'codr' here; did you mean 'coder'?"),
        ("zzz", AGENT, "no agent 'zzz' here; known agents: coder"),
        ("coder", "", "no agent 'coder' here; declare it with [agent.NAME] in fixloop.toml"),
    ],
)
def test_an_undeclared_agent_is_refused_with_the_known_names(
    host: Host, name: str, toml: str, sentence: str
) -> None:
    folder = f"names-{name}-{bool(toml)}"

    told = host.project(folder, toml=toml + TOML).fixloop("mailbox", name)

    assert (told.code, told.refusal) == (2, sentence)


def test_run_with_an_embedded_redis_hands_over_to_the_agent(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", toml=AGENT + TOML)

    told = project.run()

    assert told.code == 3, told.err
    assert "fixloop mailbox coder" in told.out
    mended(read(project))
    assert project.fixloop("fixed", "1").code == 0
    assert project.fixloop("resume", "1").code == 0


def test_an_agent_may_wait_before_anything_was_run(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", toml=AGENT + TOML)
    assert before(project).code == 1
    reader: subprocess.Popen[str] = project.start("mailbox", "coder", "--wait", "--minutes", "1")
    until(lambda: (project.folder / ".fixloop").is_dir(), what="its Redis")

    assert project.run().code == 3

    out, err = completed(reader)
    assert reader.returncode == 0, err
    assert "FIXREQ-1-1" in out


def before(project: Project) -> Told:
    """The mailbox of a project without a workflow."""
    return project.fixloop("mailbox", "coder")
