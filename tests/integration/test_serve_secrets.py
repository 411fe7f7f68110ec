"""Credentials and signing keys are in no log and no refusal, whatever fails while they are used."""

import json
import logging
from datetime import UTC, datetime

import pytest

from fixloop.serve.contacts import Contact, Contacts
from fixloop.serve.deliverer import Deliverer
from fixloop.serve.notifier import Notifier, by_apprise
from fixloop.serve.targets import Targets
from tests.fixtures.serve_stage import Stage, on_redis
from tests.fixtures.webhook_receiver import receiving

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)


def test_no_log_and_no_refusal_holds_a_secret(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, logger="fixloop")
    workflow, token = stage.escalated(), stage.token("decider", "anna")
    answers = []
    with receiving() as receiver:
        endpoint = stage.webhooks.add("out", f"{receiver.url}?key=s3cr3t-of-the-address")
        source = stage.webhooks.add("in", "ci")
        stage.agents.start(48)
        stage.settle()
        receiver.answers = [410]
        told = (stage.session.store, stage.service.follower, stage.webhooks, Targets(["127.0.0.1"]))
        Deliverer(*told, "https://fix.example").deliver(endpoint)
        port = receiver.url.split(":")[2].split("/")[0]
        contact = Contact.model_validate(
            {"name": "anna", "urls": [f"json://anna:pa55-of-the-contact@127.0.0.1:{port}/x"]}
        )
        receiver.answers = [500]
        contacts = Contacts(answer_minutes=240, contact=(contact,))
        notifier = Notifier(
            stage.service,
            stage.connection,
            contacts,
            "https://fix.example",
            by_apprise,
            lambda: datetime.now(UTC),
        )
        notifier.look()
        assert receiver.seen, "it was tried"
    nobody = stage.client("")
    for headers in ({"Authorization": f"Bearer {token}x"}, {"Authorization": f"Bearer {token}"}):
        for path in ("/v1/inbox", f"/v1/workflows/{workflow}-9", "/v1/tokens", "/nowhere"):
            answers.append(nobody.get(path, headers=headers).text)
    body = json.dumps({"type": "fix.done", "data": {}})
    answers.append(nobody.post("/v1/hooks/ci", content=body, headers={"webhook-id": "1"}).text)
    answers.append(stage.client().get("/v1/webhooks").text.replace(endpoint.url, ""))
    answers.append(json.dumps(stage.client().get("/v1/inbox").json()["notices"]))

    said = "\n".join([caplog.text, *answers])

    assert "is disabled" in caplog.text, "something was logged at all"
    assert "could not be told" in caplog.text
    for secret in (
        token,
        token[3:],
        endpoint.secrets[0][0],
        source.secrets[0][0],
        "s3cr3t-of-the-address",
        "pa55-of-the-contact",
    ):
        assert secret not in said
