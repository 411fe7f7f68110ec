"""A fixer's input: the open failure report and its request, sent together or separately."""

import pytest

from fixloop.engine.history import open_report, what_is_asked
from fixloop.errors import RefusedError
from fixloop.protocol.failure_report import request_json
from tests.fixtures.command_stage import Agents
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.message_samples import START


@pytest.mark.proves("K9", "B27")
@pytest.mark.parametrize("bundled", [True, False])
def test_the_request_is_given_with_its_report_even_if_sent_separately(bundled: bool) -> None:
    agents = Agents(MemoryStore(lambda: START))
    workflow = agents.start(script="2 1 0", fixer="outside", bundle_fix_request=bundled)
    agents.run(workflow)
    found = agents.store.read(workflow)
    assert found is not None

    report = open_report(agents.store, workflow, found.version)
    text = what_is_asked(agents.store, workflow, found.version)

    assert request_json(report.message)["fix_request"]["message_id"] == "FIXREQ-47-1"
    assert text.count("FIXREQ-47-1") == text.count("## F1") == text.count("## Rules") == 1


def test_without_a_report_there_is_nothing_to_fix() -> None:
    agents = Agents(MemoryStore(lambda: START))
    workflow = agents.start(script="0")
    agents.run(workflow)

    with pytest.raises(RefusedError, match="has sent no failure report; there is nothing to fix yet"):
        open_report(agents.store, workflow, 3)
