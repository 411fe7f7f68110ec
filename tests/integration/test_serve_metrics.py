"""Monitoring for operators: metrics for Prometheus, alerts on them, and whether server and Redis answer."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from fixloop.serve.metrics import exposition, gauge
from tests.fixtures.command_stage import PROJECT, said
from tests.fixtures.serve_stage import Stage, on_redis

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)
FOLDER = Path(__file__).resolve().parents[2] / "config" / "observability"


def scraped(stage: Stage) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = stage.client("viewer").get("/metrics")
    assert answer.status_code == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    samples = (sample for family in families for sample in family.samples)
    return {(each.name, tuple(sorted(each.labels.items()))): each.value for each in samples}


def test_the_metrics_match_redis(stage: Stage) -> None:
    stage.escalated(1)
    stage.held(2)
    stage.agents.start(3)
    stage.settle()

    found = scraped(stage)

    by_state = {"person": 2.0, "engine": 1.0}
    for state, count in by_state.items():
        assert found["fixloop_workflows", (("profile", "validation"), ("state", state))] == count
    assert found["fixloop_steps", (("queue", "fixloop.test-runner"), ("state", "ready"))] == 1
    assert found["fixloop_integrity_holds_open", ()] == 1
    reason = (("reason", "Integrity hold"), ("waits_for", "decision"))
    assert found["fixloop_escalations_open", reason] == 1
    assert 0 <= found["fixloop_escalation_oldest_seconds", ()] < 3600


def test_durations_are_counted_once_from_the_histories(stage: Stage) -> None:
    workflow = stage.escalated(1)
    before = scraped(stage)
    item = stage.client().get("/v1/inbox").json()["items"][0]
    etag = stage.client().get(f"/v1/workflows/{workflow}").headers["ETag"]
    body = {"escalation": item["escalation_id"], "decision": "abort"}
    stage.client("decider").post(f"/v1/workflows/{workflow}/decisions", json=body, headers={"If-Match": etag})
    stage.agents.start(3, script="1 0")
    stage.agents.run(f"{PROJECT}-3-1")
    stage.held(2)
    stage.settle()

    found = [scraped(stage), scraped(stage)]

    assert "fixloop_workflow_seconds_count" not in {name for name, _ in before}
    for each in found:
        assert each["fixloop_decision_seconds_count", (("reason", "deadlock"),)] == 1
        assert each["fixloop_workflow_seconds_count", (("outcome", "aborted"),)] == 1
        assert each["fixloop_workflow_seconds_count", (("outcome", "success"),)] == 1
        passed = {
            labels[0][1]: value
            for (name, labels), value in each.items()
            if name == "fixloop_iterations_to_pass_bucket"
        }
        assert (passed["1"], passed["2"], passed["+Inf"]) == (0, 1, 1), "the second run passed"
        assert each["fixloop_integrity_holds_total", (("rule", "words"),)] == 1
        assert each["fixloop_redis_memory_used_bytes", ()] > 100_000
        assert each["fixloop_histories_unread", ()] == 0


def test_a_hostile_label_value_stays_one_label() -> None:
    hostile = 'a"b\\c\nfixloop_up 1'
    text = exposition([gauge("steps", "Steps.", ["queue"], {(hostile,): 2})]).decode()

    [family] = text_string_to_metric_families(text)

    assert [(sample.labels, sample.value) for sample in family.samples] == [({"queue": hostile}, 2.0)]


def test_every_metric_in_alerts_and_dashboard_exists(stage: Stage) -> None:
    stage.escalated(1)
    stage.agents.start(2)
    stage.settle()
    text = stage.client("viewer").get("/metrics").text
    told = {family.name for family in text_string_to_metric_families(text)}
    rules = [
        rule for group in YAML(typ="safe").load(FOLDER / "alerts.yml")["groups"] for rule in group["rules"]
    ]
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    queries = [rule["expr"] for rule in rules] + [
        each["expr"] for panel in panels for each in panel["targets"]
    ]

    parts = re.compile(r"_(bucket|total)$")
    named = {parts.sub("", name) for query in queries for name in re.findall(r"fixloop_\w+", query)}

    assert len(rules) == 8
    assert named <= told
    assert {"fixloop_clock_runs", "fixloop_steps"} <= named


def test_promtool_accepts_the_rules_and_the_metrics(stage: Stage, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool here (Debian: apt install prometheus)")
    text = stage.client("viewer").get("/metrics").text

    rules = subprocess.run(
        [promtool, "check", "rules", FOLDER / "alerts.yml"], capture_output=True, text=True
    )
    figures = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)

    assert rules.returncode == 0, rules.stdout + rules.stderr
    assert figures.returncode == 0, figures.stdout + figures.stderr


def test_the_metrics_cover_all_projects_and_are_refused_to_callers_of_some(stage: Stage) -> None:
    assert stage.client("viewer", projects=("0a1b2c3d",)).get("/metrics").status_code == 403
    assert stage.client("").get("/metrics").status_code == 401


def test_liveness_and_readiness_need_no_token(stage: Stage) -> None:
    nobody = stage.client("")

    assert [nobody.get(path).text for path in ("/healthz", "/readyz")] == ["ok\n", "ok\n"]


def test_queues_are_shown_with_the_load_that_scales_workers(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.agents.start(1)
    stage.agents.start(2)

    document = said(capsys, "queues", "--json", "--concurrency", "4").document
    shown = said(capsys, "queues").out

    [queue] = document["queues"]
    assert (queue["queue"], queue["ready"], queue["claimed"]) == ("fixloop.test-runner", 2, 0)
    assert document["load"] == 0.5
    assert "fixloop.test-runner" in shown
