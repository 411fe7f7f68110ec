"""Which keys a workflow has, and where."""

from collections import Counter
from pathlib import Path

import pytest

from fixloop import store
from fixloop.errors import UsageError
from fixloop.store import keys
from fixloop.store.scripts import source


def test_a_workflow_and_all_its_successors_live_in_one_shard() -> None:
    project = keys.project_hash("git@example.org:shop.git")
    first, tenth = keys.workflow_id(project, 42, 1), keys.workflow_id(project, 42, 10)

    assert keys.shard_of(first) == keys.shard_of(tenth) == keys.shard_of_feature(f"{project}-42")
    assert keys.workflow_of(f"{first}.validate-1") == first
    assert (keys.feature_of(tenth), keys.issue_of(tenth), keys.number_of(tenth)) == (f"{project}-42", 42, 10)


def test_every_key_carries_the_tag_of_its_shard() -> None:
    workflow = "0a1b2c3d-42-1"
    tag = f"fixloop:{{{keys.shard_of(workflow):02}}}:"

    built = [keys.workflow_key(workflow), keys.history_key(workflow), keys.artifact_key(workflow, "d" * 64)]
    built += [keys.artifacts_key(workflow), keys.ended_key(keys.shard_of(workflow))]
    built += [keys.retired_key(keys.shard_of(workflow))]
    built += [keys.lock_key(workflow, "src/a b.py"), *keys.shard_keys(keys.shard_of(workflow))]

    assert all(key.startswith(tag) for key in built)
    assert len(set(built)) == len(built)
    assert keys.workflow_key(workflow) == keys.workflow_key_prefix(keys.shard_of(workflow)) + workflow


def test_features_are_spread_over_all_shards() -> None:
    counted = Counter(keys.shard_of(f"0a1b2c3d-{issue}-1") for issue in range(1600))

    assert len(counted) == keys.SHARDS
    assert max(counted.values()) < 150


def test_the_newest_workflow_is_found_by_number_not_by_text() -> None:
    found = keys.latest_of(["0a1b2c3d-1-9", "0a1b2c3d-1-10", "0a1b2c3d-2-1"])

    assert found == {"0a1b2c3d-1": "0a1b2c3d-1-10", "0a1b2c3d-2": "0a1b2c3d-2-1"}


@pytest.mark.parametrize(
    "workflow", ["", "x", "0a1b2c3d-1", "0a1b2c3d-1-1-1", "0a1b2c3d-1-1\n", "0A1b2c3d-1-1"]
)
def test_an_invalid_id_is_refused(workflow: str) -> None:
    with pytest.raises(UsageError, match="is no workflow id"):
        keys.shard_of(workflow)


def test_every_script_is_packaged_and_has_its_limits() -> None:
    parts = {"prelude", "fence"}
    scripts = {path.stem for path in Path(store.__path__[0]).glob("*.lua")} - parts

    assert "sweep" in scripts
    assert all(len(source(name)) > 100 for name in scripts)
    assert "local AWAY_AFTER = 5\n" in source("sweep")
