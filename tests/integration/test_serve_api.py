"""The API of `fixloop serve`: reads, decisions that happen once, and refusals that say what to do."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fixtures.serve_stage import Stage, on_redis, problem

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)


def decision(stage: Stage, workflow: str, word: str = "abort", **more: Any) -> dict[str, Any]:
    state = stage.agents.engine.state(workflow)
    assert state.escalation is not None
    return {"escalation": state.escalation.message_id, "decision": word, "reason": "it is enough", **more}


def test_a_workflow_is_the_document_of_status_with_its_version_as_etag(stage: Stage) -> None:
    workflow = stage.escalated()

    answer = stage.client("viewer").get(f"/v1/workflows/{workflow}")

    found = stage.agents.store.read(workflow)
    assert found is not None
    assert answer.headers["etag"] == f'"{found.version}"'
    assert (answer.json()["issue"], answer.json()["owner"]) == (47, "person")


def test_the_list_is_read_in_pages_that_new_entries_do_not_disturb(stage: Stage) -> None:
    made = [stage.agents.start(issue) for issue in range(1, 8)]
    client = stage.client("viewer")
    stage.settle()

    first = client.get("/v1/workflows?most=3").json()
    stage.agents.start(8)
    stage.settle()
    second = client.get("/v1/workflows", params={"most": 10, "cursor": first["next"]}).json()

    names = [row["workflow_id"] for row in (*first["workflows"], *second["workflows"])]
    assert sorted(names) == sorted(made)
    assert second["next"] == ""


def test_a_decision_is_taken_once_for_each_key_and_repeated_with_the_first_answer(stage: Stage) -> None:
    workflow = stage.escalated()
    client = stage.client("decider", "anna")
    etag = client.get(f"/v1/workflows/{workflow}").headers["etag"]
    path, given = f"/v1/workflows/{workflow}/decisions", decision(stage, workflow)
    headers = {"If-Match": etag, "Idempotency-Key": "one"}

    first = client.post(path, json=given, headers=headers)
    again = client.post(path, json=given, headers=headers)

    assert (first.status_code, again.status_code) == (200, 200), first.text
    shared = ("decision", "by", "at", "version")
    assert [first.json()[name] for name in shared] == [again.json()[name] for name in shared]
    assert first.json()["by"].startswith("anna (token ")
    state = stage.agents.engine.state(workflow)
    assert state.outcome == "aborted"


def test_an_idempotency_key_of_another_request_is_refused(stage: Stage) -> None:
    workflow = stage.escalated()
    client = stage.client("decider")
    headers = {"If-Match": client.get(f"/v1/workflows/{workflow}").headers["etag"], "Idempotency-Key": "one"}
    path = f"/v1/workflows/{workflow}/decisions"
    client.post(path, json=decision(stage, workflow), headers=headers)

    other = client.post(path, json={"escalation": "x", "decision": "skip"}, headers=headers)

    assert other.status_code == 422
    assert problem(other)["type"] == "/problems/key-used"


def test_one_of_twenty_deciders_wins_and_the_others_learn_who_decided_what(stage: Stage) -> None:
    workflow = stage.escalated()
    given = decision(stage, workflow)
    clients = [stage.client("decider", f"person{number}") for number in range(20)]
    etag = clients[0].get(f"/v1/workflows/{workflow}").headers["etag"]

    def decide(number: int) -> Any:
        return clients[number].post(
            f"/v1/workflows/{workflow}/decisions", json=given, headers={"If-Match": etag}
        )

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(decide, range(20)))

    [winner] = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    for number, answer in enumerate(answers):
        if number != winner:
            assert answer.status_code == 412, answer.text
            assert problem(answer)["decided"]["decision"] == "abort"
            assert problem(answer)["decided"]["by"].startswith(f"person{winner} (token ")


def test_a_decision_without_a_version_is_asked_for_one(stage: Stage) -> None:
    workflow = stage.escalated()

    answer = stage.client("decider").post(
        f"/v1/workflows/{workflow}/decisions", json=decision(stage, workflow)
    )

    assert (answer.status_code, problem(answer)["type"]) == (428, "/problems/no-version")


def test_the_api_pauses_continues_and_cancels(stage: Stage) -> None:
    workflow = stage.agents.start()
    client = stage.client("operator")
    path = f"/v1/workflows/{workflow}/commands"

    paused = client.post(path, json={"command": "pause", "reason": "lunch"}).json()["paused"]
    going = client.post(path, json={"command": "continue"}).json()["paused"]
    ended = client.post(path, json={"command": "cancel"}).json()["outcome"]

    assert (paused, going, ended) == (True, False, "cancelled")


def test_the_inbox_says_what_a_caller_can_decide(stage: Stage) -> None:
    workflow = stage.escalated()

    [seen] = stage.client("viewer").get("/v1/inbox").json()["items"]
    [decided] = stage.client("decider").get("/v1/inbox").json()["items"]

    assert (seen["workflow_id"], seen["can_decide"], decided["can_decide"]) == (workflow, False, True)
    assert [choice["answer"] for choice in decided["choices"]] == ["manual-fix", "skip", "abort", "extend"]


def test_a_token_is_shown_once_and_revoked_for_good(stage: Stage) -> None:
    admin = stage.client("admin")

    made = admin.post("/v1/tokens", json={"name": "ci", "role": "operator"}).json()["token"]
    listed = admin.get("/v1/tokens").json()["tokens"]
    bearer = {"Authorization": f"Bearer {made}"}
    before = stage.client("").get("/v1/inbox", headers=bearer).status_code
    gone = admin.delete(f"/v1/tokens/{made[3:11]}").status_code
    after = stage.client("").get("/v1/inbox", headers=bearer)

    assert (before, gone, after.status_code) == (200, 204, 401)
    assert made not in str(listed)
    assert made[3:11] in [each["id"] for each in listed]


def test_a_body_of_more_than_8_mib_is_refused_unread(stage: Stage) -> None:
    answer = stage.client("admin").post("/v1/tokens", content=b"x" * (8 * 1024 * 1024 + 1))

    assert (answer.status_code, problem(answer)["type"]) == (413, "/problems/too-large")


def test_without_a_token_the_answer_says_only_what_to_send(stage: Stage) -> None:
    answer = stage.client("").get("/v1/inbox")

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert problem(answer)["type"] == "/problems/not-signed-in"


def test_a_workflow_of_another_project_is_not_found(stage: Stage) -> None:
    workflow = stage.escalated()
    client = stage.client("admin", projects=("ffffffff",))

    answers = [client.get(f"/v1/workflows/{each}") for each in (workflow, "0a1b2c3d-99-1")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert client.get("/v1/workflows").json()["workflows"] == []
    assert client.get("/v1/inbox").json()["items"] == []
