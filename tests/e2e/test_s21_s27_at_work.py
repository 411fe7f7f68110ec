"""S21, S22 and S24 to S27 through real workers and a real Redis; outside events go through the engine."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count, pairwise
from typing import Any

import pytest

from fixloop.engine.hints import send_hint
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.cycle.files import state_document
from fixloop.profiles.cycle.messages import Input, Message
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.workers import DEFAULT_GRAPH
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.state import Limits
from tests.contract.test_profiles import CYCLE_TICKETS, HANDOFF_TICKETS
from tests.e2e.file_observer import drawn_at_each_version, outcomes
from tests.e2e.parallel_crew import PARALLEL
from tests.fixtures.crews import Crews, refused
from tests.fixtures.deployment import ROOT, Deployment, deployed

pytestmark = pytest.mark.slow

BASE_SECONDS = 0.2
BESIDE = {**DEFAULT_GRAPH, "frontend": ()}
TOGETHER = {"ra": (), "ep": (), "cd": ("ra", "ep"), "vas": ("cd",)}
WITH_FRONTEND = {key: "scripted" for key in BESIDE}

Scenes = Mapping[str, tuple[Crews, str]]


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder, crew = tmp_path_factory.mktemp("scenes"), "tests.e2e.parallel_crew:parallel_crew"
    with deployed(redis_url, folder, concurrency=4, FIXLOOP_CREW=crew, PYTHONPATH=str(ROOT)) as running:
        yield running


@pytest.fixture(scope="module")
def begun(deployment: Deployment) -> Scenes:
    """By name, workflows that all start together, to run in parallel."""
    cycles, handoffs, issues = Crews(deployment, "cycle"), Crews(deployment, "handoff"), count(1)
    slow = Limits(base_seconds=BASE_SECONDS)

    def cycle(script: str, **facts: Any) -> tuple[Crews, str]:
        return cycles, cycles.begin(script, next(issues), **facts)

    def handoff(script: str, **facts: Any) -> tuple[Crews, str]:
        return handoffs, handoffs.begin(script, next(issues), **facts)

    return {
        "S17 dying": cycle("cd: #unclear ok; vas: #no ok"),
        "S23 dying": handoff("builder: #ok; reviewer: no ok; fixer: #ok"),
        "tried again": handoff("builder: !!ok", limits=slow),
        "exhausted": handoff("builder: !"),
        "fatal": handoff("builder: fatal"),
        "wrong status": handoff("builder: no"),
        "five rounds": cycle("vas: no"),
        "five reviews": handoff("reviewer: no"),
        "stuck": cycle("cd: stuck ok", graph=BESIDE, commands=WITH_FRONTEND),
        "asking": handoff("builder: ask ok"),
        "noting": handoff("builder: note ok"),
        "S17": cycle("cd: unclear ok; vas: no ok"),
        "S23": handoff("reviewer: no ok"),
    }


def said(crews: Crews, workflow: str) -> list[Mapping[str, Any]]:
    """Every message of a history, in order."""
    history = crews.deployment.store.history(workflow)
    return [line for entry in history for line in entry.body.get("messages", ())]


def inputs(crews: Crews, workflow: str, recipient: str, kind: InputKind) -> list[Input]:
    """The orchestrator's messages to an agent of a cycle."""
    bodies = [m.body for m in map(Message.model_validate, said(crews, workflow)) if m.recipient == recipient]
    return [body for body in bodies if isinstance(body, Input) and body.input is kind]


@pytest.mark.proves("S22", "C57", "G11")
def test_s22_five_failing_rounds_give_four_feedbacks_and_one_escalation(begun: Scenes) -> None:
    cycles, workflow = begun["five rounds"]

    state = cycles.ended(workflow)

    assert [entry.iteration for entry in state.feedback_log] == [1, 2, 3, 4, 5]
    assert len(inputs(cycles, workflow, "cd", InputKind.FEEDBACK)) == 4
    assert [opened.reason for opened in state.escalations] == ["max_iterations"]
    assert state.remaining_issues == ("login fails",)
    assert Counter(ticket.split(".")[0] for ticket in cycles.tickets(workflow)) == {
        "ra": 1,
        "ep": 1,
        "cd": 5,
        "vas": 5,
    }


@pytest.mark.proves("S22", "C58", "C59")
def test_s22_an_agent_continues_with_a_person_s_guidance_alone(begun: Scenes) -> None:
    cycles, workflow = begun["stuck"]
    cycles.deployment.until(lambda: cycles.state(workflow).escalations != (), about=workflow)

    cycles.tell(workflow, cyc.DecisionMade(decision="manual-fix", text="use OAuth optional"))

    assert cycles.ended(workflow).outcome == "success"
    guidance = inputs(cycles, workflow, "cd", InputKind.CLARIFICATION)
    assert [body.actions for body in guidance] == [("use OAuth optional",)]
    assert sorted(cycles.tickets(workflow)) == [
        *("cd.1.1", "cd.2.1", "ep.1.1", "frontend.1.1", "ra.1.1", "vas.1.1")
    ]
    assert [(b.status, b.resolution) for b in cycles.state(workflow).blockers] == [
        ("resolved", "use OAuth optional")
    ]


@pytest.mark.proves("S24", "D37", "D39")
def test_s24_a_builder_that_raises_twice_is_waited_for_longer_each_time(begun: Scenes) -> None:
    handoffs, workflow = begun["tried again"]

    assert handoffs.ended(workflow).outcome == "success"
    attempts = [ticket for ticket in handoffs.tickets(workflow) if ticket.startswith("builder")]
    assert attempts == ["builder.1.1", "builder.1.2", "builder.1.3"]
    asked = [step for _, told in _outcomes(handoffs, workflow) for step in told.steps]
    delays = {step.id.removeprefix(f"{workflow}."): step.delay_seconds for step in asked}
    assert [delays[each] for each in attempts] == [0.0, BASE_SECONDS, 2 * BASE_SECONDS]
    starts = _started_at(handoffs.deployment, workflow, "builder")
    pauses = [after - before for before, after in pairwise(starts)]
    assert pauses[0] >= BASE_SECONDS
    assert pauses[1] >= 2 * BASE_SECONDS
    told = Counter(event.event for event in handoffs.state(workflow).events)
    assert (told["error_occurred"], told["escalation_triggered"], told["agent_started"]) == (2, 0, 3)


@pytest.mark.proves("S24", "D38", "D40", "K5")
@pytest.mark.parametrize(
    ("scene", "attempts", "reason"),
    [
        ("exhausted", 3, "retries_exhausted"),
        ("fatal", 1, "fatal_error"),
        ("wrong status", 3, "retries_exhausted"),
    ],
)
def test_s24_exhausted_retries_escalate_to_a_person_once(
    begun: Scenes, scene: str, attempts: int, reason: str
) -> None:
    handoffs, workflow = begun[scene]

    state = handoffs.ended(workflow)

    assert handoffs.tickets(workflow)[1:] == [f"builder.1.{number}" for number in range(1, attempts + 1)]
    assert [question.reason for question in state.questions] == [reason]
    told = Counter(event.event for event in state.events)
    assert (told["error_occurred"], told["escalation_triggered"]) == (attempts, 1)


@pytest.mark.proves("S26", "D42", "D43")
def test_s26_a_question_that_blocks_waits_for_one_of_its_options(begun: Scenes) -> None:
    handoffs, workflow = begun["asking"]
    paused = handoffs.ended(workflow)
    (question,) = paused.questions
    assert (paused.status, question.agent, question.options) == ("paused", "builder", ("jwt", "session"))
    asked = next(line for line in said(handoffs, workflow) if line["type"] == "escalation")
    assert (asked["from"], asked["to"]) == ("builder", "orchestrator")

    assert "'Basic' is none of the options" in refused(handoffs, workflow, hnd.Answered(answer="Basic"))
    handoffs.tell(workflow, hnd.Answered(answer="session"))

    state = handoffs.ended(workflow)
    assert state.outcome == "success"
    assert handoffs.tickets(workflow) == ["planner.1.1", "builder.1.1", "builder.2.1", "reviewer.1.1"]
    went_on = [told.state.agent("builder").answer for _, told in _outcomes(handoffs, workflow) if told.steps]
    assert went_on == ["", "", "session", ""]


@pytest.mark.proves("S26", "D41", "D42")
def test_s26_a_question_that_blocks_nothing_lets_the_workflow_continue(begun: Scenes) -> None:
    handoffs, workflow = begun["noting"]

    handoffs.deployment.until(lambda: handoffs.state(workflow).ended, about=workflow)

    assert handoffs.state(workflow).outcome == "success"
    assert handoffs.tickets(workflow) == ["planner.1.1", "builder.1.1", "reviewer.1.1"]
    kinds = handoffs.kinds(workflow)
    assert kinds.index("agent-escalated") < kinds.index("agent-returned", kinds.index("agent-escalated"))


@pytest.mark.proves("S27", "D50", "G11")
def test_s27_five_reviews_with_issues_escalate_to_a_person_at_the_fifth(begun: Scenes) -> None:
    handoffs, workflow = begun["five reviews"]

    state = handoffs.ended(workflow)

    rounds = [f"{agent}.{number}.1" for number in range(1, 6) for agent in ("reviewer", "fixer")]
    assert handoffs.tickets(workflow) == ["planner.1.1", "builder.1.1", *rounds[:-1]]
    assert [question.reason for question in state.questions] == ["max_iterations"]


@pytest.mark.proves("S21", "C62", "C41")
def test_s21_two_workers_report_at_one_instant_and_none_is_lost(deployment: Deployment) -> None:
    cycles, (name, _) = Crews(deployment, "cycle"), PARALLEL
    workflow = cycles.begin(name, 41, graph=TOGETHER)

    assert cycles.ended(workflow).outcome == "success"
    history = deployment.store.history(workflow)
    reports = [entry for entry in history if entry.body["event"]["kind"] == "phase-reported"][:2]
    assert {entry.body["event"]["sender"] for entry in reports} == {"ra", "ep"}
    assert len({entry.body["by"]["owner"] for entry in reports}) == 2
    assert reports[1].seq == reports[0].seq + 1
    assert cycles.tickets(workflow).count("cd.1.1") == 1
    shown = {
        outcome.state.agent("cd").status: {
            key: (agent["ready"], agent["can_start"])
            for key, agent in state_document(outcome.state)["agents"].items()
        }
        for _, outcome in _outcomes(cycles, workflow)
    }
    assert shown["running"] == {
        "ra": (True, True),
        "ep": (True, True),
        "cd": (True, True),
        "vas": (False, False),
    }


@pytest.mark.proves("S30", "R7", "R8", "K40")
@pytest.mark.parametrize(
    ("scene", "done", "dies_in"),
    [
        ("S17", CYCLE_TICKETS[:-1], {"cd.1.1", "vas.1.1"}),
        ("S23", HANDOFF_TICKETS, {"builder.1.1", "fixer.1.1"}),
    ],
)
def test_s30_dead_worker_processes_and_repeated_messages_change_nothing(
    begun: Scenes, scene: str, done: list[str], dies_in: set[str]
) -> None:
    crews, dying = begun[f"{scene} dying"]
    _, undisturbed = begun[scene]
    crews.ended(undisturbed)
    crews.ended(dying)
    before = crews.deployment.store.read(dying)
    steps = [step for _, told in _outcomes(crews, dying) for step in told.steps]
    seen = len(crews.deployment.deliveries())

    for step in steps * 2:
        send_hint(
            crews.deployment.producer, step.model_copy(update={"delay_seconds": 0.0}), crews.profile.name
        )
    copies = Counter({step.id: 2 for step in steps})
    crews.deployment.until(
        lambda: Counter(ticket for ticket, _ in crews.deployment.deliveries()[seen:]) >= copies, about=dying
    )

    after = crews.deployment.store.read(dying)
    assert before is not None
    assert after is not None
    assert after.version == before.version
    # A death that no process survived to count happens once more.
    assert set(Counter(crews.tickets(dying)) - Counter(done)) == dies_in
    assert _account(crews, dying) == _account(crews, undisturbed)
    assert crews.deployment.store.verify(dying) == []


def _account(crews: Crews, workflow: str) -> dict[str, Any]:
    """The result of any workflow: its events, its messages, its agents' statuses, its files."""
    state = crews.state(workflow)
    files = list(drawn_at_each_version(crews.deployment.store, crews.profile, workflow).values())[-1]
    own = getattr(state, "cycle_id", "handoffs")
    names = [path.rpartition("/")[0] if "/handoffs/" in path else path.replace(own, "#") for path in files]
    return {
        "events": crews.kinds(workflow),
        "lines": [_line(line) for line in said(crews, workflow)],
        "agents": [(agent.status, agent.asked) for agent in state.agents],
        "told": [(event.event, event.agent) for event in getattr(state, "events", ())],
        "versions": [(d.agent, d.name, d.version) for d in getattr(state, "documents", ())],
        "end": (state.status, state.outcome, state.iteration, state.tip),
        "files": sorted(names),
    }


def _line(line: Mapping[str, Any]) -> tuple[Any, ...]:
    kind = line["type"] if "type" in line else line["body"]["kind"]
    return line.get("from", line.get("sender")), line.get("to", line.get("recipient")), kind


def _outcomes(crews: Crews, workflow: str) -> Iterator[tuple[int, Any]]:
    return outcomes(crews.deployment.store, crews.profile, workflow)


def _started_at(deployment: Deployment, workflow: str, agent: str) -> list[float]:
    """When each attempt of an agent started, in seconds of one clock."""
    lines = (deployment.folder / "executions").read_text().splitlines()
    return [float(line.split()[5]) for line in lines if line.startswith(f"{workflow}.{agent}.")]
