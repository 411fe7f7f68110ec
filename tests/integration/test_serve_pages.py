"""The pages of `fixloop serve` in a browser without scripts: forms, cookies, and all text as text."""

import re
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi.testclient import TestClient

from fixloop.errors import InfrastructureError
from fixloop.intake.hook_files import keep_heartbeat
from fixloop.serve.problems import KINDS
from fixloop.serve.tokens import FAILED_PER_MINUTE
from tests.fixtures.profile_stage import Profiles
from tests.fixtures.serve_stage import Stage, on_redis
from tests.fixtures.served_workflows import Played

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)

HOSTILE: Final = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202eevil\x1b[31m"


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.fields: dict[str, str] = {}
        self.headings: list[int] = []
        self.text = ""
        self.feed(response.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes += told.items()
        if tag == "input" and told.get("type") == "hidden":
            self.fields[told["name"]] = told["value"]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_data(self, data: str) -> None:
        self.text += data


class Browser:
    """A browser without scripts, and its cookies."""

    def __init__(self, stage: Stage, role: str = "", name: str = "", projects: tuple[str, ...] = ()) -> None:
        self.client = TestClient(
            stage.app, headers={"Accept": "text/html"}, follow_redirects=False, raise_server_exceptions=False
        )
        if role:
            answer = self.sign_in(token=stage.token(role, name, projects))
            assert answer.status_code == 303, answer.text

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def sign_in(self, path: str = "/sign-in", **given: str) -> Any:
        fields = Page(self.get(path)).fields
        return self.client.post("/sign-in", data={**fields, **given})

    def send(self, page: str, to: str = "", **given: str) -> Any:
        """The form of a page, filled in."""
        return self.client.post(to or page, data={**Page(self.get(page)).fields, **given})


def decide_path(stage: Stage, workflow: str) -> str:
    state = stage.agents.engine.state(workflow)
    assert state.escalation is not None
    return f"/w/{workflow}/decide/{state.escalation.message_id}"


def all_pages(stage: Stage, workflow: str) -> list[str]:
    return [
        "/",
        "/fleet",
        "/integrity",
        f"/w/{workflow}",
        decide_path(stage, workflow),
        f"/w/{workflow}/compare/1..2",
    ]


def test_every_page_has_a_language_ordered_headings_one_main_and_no_inline_style(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    browser = Browser(stage, "admin")

    for path in (*all_pages(stage, workflow), "/problems/stale", "/sign-in", "/nowhere"):
        answer = browser.get(path)
        page = Page(answer)

        assert answer.headers["content-type"].startswith("text/html"), path
        assert '<html lang="en">' in answer.text, path
        assert page.tags.count("main") == 1, path
        assert page.headings[0] == 1, path
        assert all(
            after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False)
        ), path
        assert not {"style"} & {name for name, _ in page.attributes}, path
        assert not [name for name, _ in page.attributes if name.startswith("on")], path
        assert "style" not in page.tags, path


def test_foreign_text_is_shown_as_text_with_nothing_hidden_on_every_page(stage: Stage) -> None:
    workflow = hostile(Played(stage.agents.store))
    browser = Browser(stage, "admin")

    for path in all_pages(stage, workflow):
        answer = browser.get(path)
        page = Page(answer)

        assert answer.status_code == 200, path
        assert page.tags.count("script") == 2, path
        assert "img" not in page.tags, path
        assert not [name for name, _ in page.attributes if name.startswith("on")], path
        assert "\u202e" not in answer.text, path
        assert "\x1b" not in answer.text, path
    assert "<script>alert(1)</script>" in Page(browser.get(f"/w/{workflow}")).text


def hostile(played: Played) -> str:
    """A workflow in which every text is hostile to a page."""
    from fixloop.protocol.failures import Failure
    from tests.fixtures.script import Fix, fails

    found = Failure(name=HOSTILE, file=HOSTILE, line=3, error_type=HOSTILE, message=HOSTILE)
    fix = Fix(HOSTILE, (HOSTILE,), (HOSTILE,), marks=(HOSTILE,), diff=f"+{HOSTILE}\n", said=HOSTILE)
    return played.play(66, [fails(found, coverage=HOSTILE)] * 3, [fix] * 3, name=HOSTILE, project=HOSTILE)


def test_a_form_confirms_a_decision_and_its_page_then_says_who_decided(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    browser = Browser(stage, "decider", "anna")
    path = decide_path(stage, workflow)

    answer = browser.send(path, decision="abort", reason="it is enough")

    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert stage.agents.engine.state(workflow).outcome == "aborted"
    after = Page(browser.get(path)).text
    assert "anna (token " in after
    assert "abort" in after
    assert "it is enough" in after


def test_the_same_form_sent_twice_decides_once(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    browser = Browser(stage, "decider", "anna")
    path = decide_path(stage, workflow)
    fields = {**Page(browser.get(path)).fields, "decision": "extend"}

    first, second = browser.client.post(path, data=fields), browser.client.post(path, data=fields)

    assert (first.status_code, second.status_code) == (303, 303)
    kinds = [entry.body["event"]["kind"] for entry in stage.agents.store.history(workflow)]
    assert kinds.count("decision-made") == 1


def test_confirming_a_stale_page_shows_who_decided_and_keeps_the_typed_text(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    anna, bob = Browser(stage, "decider", "anna"), Browser(stage, "decider", "bob")
    path = decide_path(stage, workflow)
    fields = Page(anna.get(path)).fields
    bob.send(path, decision="skip")

    answer = anna.client.post(path, data={**fields, "decision": "abort", "reason": "my long reason"})

    said = Page(answer).text
    assert answer.status_code == 412
    assert "bob (token " in said
    assert "skip" in said
    assert "my long reason" in said


def test_looking_at_a_decision_decides_nothing(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    browser = Browser(stage, "decider")
    path = decide_path(stage, workflow)
    before = stage.agents.store.history(workflow)

    for method in ("GET", "HEAD", "OPTIONS"):
        browser.client.request(method, f"{path}?answer=abort&decision=abort&version=1")
    browser.client.get(f"{path}?answer=abort", headers={"Sec-Purpose": "prefetch"})

    assert stage.agents.store.history(workflow) == before
    chosen = browser.get(f"{path}?answer=abort").text
    assert re.search(r'value="abort"[^>]* checked', chosen)


@pytest.mark.parametrize("csrf", [{}, {"csrf": ""}, {"csrf": "x" * 43}], ids=["missing", "empty", "wrong"])
def test_a_form_from_another_site_is_refused(stage: Stage, csrf: dict[str, str]) -> None:
    workflow = Played(stage.agents.store).stuck()
    browser = Browser(stage, "admin")
    path = decide_path(stage, workflow)
    fields = {name: value for name, value in Page(browser.get(path)).fields.items() if name != "csrf"}

    decided = browser.client.post(path, data={**fields, "decision": "abort", **csrf})
    cancelled = browser.client.post(f"/w/{workflow}/commands", data={"command": "cancel", **csrf})
    out = browser.client.post("/sign-out", data=csrf)
    signed_in = browser.client.post("/sign-in", data={"token": stage.token(), **csrf})

    assert [each.status_code for each in (decided, cancelled, out, signed_in)] == [403] * 4
    assert stage.agents.engine.state(workflow).outcome is None


def test_operators_have_forms_to_pause_continue_and_cancel_and_viewers_none(stage: Stage) -> None:
    workflow = stage.agents.start()
    operator, viewer = Browser(stage, "operator"), Browser(stage, "viewer")
    path = f"/w/{workflow}"

    paused = operator.send(path, f"{path}/commands", command="pause", key="1")
    said = Page(operator.get(path)).text
    operator.send(path, f"{path}/commands", command="continue", key="2")
    operator.send(path, f"{path}/commands", command="cancel", reason="no more", key="3")

    assert (paused.status_code, paused.headers["location"]) == (303, path)
    assert "Continue" in said
    assert stage.agents.engine.state(workflow).outcome == "cancelled"
    assert f"{path}/commands" not in viewer.get(path).text


def test_an_unknown_browser_signs_in_and_returns_to_its_page(stage: Stage) -> None:
    browser = Browser(stage)

    asked = browser.get("/fleet?state=live")
    answer = browser.sign_in(asked.headers["location"], token=stage.token("viewer"))

    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?next=%2Ffleet%3Fstate%3Dlive")
    assert answer.headers["location"] == "/fleet?state=live"
    assert browser.get("/fleet?state=live").status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        *("https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", ""),
        *("/a\r\nSet-Cookie: x=1", "javascript:alert(1)", "/\t/evil.example"),
    ],
)
def test_signing_in_leads_to_no_other_site(stage: Stage, address: str) -> None:
    browser = Browser(stage)
    fields = Page(browser.get("/sign-in")).fields

    answer = browser.client.post("/sign-in", data={**fields, "token": stage.token(), "next": address})

    assert answer.headers["location"] == "/"


def test_each_sign_in_has_a_new_session_and_ends_the_previous_one(stage: Stage) -> None:
    browser = Browser(stage, "viewer")
    first = browser.client.cookies["fixloop_session"]

    browser.sign_in(token=stage.token("admin"))

    assert browser.client.cookies["fixloop_session"] != first
    assert with_session(stage, first).get("/").status_code == 303


def test_a_session_chosen_by_another_is_never_signed_in(stage: Stage) -> None:
    browser = with_session(stage, "chosen-by-somebody-else")

    browser.sign_in(token=stage.token("admin"))

    assert with_session(stage, "chosen-by-somebody-else").get("/").status_code == 303


def with_session(stage: Stage, cookie: str) -> Browser:
    browser = Browser(stage)
    browser.client.cookies.set("fixloop_session", cookie)
    return browser


def test_the_session_cookie_is_hidden_from_scripts_and_other_sites(stage: Stage) -> None:
    answer = Browser(stage).sign_in(token=stage.token())

    cookie = next(
        each for each in answer.headers.get_list("set-cookie") if each.startswith("fixloop_session=")
    )
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


def test_behind_tls_cookies_are_for_tls_alone(stage: Stage) -> None:
    stage.app.state.is_secure = True

    answer = Browser(stage).get("/sign-in")

    assert "Secure" in answer.headers["set-cookie"]


def test_the_terminal_s_code_is_filled_in_by_a_link_and_redeemed_once_by_the_form(stage: Stage) -> None:
    from fixloop.serve.access import TERMINAL, Caller, scopes_of

    code = stage.tokens.code(Caller("anna", scopes_of("admin", ""), TERMINAL))
    scanner, browser = Browser(stage), Browser(stage)

    looked = scanner.get(f"/sign-in?code={code}")
    first = browser.sign_in(f"/sign-in?code={code}", code=code)
    second = scanner.sign_in(f"/sign-in?code={code}", code=code)

    assert code in looked.text
    assert (first.status_code, second.status_code) == (303, 401)
    assert "used already" in second.text


def test_people_sign_in_with_a_password_and_a_wrong_one_is_explained(stage: Stage) -> None:
    stage.people.add("bob", "decider", frozenset(), "a long password")
    browser = Browser(stage)

    wrong = browser.sign_in(name="bob", password="another password")
    right = browser.sign_in(name="bob", password="a long password")

    assert (wrong.status_code, right.status_code) == (401, 303)
    assert "The name or the password is wrong." in wrong.text
    assert "bob" in browser.get("/").text


def test_after_thirty_wrong_passwords_the_right_one_is_not_tried_either(stage: Stage) -> None:
    stage.people.add("bob", "decider", frozenset(), "a long password")
    browser = Browser(stage)
    stage.exhaust(sha256(b"testclient").hexdigest(), FAILED_PER_MINUTE)

    right = browser.sign_in(name="bob", password="a long password")

    assert right.status_code == 429
    assert "fixloop_session" not in browser.client.cookies


def test_after_signing_out_the_cookie_is_void(stage: Stage) -> None:
    browser = Browser(stage, "viewer")
    cookie = browser.client.cookies["fixloop_session"]

    browser.send("/", "/sign-out")

    assert browser.get("/").status_code == 303
    assert with_session(stage, cookie).get("/").status_code == 303


def test_a_revoked_token_ends_the_sessions_that_it_began(stage: Stage) -> None:
    token, browser = stage.token("viewer"), Browser(stage)
    browser.sign_in(token=token)
    before = browser.get("/").status_code

    stage.tokens.revoke(token[3:11])

    assert (before, browser.get("/").status_code) == (200, 303)


def test_no_page_can_be_framed_or_run_inline_scripts(stage: Stage) -> None:
    answer = Browser(stage, "viewer").get("/")

    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_programs_get_problems_as_json(stage: Stage) -> None:
    browser = Browser(stage)

    api, page = browser.get("/v1/inbox"), browser.client.get("/", headers={"Accept": "application/json"})

    assert (api.status_code, page.status_code) == (401, 401)
    assert api.json()["type"] == page.json()["type"] == "/problems/not-signed-in"


@pytest.mark.parametrize("kind", KINDS)
def test_every_problem_s_type_leads_to_a_page(stage: Stage, kind: str) -> None:
    answer = Browser(stage).get(f"/problems/{kind}")

    assert answer.status_code == 200
    assert KINDS[kind].title in Page(answer).text


def test_the_comparison_shows_fixed_new_and_persisting_failures_next_to_the_code(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()

    said = Page(Browser(stage, "viewer").get(f"/w/{workflow}/compare/1..2")).text

    assert "2 fixed" in said
    assert "1 new" in said
    assert "1 persisting" in said
    assert "divmod(self.cents, parts)" in said
    told = stage.client("viewer").get(f"/v1/workflows/{workflow}/compare/1..2").json()
    assert {word: told[word]["total"] for word in ("fixed", "new", "persisting", "vanished")} == {
        "fixed": 2,
        "new": 1,
        "persisting": 1,
        "vanished": 0,
    }
    assert [each["iteration"] for each in told["fixes"]] == [1]
    ran = stage.client("viewer").get(f"/v1/workflows/{workflow}/checks").json()["checks"]
    assert [(each["iteration"], each["outcome"], each["exit_code"]) for each in ran] == [
        (number, "failed", 1) for number in (1, 2, 3, 4)
    ]


def test_a_hold_shows_both_sides_and_its_decision_is_counted(stage: Stage) -> None:
    workflow = Played(stage.agents.store).held()
    browser = Browser(stage, "decider", "anna")
    path = decide_path(stage, workflow)

    asked = Page(browser.get(path)).text
    before = Page(browser.get("/integrity")).text
    browser.send(path, decision="reject", reason="the test was right")
    after = Page(browser.get("/integrity")).text

    assert "[34, 33, 33]" in asked
    assert "<= 100" in asked
    assert "base-tests" in before
    assert re.search(r"base-tests\s*1\s*0\s*0\s*0\s*1", before)
    assert re.search(r"base-tests\s*1\s*0\s*1\s*0\s*0", after)


def test_workflows_of_other_profiles_have_their_pages_and_are_answered_there(stage: Stage) -> None:
    profiles = Profiles(stage.agents.store)
    workflow = profiles.cycle(issue=7)
    browser = Browser(stage, "admin")

    answer = browser.get(f"/w/{workflow}")

    assert answer.status_code == 200
    assert "OAuth login" in Page(answer).text
    assert browser.get(f"/w/{workflow}/compare/1..2").status_code == 404


def test_waits_for_others_are_listed_separately_and_viewers_have_no_button(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()

    viewer, decider = Browser(stage, "viewer").get("/"), Browser(stage, "decider").get("/")

    assert "?answer=abort" in decider.text
    assert "?answer=abort" not in viewer.text
    assert f"/w/{workflow}" in viewer.text


def test_an_empty_inbox_shows_what_is_running(stage: Stage) -> None:
    stage.agents.start(5, name="Round to cents", script="1 0")

    said = Page(Browser(stage, "decider").get("/")).text

    assert "All is decided." in said
    assert "Round to cents" in said


def test_without_redis_a_browser_gets_an_explanation_and_a_retry_time(stage: Stage) -> None:
    browser = Browser(stage, "viewer")

    def away() -> None:
        raise InfrastructureError("cannot reach Redis at unix:///nowhere")

    stage.app.add_api_route("/away", away)
    answer = browser.get("/away")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "Redis is away" in Page(answer).text
    assert "Nothing is lost" in Page(answer).text


def test_the_fleet_shows_queues_agents_and_hooks_to_users_of_all_projects(stage: Stage) -> None:
    workflow = Played(stage.agents.store).stuck()
    stage.agents.start(48)
    keep_heartbeat(stage.session.settings.cache_dir, "claude", Path("/home/me/shop"), "blocked: 2 fail")
    stage.settle()

    said = Page(Browser(stage, "viewer").get("/fleet")).text
    part = Page(Browser(stage, "viewer", projects=("ffffffff",)).get("/fleet")).text
    queues = stage.client("viewer").get("/v1/queues").json()["queues"]
    workers = stage.client("viewer").get("/v1/workers").json()

    assert re.search(r"fixloop\.test-runner\s*1\s*0", said)
    assert re.search(rf"coder heard of .* in {workflow}", said)
    assert re.search(r"/home/me/shop ran \d+ s ago: blocked: 2 fail", said)
    for word in ("Queues", "heard of", "/home/me/shop"):
        assert word not in part
    assert [(each["queue"], each["ready"]) for each in queues] == [("fixloop.test-runner", 1)]
    assert [each["name"] for each in workers["agents"]] == ["coder"]
