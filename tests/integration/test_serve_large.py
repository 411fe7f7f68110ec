"""Large pages: ten thousand workflows, five hundred open decisions, a thousand messages, a failure of 1 MB."""

import time
from typing import Final

import pytest
from fastapi.testclient import TestClient

from fixloop.protocol.failures import Failure
from fixloop.protocol.state import Limits
from fixloop.serve.rendering import compile_templates
from tests.fixtures.script import Fix, fails, failure
from tests.fixtures.serve_stage import Stage, on_redis
from tests.fixtures.served_workflows import Played

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)

SECONDS: Final = 0.5
"""Of a processor at its usual speed. Alone each page takes less than 0.2; with others its memory is slower, too."""
USUAL_SECONDS: Final = 0.05
"""The time of `slowness`'s computation there."""


@pytest.fixture
def client(stage: Stage) -> TestClient:
    compile_templates()
    headers = {"Authorization": f"Bearer {stage.token()}", "Accept": "text/html"}
    return TestClient(stage.app, headers=headers, follow_redirects=False)


def page(client: TestClient, path: str) -> str:
    slow = slowness()
    began = time.process_time()
    answer = client.get(path)
    took = (time.process_time() - began) / max(slow, slowness())
    print(f"{path.split('/ESC')[0]}: {took * 1000:.0f} ms, {len(answer.content):,} bytes")
    assert answer.status_code == 200
    assert took < SECONDS
    assert len(answer.content) < 1_000_000
    return answer.text


def slowness() -> float:
    """How many times longer than usual a processor takes now; at least 1."""
    began = time.process_time()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (time.process_time() - began) / USUAL_SECONDS)


def test_a_conversation_of_a_thousand_messages_is_shown_in_pages_with_its_count(
    stage: Stage, client: TestClient
) -> None:
    runs = [fails(failure("a", message=f"n{number}"), failure("b")) for number in range(249)]
    played, endless = Played(stage.agents.store), Limits(deadlock_window=None)
    workflow = played.play(1, runs, [Fix(diff="+x\n")] * 300, max_iterations=250, limits=endless)

    last, earlier = page(client, f"/w/{workflow}"), page(client, f"/w/{workflow}?messages=100")

    assert "998 messages, 899 to 998 here" in last
    assert "998 messages, 1 to 100 here" in earlier


def test_a_failure_and_a_difference_of_a_megabyte_are_shortened_and_counted(
    stage: Stage, client: TestClient
) -> None:
    played = Played(stage.agents.store)
    large = Failure(name="big", file="t.py", line=1, error_type="E", message="a line of it\n" * 80_000)
    workflow = played.play(2, [fails(large)] * 3, [Fix(diff="+y\n" * 300_000)] * 3)
    state = played.engine.state(workflow)
    assert state.escalation is not None

    decision = page(client, f"/w/{workflow}/decide/{state.escalation.message_id}")

    page(client, f"/w/{workflow}")
    assert "299900 more lines" in decision


def test_five_hundred_decisions_are_fifty_on_a_page_with_their_count(
    stage: Stage, client: TestClient
) -> None:
    for issue in range(500):
        stage.escalated(100 + issue)

    first, last = page(client, "/"), page(client, "/?start=450")

    assert "<b>500</b> wait for your decision" in first
    assert first.count('class="card item"') == last.count('class="card item"') == 50
    assert "451 to 500 of 500" in last


def test_ten_thousand_workflows_are_listed_in_pages_that_follow_one_another(
    stage: Stage, client: TestClient
) -> None:
    for issue in range(10_000):
        stage.agents.start(1 + issue)

    first = page(client, "/fleet")
    again = page(client, "/fleet?state=live")

    assert "10,000" in first
    assert first.count('<tr id="row-') == 100
    assert "later ones →" in again
