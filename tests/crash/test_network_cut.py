"""Workers whose links to Redis are taken down, in separate network namespaces. Root only; see `test_networks`."""

from pathlib import Path

import pytest

from fixloop.testing.crew import scripted_workflow
from fixloop.testing.networks import Unavailable, namespace_networks
from fixloop.testing.site import INJURED, LEFT_ALONE, Caller, Order, Play, Site, calling, site
from tests.fixtures.patience import slack

pytestmark = pytest.mark.slow

SECONDS = 15.0
"""On a machine that is busy with other tests; alone it takes 5."""


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    try:
        with namespace_networks([]):
            pass
    except Unavailable as reason:
        pytest.skip(f"no network namespace can be made here: {reason}")


def seconds_for_one(place: Site, caller: Caller, project: str) -> float:
    """How long a workflow of three steps takes."""
    started = scripted_workflow(project, 1, "a -")
    return place.run("one", caller.workflows([Play(started, started.name, (), None)]), lambda _: None)


@pytest.mark.proves("S30", "R7")
def test_workers_take_work_again_after_the_network_forgot_their_connections(tmp_path: Path) -> None:
    order = Order(1, 1, 1, concurrency=1, network="namespaces")
    with site(tmp_path, order) as place, calling(place.server.url) as caller:
        seconds_for_one(place, caller, LEFT_ALONE)
        for network in place.networks.by_host.values():
            place.in_loop(network.cut)

        for network in place.networks.by_host.values():
            place.in_loop(network.mend)

        assert seconds_for_one(place, caller, INJURED) < slack(SECONDS)
