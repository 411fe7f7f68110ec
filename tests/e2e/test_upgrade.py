"""A rolling upgrade: workers of two versions on the same queues. The older ones leave what newer ones wrote."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

from fixloop.protocol.state import SCHEMA_VERSION
from fixloop.store.records import Commit
from tests.fixtures.deployment import Deployment, fresh_database

pytestmark = pytest.mark.slow

NEWER: Final = f"""
import fixloop.protocol.state
fixloop.protocol.state.SCHEMA_VERSION = {SCHEMA_VERSION + 1}
"""


def written_by_a_newer_version(deployment: Deployment, workflow: str) -> bytes:
    """Its snapshot, as the next schema has it."""
    found = deployment.store.read(workflow)
    assert found is not None
    snapshot = json.dumps(json.loads(found.snapshot) | {"schema_version": SCHEMA_VERSION + 1}).encode()
    entry = {"at": found.moment.at.isoformat(), "clock": 0.0, "decide": 99, "event": {"kind": "unheard-of"}}
    changed = deployment.store.commit(
        Commit(workflow=workflow, expected_version=found.version, snapshot=snapshot, entry=entry)
    )
    assert changed.status == "ok"
    return snapshot


@pytest.mark.proves("R8", "S30")
def test_older_workers_leave_a_newer_workflow_and_a_newer_worker_continues_with_it(
    redis_url: str, tmp_path: Path
) -> None:
    for name in ("older", "newer", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NEWER)
    url = fresh_database(redis_url)
    older = Deployment(url, tmp_path / "older")
    path = os.pathsep.join(filter(None, (str(tmp_path / "site"), os.environ.get("PYTHONPATH", ""))))
    newer = Deployment(url, tmp_path / "newer", PYTHONPATH=path)
    try:
        theirs = older.begin("-", hinted=False).workflow
        snapshot = written_by_a_newer_version(older, theirs)
        older.start()
        older.until(lambda: "is left to newer workers" in older.log(), about=theirs)

        found = older.store.read(theirs)
        assert found is not None
        assert (found.snapshot, older.executions()) == (snapshot, [])
        ours = older.begin("-").workflow
        older.finished(ours)

        newer.start(ready=["work"])
        newer.until(lambda: bool(newer.executions(theirs)), about=theirs)
        newer.until(lambda: older.store.live("be9c4a11", 101) is None)
        assert older.executions(theirs) == []
        # Left for 1, 2, 4 … s, by each of two processes: no hint after another.
        assert older.log().count(f"{theirs}.test-runner.validate.1.1 is newer") < 12
    finally:
        older.end()
        newer.end()
