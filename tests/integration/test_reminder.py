"""The process that a timekeeper starts does the steps that notify somebody, without a worker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.protocol.events import BlockerSignalled, ReportDelivered, RunFinished
from fixloop.protocol.failures import Failure
from tests.fixtures.deployment import ROOT, Deployment

pytestmark = pytest.mark.slow


@pytest.mark.proves("A56")
def test_a_person_is_notified_of_a_workflow_with_a_queue_of_its_own(redis_url: str, tmp_path: Path) -> None:
    own = Deployment(redis_url, tmp_path)
    workflow = own.begin("a -", hinted=False, fixer="outside", queue="run-47", notify=True).workflow
    failed = RunFinished(
        step="validate",
        specialist="test-runner",
        iteration=1,
        outcome="failed",
        tree=own.state(workflow).tree,
        failures=(Failure(name="a test"),),
    )
    events = (
        failed,
        ReportDelivered(specialist="test-runner", iteration=1),
        BlockerSignalled(by="an agent", text="it is not mine"),
    )
    for number, event in enumerate(events):
        own.engine.apply(workflow, event, operation=str(number))

    words = [
        sys.executable,
        str(ROOT / "workers" / "launch.py"),
        "remind",
        json.dumps({"workflows": [workflow]}),
    ]
    subprocess.run(words, env=os.environ | own.environment, check=True, cwd="/")

    assert own.events(workflow)[-1]["kind"] == "person-notified"
