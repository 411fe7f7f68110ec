"""Workflows as traces: of a real run whose commands join it, and for a collector that is sometimes away."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fixloop.protocol.tracing import trace_id
from fixloop.serve.traces import AGAIN_SECONDS, TICK_SECONDS, Collector, Tracer
from fixloop.summary.spans import spans_of
from tests.fixtures.command_stage import PROJECT
from tests.fixtures.profile_stage import Profiles
from tests.fixtures.project import Project
from tests.fixtures.serve_stage import Stage, on_redis
from tests.fixtures.served_workflows import Played
from tests.fixtures.trace_collector import TraceCollector, collecting

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)
TOML = """\
[specialist.test-runner]
command = ["sh", "-c", "echo $TRACEPARENT >> CHECKED; test -f fixed"]

[fixer]
command = ["sh", "-c", "echo $TRACEPARENT > fixed"]
"""


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    with collecting() as made:
        yield made


def test_checks_and_fixers_join_the_trace_of_their_workflow(
    tmp_path: Path, collector: TraceCollector
) -> None:
    told_by_checks = tmp_path / "checked"
    project = Project(tmp_path / "shop", toml=TOML.replace("CHECKED", str(told_by_checks)))
    ran = project.run(issue=47)
    assert ran.code == 0, ran.err

    told = project.fixloop("trace", "47")
    sent = project.fixloop("trace", "47", "--otlp", collector.url)

    spans = told.document["spans"]
    by_id = {each["span_id"]: each for each in spans}
    fixed = project.git("show", "fixloop/47:fixed").strip()
    checked = told_by_checks.read_text().split()
    for traceparent, kinds in ((fixed, {"fix"}), *((each, {"validate", "recheck"}) for each in checked)):
        _, trace, span, flags = traceparent.split("-")
        assert trace == spans[0]["trace_id"]
        assert flags == "01"
        assert by_id[span]["attributes"]["fixloop.kind"] in kinds
    assert [by_id[each.split("-")[2]]["name"] for each in dict.fromkeys(checked)] == [
        "check test-runner 1",
        "check test-runner 2",
    ]
    root, phase = spans[0], spans[1]
    assert (root["parent_span_id"], phase["parent_span_id"]) == (None, root["span_id"])
    assert root["attributes"]["cicd.pipeline.result"] == "success"
    assert len(root["attributes"]["vcs.ref.head.revision"]) == 40
    for each in spans[2:]:
        assert each["parent_span_id"] == phase["span_id"]
        assert root["start"] <= each["start"] <= each["end"] <= root["end"]
    assert len(by_id) == len(spans)
    assert sent.code == 0, sent.err
    assert {span.span_id.hex() for span in collector.spans} == set(by_id)


def test_a_collector_that_cannot_be_reached_is_one_sentence(tmp_path: Path, stage: Stage) -> None:
    stage.agents.start(47, script="0")
    stage.agents.run(f"{PROJECT}-47-1")
    project = Project(tmp_path / "shop", variables={"FIXLOOP_STATE_URL": stage.session.urls.state})

    told = project.fixloop("trace", f"{PROJECT}-47-1", "--otlp", "http://127.0.0.1:9")

    assert told.code == 4
    assert told.err.splitlines()[-1] == (
        "fixloop: the collector at http://127.0.0.1:9 did not take the trace; is its address right?"
    )


def tracer(stage: Stage, collector: TraceCollector) -> Tracer:
    session = stage.session
    return Tracer(session.store, session.connection, stage.service.follower, Collector(collector.url))


def ended(stage: Stage, issue: int) -> str:
    workflow = stage.agents.start(issue, script="1 0")
    stage.agents.run(workflow)
    stage.settle()
    return f"{trace_id(workflow):032x}"


def test_an_end_is_exported_once_and_earlier_ones_are_not(stage: Stage, collector: TraceCollector) -> None:
    ended(stage, 1)
    one = tracer(stage, collector)
    one.tell()
    second, live = ended(stage, 2), stage.agents.start(3)
    stage.settle()

    for _ in range(3):
        one.tell()
    stage.session.connection.call(lambda client: client.delete("fixloop:serve:turn:traces"))
    third = ended(stage, 4)
    another = tracer(stage, collector)
    for _ in range(3):
        another.tell()

    assert collector.traces() == [second, third]
    assert f"{trace_id(live):032x}" not in collector.traces()
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)


def test_a_collector_that_was_away_gets_every_span_later(stage: Stage, collector: TraceCollector) -> None:
    one = tracer(stage, collector)
    one.tell()
    traces = [ended(stage, issue) for issue in (1, 2)]
    collector.answers = [400]

    pauses = [one.tell(), one.tell()]

    assert pauses == [AGAIN_SECONDS, TICK_SECONDS]
    assert sorted(collector.traces()) == sorted(traces)


def test_the_spans_are_the_phases_of_the_history_with_worker_and_result(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    found = stage.agents.store.read(workflow)
    assert found is not None
    history = stage.agents.store.history(workflow)

    spans = spans_of(workflow, found.fields, history, found.moment)
    again = spans_of(workflow, found.fields, history, found.moment)

    assert [each.name for each in spans] == [
        "validate #47",
        "test-runner",
        "check test-runner 1",
        "fix test-runner 1",
        "check test-runner 2",
        "fix test-runner 2",
        "check test-runner 3",
        "fix test-runner 3",
        "check test-runner 4",
        "decide test-runner",
    ]
    assert [each.id for each in spans] == [each.id for each in again]
    fix: dict[str, Any] = dict(spans[3].attributes)
    assert (fix["gen_ai.agent.name"], fix["cicd.pipeline.task.run.result"]) == ("coder", "success")
    assert spans[2].is_failed
    assert spans[2].attributes["cicd.pipeline.task.run.result"] == "failure"
    assert spans[2].end == datetime.fromisoformat(history[1].body["at"])
    assert "cicd.pipeline.result" not in spans[0].attributes


def test_a_workflow_of_agents_is_one_span(stage: Stage) -> None:
    workflow = Profiles(stage.agents.store).cycle(issue=7)
    found = stage.agents.store.read(workflow)
    assert found is not None

    [span] = spans_of(workflow, found.fields, stage.agents.store.history(workflow), found.moment)

    assert span.name == "validate #7"
