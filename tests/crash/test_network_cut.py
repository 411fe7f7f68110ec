"""Workers whose links to Redis are taken down, in separate network namespaces. Root only; see `test_networks`."""

from pathlib import Path

import pytest

from fixloop.protocol.events import WorkflowStarted
from fixloop.store.keys import workflow_id
from fixloop.testing.networks import Unavailable, namespace_networks
from fixloop.testing.site import INJURED, LEFT_ALONE, Caller, Play, Site, calling, site

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
    started = WorkflowStarted(
        workflow=workflow_id(project, 1, 1),
        issue=1,
        name="a -",
        specialists=("test-runner",),
        fixer="command",
        tip="commit-0",
        tree="tree-0",
    )
    return place.run("one", caller.workflows([Play(started, started.name, (), None)]), lambda _: None)


@pytest.mark.proves("S30", "R7")
def test_workers_take_work_again_after_the_network_forgot_their_connections(tmp_path: Path) -> None:
    with site(tmp_path, 1, "namespaces") as place, calling(place.server.url) as caller:
        seconds_for_one(place, caller, LEFT_ALONE)
        for network in place.networks.by_host.values():
            place.in_loop(network.cut)

        for network in place.networks.by_host.values():
            place.in_loop(network.mend)

        assert seconds_for_one(place, caller, INJURED) < SECONDS
