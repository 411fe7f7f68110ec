"""Secrets of this environment in texts that no worker's command prints: a task, a name, a role of a chat."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from fixloop.chat.crew import run_agent
from fixloop.engine.engine import ProfileEngine
from fixloop.intake.feature import Feature
from fixloop.intake.submission import enqueue
from fixloop.profiles.validation.engine import VALIDATION
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.repositories import make_repository

pytestmark = pytest.mark.slow

SECRET: Final = "/orrect+horse/battery"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)


def test_a_task_and_a_name_are_stored_without_secrets(tmp_path: Path) -> None:
    make_repository(
        tmp_path / "shop", {"a.py": "a = 1\n", "fixloop.toml": "[handoff.agent.planner]\noutside = true\n"}
    )
    store = MemoryStore(lambda: datetime.now(UTC))
    feature = Feature(
        profile="handoff",
        issue=1,
        repo=str(tmp_path / "shop"),
        name=f"uses {SECRET}",
        task=f"log in with {SECRET}",
    )

    made = enqueue(ProfileEngine(store, VALIDATION), feature, cache=tmp_path / "cache")
    again = enqueue(ProfileEngine(store, VALIDATION), feature, cache=tmp_path / "cache")

    found = store.read(made.workflow)
    assert found is not None
    assert b"log in with ***" in found.snapshot
    assert SECRET.encode() not in found.snapshot
    assert (again.workflow, again.created) == (made.workflow, False)


def test_a_role_of_a_chat_answers_without_secrets(tmp_path: Path) -> None:
    program = "import os, sys; token = os.environ['DEPLOY_TOKEN']; print('is', token); print(token, file=sys.stderr)"

    done = run_agent([sys.executable, "-c", program], "", cwd=tmp_path, env=dict(os.environ))

    assert (done.answer, done.talk) == ("is ***\n", "***\n")
