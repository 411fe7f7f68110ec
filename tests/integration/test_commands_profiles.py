"""`status`, `log`, `watch`, `inbox` and `audit verify` on cycles and handoffs in a real Redis."""

import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from rich.console import Console

from fixloop.commands.session import Seen, open_session
from fixloop.commands.watch import follow
from fixloop.engine.bridging import child_of
from fixloop.errors import ExitCode, NewerVersion
from fixloop.profiles.cycle.presenter import PRESENTER
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.returns import Returned
from fixloop.protocol.agent_events import Cancelled
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.event import Moment
from fixloop.store.keys import workflow_key
from fixloop.store.records import Snapshot
from tests.fixtures.command_stage import PROJECT, Agents, Said, said
from tests.fixtures.cycle_stage import reported
from tests.fixtures.profile_runs import FLOW
from tests.fixtures.profile_stage import CYCLE_ID, Profiles, on_redis

pytestmark = pytest.mark.slow

profiles = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]

COMMON = [
    *("issue", "name", "workflow_id", "profile", "status", "paused", "held", "verdict", "outcome", "owner"),
    *("iteration", "max_iterations", "deadline", "tip", "pushed", "push_error", "updated_at"),
]
ENTRY_KEYS = [
    *("entry_id", "timestamp", "sender", "recipient", "message_type", "message_id", "summary"),
    *("status_before", "status_after", "iteration", "max_iterations", "rendered"),
]


def answers(told: Said) -> None:
    assert told.code == ExitCode.DONE, told.err


def asks_a_person(profiles: Profiles) -> str:
    """A cycle whose development cannot continue without a decision."""
    workflow = profiles.cycle()
    steps = [("ra", "requirements.md"), ("ep", "exploration.md")]
    for _, document in steps:
        profiles.store.put_artifact(workflow, document.encode())
    profiles.apply(workflow, *(reported(key, "success", document) for key, document in steps))
    profiles.apply(workflow, reported("cd", "partial", issues='["user: CSV or JSON?"]'))
    return workflow


@pytest.mark.proves("C66", "K20")
def test_the_status_of_a_cycle_names_its_agents_what_is_asked_and_who_decides(
    profiles: Profiles, capsys: Capsys
) -> None:
    asks_a_person(profiles)

    document = said(capsys, "status", "7", "--json").document

    assert list(document)[: len(COMMON)] == COMMON
    assert (document["profile"], document["cycle_id"], document["version"]) == ("cycle", CYCLE_ID, "1.0.0")
    assert (document["owner"], document["paused"], document["outcome"]) == ("person", True, None)
    stands = {agent["name"]: (agent["status"], agent["ready"]) for agent in document["agents"]}
    assert stands == {
        "ra": ("completed", True),
        "ep": ("completed", True),
        "cd": ("waiting", True),
        "vas": ("idle", False),
    }
    (opened,) = document["escalations"]
    assert (opened["reason"], opened["agents"]) == ("blocker", ["cd"])
    assert opened["options"] == ["manual-fix", "skip", "abort", "extend"]
    text = said(capsys, "status", "7").out
    assert "cd: user: CSV or JSON?" in text
    assert re.search(r'^next +fixloop decide 7 manual-fix --guidance "…"$', text, re.MULTILINE)
    assert "requirements.md v1.0.0" in text


@pytest.mark.proves("D20", "D50")
def test_the_status_of_handoffs_names_agents_handoffs_and_metrics(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.handoff()
    profiles.apply(
        workflow,
        hnd.AgentReturned(sender="planner", result=Returned(status="completed", spec="specs/auth.md")),
        hnd.AgentActivated(agent="builder"),
    )

    document = said(capsys, "status", "9", "--json").document

    assert list(document)[: len(COMMON)] == COMMON
    assert (document["profile"], document["spec"], document["current_agent"]) == (
        "handoff",
        "specs/auth.md",
        "builder",
    )
    (sent,) = document["handoffs"]
    assert (sent["type"], sent["from"], sent["to"], sent["status"]) == (
        "task_handoff",
        "planner",
        "builder",
        "accepted",
    )
    assert document["metrics"]["handoffs"] == 1
    text = said(capsys, "status", "9").out
    assert "task_handoff accepted" in text
    assert "fixloop fixed 9 --agent builder --file ANSWER" in text


def asked(profiles: Profiles, workflow: str, times: int = 1) -> None:
    """Have the planner of these handoffs ask a person this many times."""
    question = hnd.AgentEscalated(sender="planner", reason="spec", details="which?", blocking=False)
    profiles.apply(workflow, hnd.AgentActivated(agent="planner"), *[question] * times)


@pytest.mark.proves("D50", "D52")
def test_the_escalation_rate_is_that_of_all_workflows_of_a_project(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_ARCHIVE_DIR", str(tmp_path / "archive"))
    first, *_, last = [profiles.handoff(issue) for issue in (1, 2, 3)]
    profiles.cycle(4)
    asked(profiles, first, times=2)
    asked(profiles, profiles.handoff(5, workflow="ffffffff-5-1"))
    profiles.apply(last, Cancelled())
    said(capsys, "archive", "--older-than", "0")

    of_all = said(capsys, "status", "--json").document["metrics"]["handoff"]
    of_one = said(capsys, "status", "2", "--json").document["project_metrics"]
    reported = said(capsys, "report", "2", "--format", "json").document["status"]["project_metrics"]

    assert of_all == {"workflows": 4, "escalated": 2, "escalation_rate": 0.5}
    assert of_one == reported == {"workflows": 3, "escalated": 1, "escalation_rate": 0.3333}
    assert "handoff: 2 of 4 workflows escalated (50%)" in said(capsys, "status").out
    assert "1 of 3 workflows escalated (33%)" in said(capsys, "status", "2").out
    assert "1 of 3 workflows escalated (33%)" in said(capsys, "report", "2").out


@pytest.mark.proves("D52")
def test_older_workflows_count_in_the_escalation_rate_by_their_events(
    profiles: Profiles, capsys: Capsys, redis_url: str
) -> None:
    known = [profiles.handoff(issue) for issue in (1, 2, 3)]
    asked(profiles, known[0])
    with redis.Redis.from_url(redis_url) as client:
        assert [client.hdel(workflow_key(workflow), "escalated") for workflow in known] == [1, 1, 1]

    counted = said(capsys, "status", "--json").document["metrics"]["handoff"]

    assert counted == {"workflows": 3, "escalated": 1, "escalation_rate": 0.3333}
    with redis.Redis.from_url(redis_url) as client:
        client.hset(workflow_key(known[0]), "snapshot", b"garbled")
    assert said(capsys, "status", "--json").document["metrics"]["handoff"]["workflows"] == 3


def test_workflows_of_all_profiles_are_in_one_list(profiles: Profiles, capsys: Capsys) -> None:
    profiles.cycle(1)
    profiles.handoff(2)
    Agents(profiles.store).start(issue=3, script="1 0")

    rows = said(capsys, "status", "--json").document["workflows"]

    assert {row["issue"]: row["profile"] for row in rows} == {1: "cycle", 2: "handoff", 3: "validation"}
    answers(said(capsys, "status"))


@pytest.mark.proves("C57", "D41", "K27")
def test_the_inbox_has_the_open_decisions_of_all_profiles(profiles: Profiles, capsys: Capsys) -> None:
    asks_a_person(profiles)
    asked = profiles.handoff()
    profiles.apply(
        asked,
        hnd.AgentActivated(agent="planner"),
        hnd.AgentEscalated(
            sender="planner", reason="spec_ambiguity", details="which auth?", options=("JWT", "OAuth 2")
        ),
    )
    agents = Agents(profiles.store)
    agents.run(agents.start(script="1 1 1"))

    items = {item["profile"]: item for item in said(capsys, "inbox", "--json").document["items"]}

    assert {name: item["waits_for"] for name, item in items.items()} == {
        "cycle": "decision",
        "handoff": "answer",
        "validation": "decision",
    }
    assert items["handoff"]["options"] == ["JWT", "OAuth 2"]
    assert items["handoff"]["commands"] == ["fixloop decide 9 JWT", 'fixloop decide 9 "OAuth 2"']
    assert items["cycle"]["commands"][0] == 'fixloop decide 7 manual-fix --guidance "…"'
    text = said(capsys, "inbox").out
    assert "#9 Add user auth waits for an answer since" in text
    assert "#7 OAuth login waits for a decision since" in text


def test_the_inbox_has_the_requests_to_outside_agents(profiles: Profiles, capsys: Capsys) -> None:
    profiles.cycle()
    profiles.handoff()

    items = {item["issue"]: item for item in said(capsys, "inbox", "--json").document["items"]}

    assert (items[7]["waits_for"], items[7]["target"]) == ("work", "ra")
    asked = [profiles.apply(f"{PROJECT}-{issue}-1").agents[0].asked_at for issue in (7, 9)]
    assert [items[7]["since"], items[9]["since"]] == [iso_stamp(at) for at in asked]
    assert (items[9]["waits_for"], items[9]["target"]) == ("work", "planner")
    assert items[9]["commands"] == [
        "fixloop ack 9 --agent planner",
        "fixloop fixed 9 --agent planner --file ANSWER",
    ]


@pytest.mark.proves("C26", "C66")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_the_log_has_every_message_as_text_markdown_and_data(
    profiles: Profiles, capsys: Capsys, name: str
) -> None:
    profiles.whole(name)

    document = said(capsys, "log", FLOW, "--json").document
    lines = said(capsys, "log", FLOW).out.splitlines()
    markdown = said(capsys, "log", FLOW, "--format", "markdown").out

    assert [list(entry) for entry in document["entries"]] == [ENTRY_KEYS] * len(document["entries"])
    numbers = [entry["entry_id"] for entry in document["entries"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert document["statistics"]["total_messages"] == len(numbers) == lines.index("")
    assert document["statistics"]["final_status"] == "success"
    for entry in document["entries"]:
        assert all(line in markdown for line in entry["rendered"].splitlines())


@pytest.mark.proves("C32", "C33")
def test_a_cycle_s_log_shows_feedback_and_results_unchanged(profiles: Profiles, capsys: Capsys) -> None:
    profiles.whole("cycle")

    entries = said(capsys, "log", FLOW, "--json").document["entries"]

    texts = {entry["message_type"]: entry["rendered"] for entry in entries}
    assert texts["feedback"].startswith("## FEEDBACK FROM VAS")
    assert texts["phase-result"].startswith("PHASE_RESULT:\n- phase: vas\n- status: success")


@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_the_whole_log_shows_events_refusals_and_notes_as_well_as_messages(
    profiles: Profiles, capsys: Capsys, name: str
) -> None:
    profiles.whole(name)

    history = said(capsys, "log", FLOW, "--all", "--json").document["history"]
    text = said(capsys, "log", FLOW, "--all").out

    assert history[0]["text"].startswith(f"{name}s-started" if name == "handoff" else "cycle-started")
    assert {"event", "message"} <= {each["kind"] for each in history}
    assert [each["entry"] for each in history] == sorted(each["entry"] for each in history)
    assert len(text.splitlines()[: text.splitlines().index("")]) == len(history)


def test_the_log_of_one_agent_has_its_own_messages_and_those_to_it(
    profiles: Profiles, capsys: Capsys
) -> None:
    profiles.whole("handoff")

    entries = said(capsys, "log", FLOW, "--agent", "fixer", "--json").document["entries"]
    nobody = said(capsys, "log", FLOW, "--agent", "cd")

    assert [entry["message_type"] for entry in entries] == ["fix_request", "rereview_request", "completion"]
    assert nobody.code == ExitCode.USAGE
    assert "cd has no messages in #7; there are planner, builder" in nobody.err


@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_watching_an_ended_workflow_ends_at_once_with_0(
    profiles: Profiles, capsys: Capsys, name: str
) -> None:
    profiles.whole(name)

    told = said(capsys, "watch", FLOW)

    assert told.code == ExitCode.DONE
    assert ": success (" in told.out.splitlines()[-1]


def test_watching_a_workflow_that_waits_for_others_ends_with_3(profiles: Profiles, capsys: Capsys) -> None:
    asks_a_person(profiles)
    profiles.handoff()

    decision, work = said(capsys, "watch", "7"), said(capsys, "watch", "9")

    assert (decision.code, work.code) == (ExitCode.WAITS, ExitCode.WAITS)
    assert decision.out.splitlines()[-1] == "fixloop decide 7 extend"
    assert "#9 Add user auth waits for planner, run 1" in work.out


def test_watching_a_cancelled_workflow_ends_with_1(profiles: Profiles, capsys: Capsys) -> None:
    profiles.apply(profiles.cycle(), Cancelled())
    profiles.apply(profiles.handoff(), Cancelled())

    assert [said(capsys, "watch", issue).code for issue in ("7", "9")] == [ExitCode.WRONG] * 2


def test_an_escalation_does_not_end_a_watch_while_a_command_is_at_work(
    profiles: Profiles, capsys: Capsys
) -> None:
    graph = {"ra": (), "frontend": (), "ep": ("ra",), "cd": ("ep", "frontend"), "vas": ("cd",)}
    workflow = profiles.cycle(graph=graph, commands={"frontend": "make"})
    profiles.apply(workflow, reported("ra", "partial", issues='["user: which?"]'))

    document = said(capsys, "status", "7", "--json").document

    assert (document["owner"], len(document["escalations"])) == ("person", 1)
    assert PRESENTER.standing(profiles.cycles.state(workflow)).waits_for == ""


@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_audit_replays_every_decision_of_every_profile(profiles: Profiles, capsys: Capsys, name: str) -> None:
    profiles.whole(name)

    (audit,) = said(capsys, "audit", "verify", FLOW, "--json").document["workflows"]

    assert audit["problems"] == []
    assert audit["replayed"] == audit["entries"]


def test_a_workflow_of_an_unknown_profile_is_not_shown() -> None:
    now = Moment(datetime(2026, 3, 2, tzinfo=UTC), 0.0)
    found = Snapshot(FLOW, 1, b'{"profile":"relay","schema_version":1}', "", {}, now, 0.0, (), {})

    with pytest.raises(NewerVersion, match="'relay', which this version does not have"):
        Seen.of(found)


@pytest.mark.proves("D50", "C65")
@pytest.mark.parametrize(("name", "heading"), [("cycle", "## Timeline"), ("handoff", "## Metrics")])
def test_a_report_is_text_a_page_or_data(profiles: Profiles, capsys: Capsys, name: str, heading: str) -> None:
    profiles.whole(name)

    text = said(capsys, "report", FLOW)
    page = said(capsys, "report", FLOW, "--format", "html")

    assert text.code == page.code == ExitCode.DONE
    assert heading in text.out
    written = Path(page.out.strip())
    assert written.name == f"feature-7-{name}.html"
    assert "<script" not in written.read_text()


def test_a_report_shows_what_agents_wrote_as_text(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.cycle()
    profiles.apply(workflow, reported("ra", "partial", issues='["user: <script>alert(1)</script> | # x"]'))

    page = said(capsys, "report", "7", "--format", "html", "--output", "-").out
    text = said(capsys, "report", "7").out
    data = said(capsys, "report", "7", "--format", "json").document

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\\| \\# x" in text or "\\| # x" in text
    assert data["status"]["issue"] == 7
    assert data["entries"]


def test_a_waiting_child_workflow_ends_the_watch_and_is_named_by_its_id(
    profiles: Profiles, capsys: Capsys
) -> None:
    workflow = profiles.handoff(9, commands={"planner": "fixloop:validation"})
    found = profiles.store.read(workflow)
    assert found is not None
    ticket = found.tickets[0].ticket.id
    agents = Agents(profiles.store)
    child = agents.start(issue=9, workflow=child_of(ticket), parent=ticket, script="1 1 1")
    agents.run(child)

    watched = said(capsys, "watch", workflow)
    own = said(capsys, "inbox", "--project", "ledger", "--json").document["items"]
    other = said(capsys, "inbox", "--project", "shop", "--json").document["items"]

    assert watched.code == ExitCode.WAITS
    assert watched.out.splitlines()[-1].split("#")[0].rstrip() == f"fixloop decide {child} extend"
    assert [item["commands"][1] for item in own] == [f"fixloop decide {child} skip"]
    assert other == []


@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_on_a_terminal_one_view_is_redrawn_until_the_end(profiles: Profiles, name: str) -> None:
    workflow = profiles.cycle() if name == "cycle" else profiles.handoff()
    cancelled = Cancelled()
    out = Console(file=io.StringIO(), force_terminal=True, width=120)

    with open_session() as session:
        seen = follow(
            session,
            workflow,
            until=lambda now: bool(now.outcome),
            tick=lambda: profiles.apply(workflow, cancelled),
            out=out,
        )

    assert seen.standing.outcome == "cancelled"
    assert isinstance(out.file, io.StringIO)
    drawn = out.file.getvalue()
    assert "run 1: waiting for somebody outside · deadline in " in drawn
    assert "cancelled" in drawn


@pytest.mark.proves("G26")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_an_archived_workflow_is_shown_as_before_and_can_be_purged(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FIXLOOP_ARCHIVE_DIR", str(tmp_path / "archive"))
    profiles.whole(name)
    reading = (
        ("log", FLOW, "--json"),
        ("status", FLOW, "--json"),
        ("report", FLOW),
        ("audit", "verify", FLOW),
    )
    before = [said(capsys, *words) for words in reading]

    moved = said(capsys, "archive", "--older-than", "0")

    assert (moved.code, profiles.store.read(FLOW)) == (ExitCode.DONE, None)
    assert [said(capsys, *words) for words in reading] == before
    assert "purged" in said(capsys, "purge", "--older-than", "0").out
    assert said(capsys, "log", FLOW).code == ExitCode.USAGE
