"""Fixes by remote agents: claims under a lease, patches onto the work so far, and declining."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fixloop.commands.handlers import Answer, Work, handlers_of
from fixloop.errors import RefusedError
from fixloop.outside.transfer import snapshot_in
from fixloop.repository.snapshot import mirror_of
from fixloop.serve.work import MOST_PATCH_BYTES
from tests.fixtures.repositories import make_repository
from tests.fixtures.serve_stage import Stage, on_redis, problem

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)
CALC = "def add(a, b):\n    return a - b\n"
PATCH = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
NEW = """\
diff --git a/NAME b/NAME
new file mode 100755
--- /dev/null
+++ b/NAME
@@ -0,0 +1 @@
+planted
"""
ANOTHER = PATCH.replace("a + b", "b + a")


@pytest.fixture
def asked(stage: Stage, tmp_path: Path) -> str:
    """A workflow of a real repository that waits for a fix from outside."""
    repository = make_repository(tmp_path / "calc", {"calc.py": CALC, "fixloop.toml": TOML})
    stage.allow(str(repository))
    answer = stage.client("operator").post("/v1/workflows", json={"repo": str(repository), "issue": 7})
    assert answer.status_code == 201, answer.text
    workflow: str = answer.json()["workflow_id"]
    stage.fail(workflow)
    return workflow


TOML = '[specialist.test-runner]\n[[specialist.test-runner.check]]\nname = "tests"\ncommand = "false"\n'


def claimed(client: Any) -> dict[str, Any]:
    answer = client.post("/v1/claims")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def submit(
    client: Any, claim: dict[str, Any], patch: str = PATCH, key: str = "", **more: Any
) -> dict[str, Any]:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"fence": claim["fence"], "patch": patch, "summary": "adds instead", **more}
    answer = client.post(f"/v1/claims/{claim['claim']}/submit", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_claim_has_the_request_and_claiming_twice_gives_the_same(stage: Stage, asked: str) -> None:
    client = stage.client("agent")

    first, again = claimed(client), claimed(client)

    assert first == again
    assert (first["status"], first["workflow_id"], first["specialist"], first["iteration"]) == (
        "claimed",
        asked,
        "test-runner",
        1,
    )
    assert "Fix Request" in first["request"] or "fix" in first["request"].lower()
    assert stage.agents.engine.state(asked).active.status == "FIXING"


def test_one_of_two_agents_has_the_work_until_its_lease_ends(stage: Stage, asked: str) -> None:
    first, second = stage.client("agent", "one"), stage.client("agent", "two")
    claim = claimed(first)

    assert claimed(second)["status"] == "none"
    stage.end_lease(asked)
    taken = claimed(second)

    assert (taken["claim"], taken["fence"] > claim["fence"]) == (claim["claim"], True)
    late = submit(first, claim)
    assert late["status"] == "too_late"
    assert late["reasons"][0].startswith("two (token ")
    beat = first.post(f"/v1/claims/{claim['claim']}/heartbeat", json={"fence": claim["fence"]}).json()
    assert beat["status"] == "too_late"
    assert submit(second, taken)["status"] == "accepted"


def test_a_patch_becomes_the_fix_under_its_sender_s_name(stage: Stage, asked: str) -> None:
    client = stage.client("agent", "robot")
    claim = claimed(client)

    done = submit(client, claim)

    state = stage.agents.engine.state(asked)
    assert done["status"] == "accepted"
    assert state.active.status == "RE_CHECKING"
    git = mirror_of(snapshot_in(state), stage.session.settings.cache_dir).git
    assert git.text("show", f"{state.tip}:calc.py") == CALC.replace("-", "+").rstrip("\n")
    [fix] = [
        entry.body["event"]["completion"]
        for entry in stage.agents.store.history(asked)
        if entry.body["event"]["kind"] == "fix-completed"
    ]
    assert (fix["by"].startswith("robot (token "), fix["summary"]) == (True, "adds instead")


def test_a_repeated_key_gets_the_first_answer_only_for_the_same_body(stage: Stage, asked: str) -> None:
    client = stage.client("agent")
    claim = claimed(client)

    first, again = submit(client, claim, key="k"), submit(client, claim, key="k")
    body = {"fence": claim["fence"], "patch": ANOTHER}
    other = client.post(f"/v1/claims/{claim['claim']}/submit", json=body, headers={"Idempotency-Key": "k"})

    assert (
        (first["status"], first["version"])
        == (again["status"], again["version"])
        == ("accepted", first["version"])
    )
    assert (other.status_code, problem(other)["type"]) == (422, "/problems/key-used")


def test_a_fence_guessed_by_another_agent_is_refused(stage: Stage, asked: str) -> None:
    holder, other = stage.client("agent", "one"), stage.client("agent", "two")
    claim = claimed(holder)

    stolen = submit(other, claim)
    beat = other.post(f"/v1/claims/{claim['claim']}/heartbeat", json={"fence": claim["fence"]}).json()

    assert (stolen["status"], beat["status"]) == ("too_late", "too_late")
    assert stolen["reasons"][0].startswith("one (token ")
    assert submit(holder, claim)["status"] == "accepted"


def test_a_wrong_fence_is_refused_and_the_claim_stands(stage: Stage, asked: str) -> None:
    client = stage.client("agent")
    claim = claimed(client)

    wrong = submit(client, {**claim, "fence": claim["fence"] + 1})

    assert (wrong["status"], "claim again" in wrong["reasons"][0]) == ("too_late", True)
    assert submit(client, claim, key="right")["status"] == "accepted"


def test_a_patch_after_the_fix_is_too_late(stage: Stage, asked: str) -> None:
    client = stage.client("agent")
    claim = claimed(client)
    submit(client, claim)

    assert submit(client, claim, ANOTHER, key="second")["status"] == "too_late"


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("no patch at all\n", "No valid patches"),
        (PATCH.replace("a - b", "a * b"), "patch failed"),
        (PATCH.replace("calc.py", "../outside.py"), "does not exist in index"),
        (PATCH.replace("calc.py", ".git/config"), "does not exist in index"),
        (PATCH.replace("calc.py", "missing.py"), "does not exist"),
        ("diff --git a/calc.py b/calc.py\nGIT binary patch\ngarbage\n", "patch"),
        ("+" * 2000, "No valid patches"),
        (NEW.replace("NAME", "../outside.py"), "invalid path"),
        (NEW.replace("NAME", ".git/hooks/pre-commit"), "invalid path"),
    ],
)
def test_a_patch_that_git_cannot_apply_is_refused_and_the_claim_stands(
    stage: Stage, asked: str, tmp_path: Path, patch: str, why: str
) -> None:
    client = stage.client("agent")
    claim = claimed(client)

    told = submit(client, claim, patch)

    assert told["status"] == "refused"
    assert why in told["reasons"][0]
    assert not list(tmp_path.rglob("outside.py"))
    assert submit(client, claim)["status"] == "accepted"


def test_a_patch_that_is_too_long_is_refused_and_an_empty_one_changes_nothing(
    stage: Stage, asked: str
) -> None:
    client = stage.client("agent")
    claim = claimed(client)

    assert submit(client, claim, "x" * (MOST_PATCH_BYTES + 1))["status"] == "refused"
    assert submit(client, claim, " \n")["status"] == "unchanged"
    assert submit(client, claim)["status"] == "accepted"


def test_declining_asks_a_person_and_counts_no_iteration(stage: Stage, asked: str) -> None:
    client = stage.client("agent", "robot")
    claim = claimed(client)
    told = {"fence": claim["fence"], "kind": "test-is-wrong", "text": "1 + 1 is 2"}
    path, headers = f"/v1/claims/{claim['claim']}/decline", {"Idempotency-Key": "k"}

    first = client.post(path, json=told, headers=headers).json()
    again = client.post(path, json=told, headers=headers).json()

    state = stage.agents.engine.state(asked)
    assert (first["status"], again["status"]) == ("accepted", "accepted")
    assert state.escalation is not None
    assert state.active.iteration == 1


def test_a_failure_is_read_in_full_by_its_number(stage: Stage, asked: str) -> None:
    client = stage.client("agent")
    claim = claimed(client)

    found = client.get(f"/v1/claims/{claim['claim']}/failures/F1").json()
    none = client.get(f"/v1/claims/{claim['claim']}/failures/F99")

    assert (found["status"], found["part"], found["parts"]) == ("found", 1, 1)
    assert none.status_code == 422


def test_a_caller_without_the_right_or_of_another_project_gets_no_work(stage: Stage, asked: str) -> None:
    assert stage.client("viewer").post("/v1/claims").status_code == 403
    assert claimed(stage.client("agent", projects=("ffffffff",)))["status"] == "none"


def test_one_of_ten_simultaneous_claims_gets_the_work(stage: Stage, asked: str) -> None:
    clients = [stage.client("agent", f"agent{number}") for number in range(10)]

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(claimed, clients))

    assert sorted(each["status"] for each in found) == ["claimed", *["none"] * 9]


def test_no_fix_from_elsewhere_takes_the_place_of_a_person_s(stage: Stage, asked: str) -> None:
    """An agent could begin to submit just before the person decides; a person's fix may change the gates."""
    gates = NEW.replace("NAME", "pytest.ini")
    handlers, before = handlers_of(stage.session, asked), stage.agents.engine.state(asked)
    handlers.fixed(stage.session, asked, Work(blocked="there is no database"))
    handlers.decide(stage.session, asked, Answer("manual-fix"))

    with pytest.raises(RefusedError, match="waits for the fix of the person who chose manual-fix"):
        handlers.fixed(stage.session, asked, Work(patch=gates.encode()))

    state = stage.agents.engine.state(asked)
    assert (state.paused, state.tip, state.configuration) == (True, before.tip, before.configuration)
