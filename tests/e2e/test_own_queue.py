"""A `run` that starts its own worker, with a shared worker on the same Redis."""

from collections.abc import Iterator

import pytest

from fixloop.protocol.state import Limits
from fixloop.testing.rehearsal import undisturbed
from tests.fixtures.deployment import Deployment, deployed

pytestmark = pytest.mark.slow

QUEUE = "run-be9c4a11-1-1"


@pytest.fixture(scope="module")
def shared(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("shared")) as running:
        first = running.begin("-")
        running.finished(first.workflow)
        yield running


@pytest.fixture
def own(shared: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The worker of one run; its sweeper finds every shard held by the other's."""
    deployment = Deployment(shared.url, tmp_path_factory.mktemp("own"), concurrency=1, queue=QUEUE)
    try:
        yield deployment.start()
        deployment.stop()
        assert deployment.processes() == []
    finally:
        deployment.end()


def test_each_worker_serves_its_own_queue_and_finds_lost_hints_there(
    shared: Deployment, own: Deployment
) -> None:
    both = [
        shared.begin("a -", queue=queue, hinted=hinted) for queue in ("", QUEUE) for hinted in (True, False)
    ]

    shared.finished(*[started.workflow for started in both])

    for started in both:
        assert shared.story(started.workflow) == undisturbed(started)
        mine, others = (own, shared) if started.queue else (shared, own)
        assert len(mine.executions(f"{started.workflow}.")) == 3
        assert others.executions(f"{started.workflow}.") == []


@pytest.mark.proves("R6")
def test_the_deadlines_of_a_dead_run_still_expire(shared: Deployment, own: Deployment) -> None:
    limits = Limits(fix_seconds=4.0, reminder_window_seconds=60.0)
    started = shared.begin("a -", queue=QUEUE, fixer="outside", limits=limits)
    shared.until(lambda: shared.last_line(started.workflow).startswith("VFR-"))

    own.stop()

    shared.until(lambda: shared.last_line(started.workflow).startswith("TIMEOUT-"), about=started.workflow)
