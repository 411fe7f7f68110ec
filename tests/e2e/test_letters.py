"""Letters to agents outside of cycles and handoffs: real workers that die, and a mailbox that takes nothing (A70)."""

from collections.abc import Iterator

import pytest
import redis

from fixloop.engine.engine import ProfileEngine
from fixloop.outside.mailbox import Letter, Mailboxes, queue_name
from fixloop.profiles.cycle.events import DecisionMade
from fixloop.profiles.handoff.events import AgentReturned
from fixloop.profiles.handoff.returns import Returned
from tests.fixtures.crews import AGENTS, Crews
from tests.fixtures.deployment import PROJECT, Deployment, deployed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("letters")) as running:
        yield running


@pytest.fixture
def mailboxes(deployment: Deployment) -> Iterator[Mailboxes]:
    made = Mailboxes(deployment.url)
    yield made
    made.close()


def taken(mailboxes: Mailboxes, agent: str) -> list[Letter]:
    """All letters in the mailbox now."""
    found = []
    while (received := mailboxes.take(PROJECT, agent)) is not None:
        received.acknowledge()
        if received.letter is not None:
            found.append(received.letter)
    return found


def first_of(deployment: Deployment, mailboxes: Mailboxes, agent: str) -> list[Letter]:
    """The letters in the mailbox as soon as there are any."""
    found: list[Letter] = []

    def came() -> bool:
        found.extend(taken(mailboxes, agent))
        return bool(found)

    deployment.until(came)
    return found


@pytest.mark.proves("A70", "R7", "R14")
def test_a_letter_whose_caller_died_before_it_was_hinted_is_still_delivered(
    deployment: Deployment, mailboxes: Mailboxes
) -> None:
    handoffs = Crews(deployment, "handoff")
    dead = ProfileEngine(deployment.store, handoffs.profile)
    commands = dict.fromkeys(set(AGENTS["handoff"]) - {"builder"}, "scripted")
    workflow = handoffs.begin("", 301, commands={**commands, "planner": ""})
    first_of(deployment, mailboxes, "planner")

    spec = Returned(status="completed", spec="specs/a.md")
    dead.apply(workflow, AgentReturned(sender="planner", result=spec), operation="result")
    [task] = handoffs.state(workflow).messages

    [letter] = first_of(deployment, mailboxes, "builder")
    assert (letter.uid, letter.type) == (task.message_id, "task_handoff")


@pytest.mark.proves("A70", "R14", "R8")
def test_no_letter_is_lost_when_the_delivering_process_is_killed(
    deployment: Deployment, mailboxes: Mailboxes
) -> None:
    cycles, found = Crews(deployment, "cycle"), list[Letter]()
    graph = {"ra": (), "ep": (), "cd": ("ra", "ep"), "vas": ("cd",)}
    workflows = []
    for issue in range(311, 323):
        workflows.append(cycles.begin("", issue, commands={}, graph=graph))
        if issue % 4 == 0:
            deployment.kill("control")
            deployment.kill("sweep")

    def all_told() -> bool:
        return not any(cycles.state(workflow).letters for workflow in workflows)

    deployment.until(all_told)
    for agent in ("ra", "ep"):
        found += taken(mailboxes, agent)
    # What was sent twice is the same letter.
    assert {letter.uid for letter in found} == {
        f"{workflow}.{agent}.1.1" for workflow in workflows for agent in ("ra", "ep")
    }
    assert all(letter.message_id == letter.uid for letter in found)


@pytest.mark.proves("A70", "K5", "K12")
def test_an_undeliverable_letter_asks_a_person_and_extend_sends_it_again(
    deployment: Deployment, mailboxes: Mailboxes
) -> None:
    cycles = Crews(deployment, "cycle")
    with redis.Redis.from_url(deployment.url) as broker:
        broker.set(queue_name(PROJECT, "ra"), "somebody's string")
        workflow = cycles.begin("", 331, commands={})
        deployment.until(lambda: bool(cycles.state(workflow).escalations))
        broker.delete(queue_name(PROJECT, "ra"))

    [opened] = cycles.state(workflow).escalations
    assert (opened.reason, cycles.kinds(workflow).count("delivery-failed")) == ("communication_error", 3)
    cycles.tell(workflow, DecisionMade(decision="extend"))

    [letter] = first_of(deployment, mailboxes, "ra")
    assert letter.uid == f"{workflow}.ra.2.1"
