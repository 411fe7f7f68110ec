"""Events out, to a receiver that checks each signature, and events in, from sources that sign."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from fixloop.serve.deliverer import Deliverer
from fixloop.serve.targets import Targets
from fixloop.store.webhooks import Endpoint
from tests.fixtures.repositories import git, make_repository
from tests.fixtures.serve_stage import Stage, on_redis, problem
from tests.fixtures.webhook_receiver import Receiver, receiving
from tests.integration.test_serve_work import CALC, PATCH, TOML

pytestmark = pytest.mark.slow

LOOPBACK = ("127.0.0.1",)
stage = pytest.fixture(on_redis)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


class Clock:
    """Set forward by tests."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def added(stage: Stage, receiver: Receiver, *types: str, projects: tuple[str, ...] = ()) -> Endpoint:
    made = stage.webhooks.add("out", receiver.url, types, projects)
    receiver.secret = made.secrets[0][0]
    return made


def deliverer(stage: Stage, targets: tuple[str, ...] = LOOPBACK, clock: Any = None) -> Deliverer:
    told = (stage.session.store, stage.service.follower, stage.webhooks, Targets(targets))
    return Deliverer(*told, "https://fix.example", *((clock,) if clock else ()))


def test_events_are_sent_once_in_order_and_signed(stage: Stage, receiver: Receiver) -> None:
    stage.agents.start(46, script="0")
    endpoint = added(stage, receiver)
    workflow = stage.escalated()
    item = stage.client().get("/v1/inbox").json()["items"][0]
    stage.client("decider", "anna").post(
        f"/v1/workflows/{workflow}/decisions",
        json={"escalation": item["escalation_id"], "decision": "skip", "reason": "known"},
        headers={"If-Match": stage.client().get(f"/v1/workflows/{workflow}").headers["ETag"]},
    )
    told = deliverer(stage)

    told.deliver(endpoint)
    told.deliver(endpoint)

    round_ = ["specialist.failed", "fix.requested", "fix.submitted"]
    expected = ["workflow.started", *round_, *round_, "specialist.failed", "escalation.opened"]
    assert receiver.kinds() == [*expected, "escalation.decided", "workflow.completed"]
    assert len({each["id"] for each in receiver.taken}) == len(receiver.taken)
    assert {each["subject"] for each in receiver.taken} == {workflow}
    assert receiver.taken[0]["source"] == "https://fix.example"
    assert receiver.taken[0]["specversion"] == "1.0"
    decided = receiver.taken[-2]["data"]
    assert (decided["decision"], decided["reason"]) == ("skip", "known")
    assert decided["by"].startswith("anna (token ")
    assert receiver.taken[-1]["data"]["outcome"] == "skipped"
    assert stage.webhooks.standing(endpoint.id).delivered == len(receiver.taken)
    assert all(
        each["webhook-id"] == event["id"] for each, event in zip(receiver.seen, receiver.taken, strict=True)
    )


def test_a_receiver_that_was_away_gets_every_event_later(stage: Stage, receiver: Receiver) -> None:
    endpoint, clock = added(stage, receiver), Clock()
    stage.escalated()
    receiver.answers = [200, 200, 503]
    told = deliverer(stage, clock=clock)

    told.deliver(endpoint)
    before, standing = receiver.kinds(), stage.webhooks.standing(endpoint.id)
    told.deliver(endpoint)
    unmoved = receiver.kinds()
    clock.now += timedelta(seconds=6)
    # Another server continues where this one stopped or died.
    deliverer(stage, clock=clock).deliver(endpoint)
    assert receiver.kinds() == before, "the turn is still that of the first"
    stage.webhooks.turns.end(endpoint.id)
    deliverer(stage, clock=clock).deliver(endpoint)

    assert before == unmoved == ["workflow.started", "specialist.failed"]
    assert (standing.failures, standing.error) == (1, "it answers 503")
    assert receiver.kinds()[:3] == ["workflow.started", "specialist.failed", "fix.requested"]
    assert receiver.kinds()[-1] == "escalation.opened"
    assert len({each["id"] for each in receiver.taken}) == len(receiver.taken)
    assert stage.webhooks.standing(endpoint.id).failures == 0


def test_a_receiver_that_refuses_for_hours_is_disabled_listed_and_can_be_replayed(
    stage: Stage, receiver: Receiver
) -> None:
    endpoint, clock = added(stage, receiver), Clock()
    stage.escalated()
    # Its own clock does not advance with this one.
    receiver.secret = ""
    receiver.answers = [500] * 7
    told = deliverer(stage, clock=clock)
    for _ in range(7):
        told.deliver(endpoint)
        clock.now += timedelta(hours=11)

    disabled = stage.webhooks.get(endpoint.id)
    notices = stage.client().get("/v1/inbox").json()["notices"]
    assert disabled.disabled == "it was refused 7 times: it answers 500"
    assert [each["text"] for each in notices] == [
        f"webhook {endpoint.id} to {receiver.url.removesuffix('/events')} is disabled: {disabled.disabled}"
    ]
    assert stage.client("viewer").get("/v1/inbox").json()["notices"] == []
    assert disabled.disabled in stage.client().get("/", headers={"Accept": "text/html"}).text

    answer = stage.client().post(f"/v1/webhooks/{endpoint.id}/replay", json={"since": endpoint.since})
    assert answer.status_code == 200, answer.text
    told.deliver(stage.webhooks.get(endpoint.id))
    first = receiver.kinds()
    stage.client().post(f"/v1/webhooks/{endpoint.id}/replay", json={"since": endpoint.since})
    told.deliver(stage.webhooks.get(endpoint.id))

    assert first[0] == "workflow.started"
    assert receiver.kinds() == first * 2
    assert len({each["id"] for each in receiver.taken}) == len(first), "told again under the ids of before"
    assert stage.client().get("/v1/inbox").json()["notices"] == []


def test_a_receiver_that_is_gone_is_disabled_at_once_and_a_redirect_is_not_followed(
    stage: Stage, receiver: Receiver
) -> None:
    gone, moved = added(stage, receiver), added(stage, receiver)
    receiver.secret = ""
    stage.agents.start(48)
    stage.settle()
    receiver.answers = [410, 307]

    deliverer(stage).deliver(gone)
    deliverer(stage).deliver(moved)

    assert stage.webhooks.get(gone.id).disabled == "it was refused: it answers 410"
    assert stage.webhooks.standing(moved.id).error == "it answers 307"
    assert len(receiver.seen) == 2


def test_nothing_is_sent_to_an_unlisted_internal_address(stage: Stage, receiver: Receiver) -> None:
    endpoint = added(stage, receiver)
    stage.agents.start(48)
    stage.settle()

    deliverer(stage, targets=()).deliver(endpoint)
    answer = stage.client().post("/v1/webhooks", json={"url": "https://169.254.169.254/latest"})

    assert receiver.seen == []
    assert "not of the internet at large" in stage.webhooks.get(endpoint.id).disabled
    assert problem(answer)["detail"].startswith("169.254.169.254 is 169.254.169.254, which is not")


def test_a_webhook_gets_only_its_types_and_projects(stage: Stage, receiver: Receiver) -> None:
    other = added(stage, receiver, projects=("ffffffff",))
    some = added(stage, receiver, "dev.fixloop.escalation", projects=("0a1b2c3d",))
    stage.escalated()
    told = deliverer(stage)

    told.deliver(other)
    told.deliver(some)

    assert receiver.kinds() == ["escalation.opened"]


def test_both_secrets_sign_during_a_rotation(stage: Stage, receiver: Receiver) -> None:
    endpoint = added(stage, receiver)
    rotated = stage.webhooks.rotate(endpoint.id)
    stage.agents.start(48)
    stage.settle()

    deliverer(stage).deliver(rotated)

    assert receiver.kinds() == ["workflow.started"], "the receiver checks by the secret of before"
    assert len(receiver.seen[0]["webhook-signature"].split()) == 2
    later = datetime.now(UTC) + timedelta(hours=25)
    assert rotated.good_secrets(later) == [rotated.secrets[0][0]] != [receiver.secret]


def test_a_project_s_administrator_manages_only_that_project_s_webhooks(stage: Stage) -> None:
    mine, others = (
        stage.webhooks.add("out", "https://a.example", (), (each,)) for each in ("0a1b2c3d", "ffffffff")
    )
    client = stage.client("admin", "ann", ("0a1b2c3d",))

    listed = client.get("/v1/webhooks").json()["webhooks"]
    answers = [
        client.post("/v1/webhooks", json={"url": "https://b.example"}),
        client.delete(f"/v1/webhooks/{others.id}"),
        client.post(f"/v1/webhooks/{others.id}/replay", json={"since": "2026-01-01T00:00:00Z"}),
    ]
    made = client.post("/v1/webhooks", json={"url": "https://b.example", "projects": ["0a1b2c3d"]})

    assert [each["id"] for each in listed] == [mine.id]
    assert "secrets" not in listed[0]
    assert [each.status_code for each in answers] == [403, 404, 404]
    assert made.json()["secret"].startswith("whsec_")
    assert client.delete(f"/v1/webhooks/{mine.id}").status_code == 204


def signed(secret: str, body: Any, *, at: datetime | None = None, id: str = "") -> dict[str, Any]:
    """The arguments of a request that a source has signed."""
    text, name, when = json.dumps(body), id or uuid.uuid4().hex, at or datetime.now(UTC)
    headers = {"webhook-id": name, "webhook-timestamp": str(int(when.timestamp()))}
    return {
        "content": text,
        "headers": headers | {"webhook-signature": Webhook(secret).sign(name, when, text)},
    }


@pytest.fixture
def asked(stage: Stage, tmp_path: Path) -> tuple[str, Path]:
    """A workflow that waits for a fix, and its repository."""
    repository = make_repository(tmp_path / "calc", {"calc.py": CALC, "fixloop.toml": TOML})
    stage.allow(str(repository))
    answer = stage.client("operator").post("/v1/workflows", json={"repo": str(repository), "issue": 7})
    workflow: str = answer.json()["workflow_id"]
    stage.fail(workflow)
    return workflow, repository


def test_an_incoming_fix_event_is_processed_once(stage: Stage, asked: tuple[str, Path]) -> None:
    workflow, repository = asked
    (repository / "calc.py").write_text(CALC.replace("-", "+"))
    git(repository, "checkout", "-qb", "fix")
    git(repository, "commit", "-qam", "add")
    secret = stage.webhooks.add("in", "agent-farm").secrets[0][0]
    event = {
        "type": "fix.done",
        "specversion": "1.0",
        "data": {"workflow_id": workflow, "revision": "fix", "summary": "it adds now"},
    }
    request, client = signed(secret, event), stage.client("")

    first = client.post("/v1/hooks/agent-farm", **request)
    again = client.post("/v1/hooks/agent-farm", **request)

    assert first.json()["status"] == "accepted", first.text
    assert again.json()["status"] == "accepted"
    events = [entry.body["event"] for entry in stage.session.store.history(workflow)]
    fixes = [event for event in events if event["kind"] == "fix-completed"]
    assert [each["completion"]["by"] for each in fixes] == ["agent-farm (webhook)"]
    assert fixes[0]["completion"]["files"] == ["calc.py"]


def test_unsigned_altered_and_late_events_are_refused(stage: Stage, asked: tuple[str, Path]) -> None:
    workflow, _ = asked
    secret = stage.webhooks.add("in", "ci").secrets[0][0]
    event = {"type": "fix.done", "data": {"workflow_id": workflow, "patch": PATCH}}
    good, late = signed(secret, event), signed(secret, event, at=datetime.now(UTC) - timedelta(minutes=6))
    others = signed("whsec_" + "A" * 43 + "=", event)
    client = stage.client("")
    requests = [
        {**good, "content": good["content"].replace("calc", "cali")},
        late,
        others,
        {"content": good["content"]},
        {**good, "headers": {**good["headers"], "webhook-signature": "v1"}},
        {**good, "headers": {**good["headers"], "webhook-signature": "v1,not base64 é".encode()}},
        {**good, "content": b"\xff\xfe"},
    ]

    answers = [client.post("/v1/hooks/ci", **each).status_code for each in requests]
    elsewhere = client.post("/v1/hooks/other", **good).status_code

    assert answers == [401] * len(requests)
    assert elsewhere == 401
    assert stage.session.engine.state(workflow).active.iteration == 1


def test_an_external_ci_result_is_logged_and_decides_nothing(stage: Stage, asked: tuple[str, Path]) -> None:
    workflow, _ = asked
    secret = stage.webhooks.add("in", "github", (), (workflow[:8],)).secrets[0][0]
    result = {"commit": "abc1234", "name": "build", "conclusion": "success", "url": "https://ci.example/1"}
    data = {"workflow_id": workflow, **result}
    event = {"type": "ci.completed", "data": data}
    before = stage.session.engine.state(workflow)
    request = signed(secret, event)

    answers = [stage.client("").post("/v1/hooks/github", **request).json() for _ in range(2)]
    unknown = stage.client("").post(
        "/v1/hooks/github", **signed(secret, {**event, "data": {**data, "workflow_id": "ffffffff-1-1"}})
    )

    after = stage.session.engine.state(workflow)
    notes = [
        note
        for entry in stage.session.store.history(workflow)
        for note in entry.body.get("notes", ())
        if "build of" in note
    ]
    assert answers == [{"status": "noted", "workflow_id": workflow}] * 2
    assert notes == ["github (webhook) says: build of abc1234 ended with success (https://ci.example/1)"], (
        "twice the same is one entry"
    )
    assert after.active == before.active
    assert problem(unknown)["status"] == 404


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"type": "fix.done"},
        {"type": "decision-made", "data": {}},
        {"type": "fix.done", "data": {"workflow_id": "0a1b2c3d-47-1", "revision": "--upload-pack=x"}},
        {"type": "ci.completed", "data": {"workflow_id": "x", "commit": "y", "name": "", "conclusion": ""}},
    ],
)
def test_an_invalid_event_is_refused_in_one_sentence(stage: Stage, body: Any) -> None:
    secret = stage.webhooks.add("in", "ci").secrets[0][0]

    answer = stage.client("").post("/v1/hooks/ci", **signed(secret, body))

    assert answer.status_code == 422
    assert problem(answer)["detail"].startswith("this is no event that is taken: ")
