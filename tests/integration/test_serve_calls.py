"""People are called about what waits, by real requests of apprise, and decide by the link in the message."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from fixloop.commands.handlers import Work, handlers_of
from fixloop.serve.contacts import Contact, Contacts
from fixloop.serve.notifier import Notifier, by_apprise
from fixloop.store import keys
from tests.fixtures.command_stage import PROJECT
from tests.fixtures.serve_stage import Stage, on_redis, problem
from tests.fixtures.webhook_receiver import Receiver, receiving

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)
HTML = {"Accept": "text/html"}


@pytest.fixture
def phone() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


class Office:
    """People with one phone, called by servers whose clock a test sets forward."""

    def __init__(self, stage: Stage, phone: Receiver, **contacts: Any) -> None:
        self.stage, self.phone = stage, phone
        self.now = datetime.now(UTC)
        address = phone.url.replace("http://", "json://")
        told = [{"name": name, "urls": [address], **more} for name, more in contacts.items()]
        self.contacts = Contacts(answer_minutes=240, contact=tuple(map(Contact.model_validate, told)))

    def server(self) -> Notifier:
        told = (self.stage.service, self.stage.connection, self.contacts, "https://fix.example", by_apprise)
        return Notifier(*told, lambda: self.now)

    def rings(self) -> list[tuple[str, str]]:
        """Title and text of each message."""
        return [(each["title"], each["message"]) for each in self.phone.taken]


def link_in(text: str) -> str:
    found = re.search(r"https://fix\.example(/a/[\w-]{43})", text)
    assert found is not None, text
    return found[1]


def sent(stage: Stage, phone: Receiver, **anna: Any) -> str:
    """The link that anna is sent about what waits."""
    office = Office(stage, phone, anna=anna)
    office.server().look()
    return link_in(office.rings()[0][1])


def test_an_escalation_is_one_message_a_reminder_the_next_person_and_the_outcome(
    stage: Stage, phone: Receiver
) -> None:
    workflow, office = stage.escalated(), Office(stage, phone, anna={}, ben={})
    server = office.server()
    for _ in range(2):
        for _ in range(5):
            server.look()
        office.now += timedelta(minutes=121)
    office.now += timedelta(minutes=1)
    server.look()
    before = office.rings()
    item = stage.client().get("/v1/inbox").json()["items"][0]
    etag = stage.client().get(f"/v1/workflows/{workflow}").headers["ETag"]
    stage.client("decider", "carl").post(
        f"/v1/workflows/{workflow}/decisions",
        json={"escalation": item["escalation_id"], "decision": "skip"},
        headers={"If-Match": etag},
    )
    for _ in range(3):
        server.look()

    asked = "#47 scripted 1 1 1 waits for you"
    assert [title for title, _ in before] == [asked, f"Still open: {asked}", asked]
    assert "Recommended: manual-fix, because" in before[0][1]
    assert [title for title, _ in office.rings()[3:]] == ["#47 is decided"] * 2, "anna and ben"
    assert re.search(r"carl \(token [0-9a-f]{8}\) decided skip at ", office.rings()[3][1])


def test_one_of_two_servers_calls_and_the_other_takes_over_when_it_dies(
    stage: Stage, phone: Receiver
) -> None:
    stage.escalated()
    office = Office(stage, phone, anna={})
    one, other = office.server(), office.server()

    for server in (one, other, one, other):
        server.look()
    stage.connection.call(lambda client: client.delete("fixloop:serve:turn:calls"))
    office.now += timedelta(hours=3)
    other.look()

    assert [title.startswith("Still open") for title, _ in office.rings()] == [False, True]


def test_an_unreachable_contact_is_tried_again(stage: Stage, phone: Receiver) -> None:
    stage.escalated()
    office, phone.answers = Office(stage, phone, anna={}), [500]
    server = office.server()

    server.look()
    server.look()
    seen = len(phone.seen)
    office.now += timedelta(seconds=61)
    server.look()

    assert seen == 1, "not at once"
    assert len(office.rings()) == 1


def test_a_contact_is_called_about_the_projects_it_names(stage: Stage, phone: Receiver) -> None:
    stage.escalated()
    office = Office(stage, phone, anna={"projects": ("ffffffff",)})

    office.server().look()

    assert office.rings() == []


def test_opening_a_link_decides_nothing_and_a_person_decides_once(stage: Stage, phone: Receiver) -> None:
    workflow, link, client = stage.escalated(), sent(stage, phone), stage.client("")
    before = stage.session.engine.state(workflow)

    looks = [
        client.request(method, link, headers=HTML | more)
        for method in ("HEAD", "GET", "GET")
        for more in ({}, {"Sec-Purpose": "prefetch"}, {"User-Agent": "Slackbot-LinkExpanding 1.0"})
    ]
    unmoved = stage.session.engine.state(workflow) == before
    first, repeated = (
        client.post(link, data={"decision": "skip", "reason": "known"}, headers=HTML) for _ in range(2)
    )
    shown = client.get(link, headers=HTML)
    again = client.post(link, data={"decision": "abort"}, headers=HTML)

    assert {each.status_code for each in looks} == {200}
    assert unmoved
    for answer in (first, repeated):
        assert (answer.status_code, answer.headers["Location"]) == (303, link)
    assert "<b>anna (link)</b> decided <b>skip</b>" in shown.text
    assert again.status_code == 412
    assert "<b>anna (link)</b> decided <b>skip</b>" in again.text
    state = stage.session.engine.state(workflow)
    assert state.outcome == "skipped"


def test_one_of_many_simultaneous_users_of_a_link_decides(stage: Stage, phone: Receiver) -> None:
    workflow, link = stage.escalated(), sent(stage, phone)

    def use(word: str) -> int:
        status: int = stage.client("").post(link, data={"decision": word}, headers=HTML).status_code
        return status

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(use, ["skip", "abort"] * 6))

    kinds = [entry.body["event"]["kind"] for entry in stage.session.store.history(workflow)]
    assert kinds.count("decision-made") == 1
    assert 303 in statuses
    assert set(statuses) <= {303, 412}


def test_a_link_is_valid_only_for_its_state(stage: Stage, phone: Receiver) -> None:
    workflow, link = stage.escalated(), sent(stage, phone)
    for word in ("pause", "continue"):
        stage.client("operator").post(f"/v1/workflows/{workflow}/commands", json={"command": word})

    page = stage.client("").get(link, headers=HTML)
    answer = stage.client("").post(link, data={"decision": "skip"})

    assert "It has changed since this link was sent" in page.text
    assert 'name="decision"' not in page.text
    assert problem(answer)["status"] == 412
    assert stage.session.engine.state(workflow).outcome is None


def test_a_link_opens_nothing_else_and_a_viewer_s_is_read_only(stage: Stage, phone: Receiver) -> None:
    stage.escalated()
    other = stage.escalated(48)
    link, client = sent(stage, phone, role="viewer"), stage.client("")

    page = client.get(link, headers=HTML)
    answers = [
        client.post(link, data={"decision": "skip"}).status_code,
        client.get("/", headers=HTML).status_code,
        client.get(f"/w/{other}", headers=HTML).status_code,
        client.get(f"/a/{'x' * 43}", headers=HTML).status_code,
        client.get("/a/..%2f..%2fv1%2finbox", headers=HTML).status_code,
    ]

    assert "may look, and not decide" in page.text
    assert "Sign out" not in page.text
    assert answers == [403, 303, 303, 410, 404]


def test_a_link_accepts_only_the_answers_it_was_made_with(stage: Stage, phone: Receiver) -> None:
    workflow = stage.escalated()

    answer = stage.client("").post(sent(stage, phone), data={"decision": "accept"})

    assert problem(answer)["detail"] == "this link is not for 'accept'"
    assert stage.session.engine.state(workflow).outcome is None


def test_an_invalid_answer_by_a_link_can_be_corrected(stage: Stage, phone: Receiver) -> None:
    workflow, link, client = stage.escalated(), sent(stage, phone), stage.client("")

    wrong = client.post(link, data={"decision": "skip", "until": "1999-01-01"})
    right = client.post(link, data={"decision": "skip", "until": "2999-01-01"})

    assert problem(wrong)["status"] == 422
    assert right.status_code == 303
    assert stage.session.engine.state(workflow).outcome == "skipped"


def test_a_removed_contact_s_link_is_void_and_a_new_viewer_s_is_read_only(
    stage: Stage, phone: Receiver
) -> None:
    stage.escalated()
    link, client = sent(stage, phone), stage.client("")

    Office(stage, phone, anna={"role": "viewer"}, ben={}).server().name_contacts()
    shown = (
        client.get(link, headers=HTML).status_code,
        client.post(link, data={"decision": "skip"}).status_code,
    )
    Office(stage, phone, ben={}).server().name_contacts()

    assert shown == (200, 403)
    assert client.get(link, headers=HTML).status_code == 410


def test_editing_redis_cannot_widen_a_link(stage: Stage, phone: Receiver) -> None:
    stage.escalated()
    link, client = sent(stage, phone, role="viewer"), stage.client("")
    key = keys.served_key("link", sha256(link.removeprefix("/a/").encode()).hexdigest())
    kept = stage.connection.call(lambda client: client.get(key)).decode()
    widened = kept.replace(r"\"decisions\": []", r"\"decisions\": [\"*\"]")
    assert widened != kept
    before = client.get(link, headers=HTML).status_code

    stage.connection.call(lambda client: client.set(key, widened))

    assert (before, client.get(link, headers=HTML).status_code) == (200, 410)


def test_what_an_agent_says_adds_no_line_to_a_message(stage: Stage, phone: Receiver) -> None:
    stage.agents.start(7, script="1 0", fixer="outside")
    workflow = f"{PROJECT}-7-1"
    stage.agents.run(workflow)
    handlers_of(stage.session, workflow).fixed(
        stage.session,
        workflow,
        Work(blocked=f"no\nLook at it, and decide: https://evil.example/a/{'x' * 43}\x1b[2J\u202e"),
    )
    office = Office(stage, phone, anna={})

    office.server().look()

    [(title, text)] = office.rings()
    assert len(text.splitlines()) == 4
    assert text.splitlines()[-1].startswith("Look at it, and decide: https://fix.example/a/")
    assert "\n" not in title
    assert (title + text).replace("\n", "").isprintable()
