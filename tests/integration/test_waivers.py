"""Skips with a last day: the inbox names them in time, until the feature is submitted again."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fixloop.cli import main
from fixloop.store.waivers import Waiver, due_waivers, keep_waiver
from tests.fixtures.serve_stage import Stage, on_redis, problem

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)


def day(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def skipped(stage: Stage, until: str, issue: int = 47, number: int = 1) -> str:
    """A workflow that a person has skipped until that day."""
    workflow = stage.escalated(issue, number=number)
    item = next(each for each in stage.client().get("/v1/inbox").json()["items"] if each["issue"] == issue)
    answer = stage.client("decider", "anna").post(
        f"/v1/workflows/{workflow}/decisions",
        json={"escalation": item["escalation_id"], "decision": "skip", "until": until, "owner": "ben"},
        headers={"If-Match": stage.client().get(f"/v1/workflows/{workflow}").headers["ETag"]},
    )
    assert answer.status_code == 200, answer.text
    return workflow


def notices(stage: Stage, role: str = "viewer", **more: Any) -> list[str]:
    stage.allow()
    return [each["text"] for each in stage.client(role, **more).get("/v1/inbox").json()["notices"]]


def test_the_inbox_names_only_waivers_that_expire_soon(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    near, _ = skipped(stage, day(3)), skipped(stage, day(60), issue=48)
    said = f"the waiver of test-runner in #47 scripted 1 1 1 runs out on {day(3)}; ben looks after it"

    assert notices(stage) == [said]
    assert said in stage.client("viewer").get("/", headers={"Accept": "text/html"}).text
    assert notices(stage, projects=("ffffffff",)) == []
    assert main(["inbox", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [(each["reason"], each["commands"]) for each in items] == [(said, ["fixloop run --issue 47"])]
    assert main(["status", near]) == 0
    assert f"accepted until {day(3)}, ben is responsible" in capsys.readouterr().out


def test_an_expired_waiver_stays_until_the_feature_is_submitted_again(stage: Stage) -> None:
    workflow = skipped(stage, day(1))
    store, connection = stage.session.store, stage.session.connection
    later = datetime.now(UTC).date() + timedelta(days=30)

    before = due_waivers(store, connection, today=later)
    stage.agents.start(47, script="0", number=2)
    after = due_waivers(store, connection, today=later)

    assert [each.workflow for each in before] == [workflow]
    assert after == []


def test_a_waiver_survives_archiving_and_is_deleted_by_purging(stage: Stage) -> None:
    store, connection = stage.session.store, stage.session.connection
    archived, purged = skipped(stage, day(3)), skipped(stage, day(3), issue=48)
    for workflow, how in ((archived, "archived"), (purged, "purged")):
        found = store.read(workflow)
        assert found is not None
        assert store.remove(workflow, found.head, how) == "ok"  # type: ignore[arg-type]

    assert [each.workflow for each in due_waivers(store, connection)] == [archived]


def test_a_waiver_without_its_decision_does_not_count(stage: Stage) -> None:
    workflow = stage.escalated()
    connection = stage.session.connection
    keep_waiver(connection, Waiver(workflow, "test-runner", day(1), "ben", "never"))

    assert due_waivers(stage.session.store, connection) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"decision": "abort", "until": "2999-01-01"}, "an expiry and an owner go with skip, not with abort"),
        ({"decision": "skip", "owner": "ben"}, "ben looks after it until when; give the last day, too"),
        (
            {"decision": "skip", "until": "2020-01-01"},
            "a skip until 2020-01-01 is over already; use a later day",
        ),
        (
            {"decision": "skip", "until": "2999-13-01"},
            "'2999-13-01' is not a day; use one such as 2027-01-31",
        ),
    ],
)
def test_an_invalid_waiver_is_refused_in_one_sentence(stage: Stage, given: dict[str, str], said: str) -> None:
    workflow = stage.escalated()
    item = stage.client().get("/v1/inbox").json()["items"][0]

    answer = stage.client("decider").post(
        f"/v1/workflows/{workflow}/decisions",
        json={"escalation": item["escalation_id"], **given},
        headers={"If-Match": stage.client().get(f"/v1/workflows/{workflow}").headers["ETag"]},
    )

    assert said in problem(answer)["detail"]
    assert stage.session.engine.state(workflow).escalation is not None
