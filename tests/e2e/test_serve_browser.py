"""The pages of a real `fixloop serve` in a real browser: by keyboard alone, live, accessible, and without scripts."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from fixloop.serve.access import scopes_of
from fixloop.serve.tokens import Link, Tokens
from fixloop.store.connection import Connection
from tests.fixtures.browsing import PICTURES, chromium
from tests.fixtures.command_stage import empty_store
from tests.fixtures.serve_process import Server, serving
from tests.fixtures.served_workflows import Played

pytestmark = pytest.mark.slow

PATIENCE_MS: Final = 40_000
"""Polling, without a stream of events, takes ten seconds."""
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light-1280": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark-1280": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "light-320": {"viewport": {"width": 320, "height": 640}, "color_scheme": "light"},
    "dark-320": {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark"},
}


class World:
    """A served deployment, and its users."""

    def __init__(self, played: Played, served: Server, tokens: Tokens, browser: Browser) -> None:
        self.played, self.served, self.tokens, self.browser = played, served, tokens, browser
        self.refused: list[str] = []

    def context(self, **look: Any) -> BrowserContext:
        context = self.browser.new_context(base_url=self.served.url, **look)
        context.set_default_timeout(PATIENCE_MS)
        return context

    def signed_in(self, context: BrowserContext, role: str = "decider", name: str = "") -> Page:
        """A page of the inbox, signed in with a token."""
        page = context.new_page()
        page.on("console", self._heard)
        page.goto("/sign-in")
        page.get_by_label("Token").fill(self.tokens.create(name or role, scopes_of(role, ""), (), days=1))
        page.locator("form", has=page.get_by_label("Token")).get_by_role("button").click()
        page.wait_for_url("**/")
        return page

    def decide_path(self, workflow: str) -> str:
        state = self.played.engine.state(workflow)
        assert state.escalation is not None
        return f"/w/{workflow}/decide/{state.escalation.message_id}"

    def link(self, workflow: str) -> str:
        """The address in a message that calls anna about it."""
        state, found = self.played.engine.state(workflow), self.played.store.read(workflow)
        assert state.escalation is not None
        assert found is not None
        decisions = tuple(state.escalation.reason.decisions)
        link = Link("anna", workflow, state.escalation.message_id, found.version, decisions)
        return f"/a/{self.tokens.link(link)}"

    def _heard(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.refused.append(message.text)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as found:
        yield found


@pytest.fixture
def world(
    browser: Browser, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        closing(Connection(redis_url)) as connection,
        serving(redis_url, tmp_path) as served,
    ):
        yield World(Played(store), served, Tokens(connection), browser)


def test_a_person_with_only_a_keyboard_gets_from_the_link_to_a_decision(world: World) -> None:
    workflow = world.played.stuck()
    with world.context() as context:
        page = context.new_page()
        page.goto(world.served.sign_in)

        expect(page.get_by_role("button", name="Sign in").first).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**/")
        page.keyboard.press("j")
        expect(page.locator("[data-step]").first).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**/decide/**")
        page.keyboard.press("a")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.type("it goes nowhere")
        page.keyboard.press("Control+Enter")

        expect(page.locator("#status")).to_contain_text("decided abort")
        expect(page.locator("#status")).to_contain_text("it goes nowhere")
    assert world.played.engine.state(workflow).outcome == "aborted"


def test_the_link_of_a_message_takes_two_actions_to_a_decision_by_keyboard(world: World) -> None:
    workflow = world.played.stuck()
    with world.context() as context:
        page = context.new_page()
        page.goto(world.link(workflow))

        page.keyboard.press("a")
        page.keyboard.press("Control+Enter")

        expect(page.locator("#status")).to_contain_text("anna (link) decided abort")
    assert world.played.engine.state(workflow).outcome == "aborted"


def test_an_open_inbox_shows_new_entries_and_keeps_the_focus(world: World) -> None:
    world.played.stuck(47)
    with world.context() as context:
        page = world.signed_in(context)
        page.keyboard.press("j")
        focused = page.evaluate("document.activeElement.id")

        world.played.held(48)

        expect(page.locator("#status")).to_contain_text("2 wait for your decision")
        expect(page.locator(".item")).to_have_count(2)
        assert focused.startswith("open-ESC-47-")
        assert page.evaluate("document.activeElement.id") == focused


def test_a_stale_page_says_so_and_keeps_the_focus_and_the_typed_text(world: World) -> None:
    workflow = world.played.stuck()
    path = world.decide_path(workflow)
    with world.context() as context, world.context() as other:
        page, bobs = world.signed_in(context, name="anna"), world.signed_in(other, name="bob")
        page.goto(path)
        page.get_by_label("Reason").fill("half a sen")

        bobs.goto(path)
        bobs.keyboard.press("s")
        bobs.keyboard.press("Control+Enter")
        expect(bobs.locator("#status")).to_contain_text("decided skip")

        expect(page.locator("#status")).to_contain_text(
            re.compile(r"bob \(token \w+\) decided skip \d+ s ago")
        )
        assert page.evaluate("document.activeElement.name") == "reason"
        expect(page.get_by_label("Reason")).to_have_value("half a sen")
        page.get_by_label("abort").check()
        page.get_by_role("button", name="Confirm").click()
        expect(page.locator("h1")).to_have_text("It has changed meanwhile")
        expect(page.locator("main")).to_contain_text("half a sen")


def test_a_workflow_is_walked_through_and_paused_without_leaving_its_page(world: World) -> None:
    workflow = world.played.stuck()
    with world.context() as context:
        page = world.signed_in(context, "admin")
        page.goto(f"/w/{workflow}")

        page.keyboard.press("]")
        page.keyboard.press("]")
        at = page.evaluate("document.activeElement.id")
        page.keyboard.press("[")
        before = page.evaluate("document.activeElement.id")
        page.keyboard.press("d")
        opened = page.evaluate("document.activeElement.closest('details').open")
        page.get_by_role("button", name="Pause").click()

        expect(page.get_by_role("button", name="Continue")).to_be_visible()
        assert (at, before) == ("run-test-runner-2", "run-test-runner-1")
        assert opened in (True, False)
        assert page.evaluate("document.activeElement.id") == "goes-on"
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_no_page_is_inaccessible_or_scrolls_sideways_in_any_theme(world: World, scripts: bool) -> None:
    paths = pages_of(world)
    PICTURES.mkdir(parents=True, exist_ok=True)
    found: list[str] = []
    for look, settings in LOOKS.items():
        with world.context(java_script_enabled=scripts, **settings) as context:
            page = world.signed_in(context, "admin")
            for name, path in paths.items():
                page.goto(path)
                picture = PICTURES / f"{name}-{look}{'' if scripts else '-no-scripts'}.png"
                page.screenshot(path=picture, full_page=True)
                if not scripts:
                    expect(page.locator("h1")).to_have_count(1)
                    continue
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                results = Axe().run(page)
                found += [f"{name} {look}: {wide} px too wide"] * (wide > 0)
                found += [f"{name} {look}: {results.generate_report()}"] * (results.violations_count > 0)

    assert found == []
    assert world.refused == []


def pages_of(world: World) -> dict[str, str]:
    """Each page, with something on it."""
    stuck, held, done = world.played.stuck(47), world.played.held(48), world.played.play(49, ())
    world.played.start(50, name="Round to cents")
    return {
        "inbox": "/",
        "decision": f"{world.decide_path(stuck)}?answer=extend",
        "hold": world.decide_path(held),
        "link": world.link(stuck),
        "workflow": f"/w/{stuck}",
        "completed": f"/w/{done}",
        "compare": f"/w/{stuck}/compare/1..2",
        "fleet": "/fleet",
        "integrity": "/integrity",
        "problem": "/w/0a1b2c3d-99-1",
        "kind": "/problems/stale",
        "sign-in": "/sign-in?code=abc",
    }


def test_without_scripts_links_and_forms_do_everything(world: World) -> None:
    stuck, held = world.played.stuck(47), world.played.held(48)
    with world.context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(world.served.sign_in)
        page.get_by_role("button", name="Sign in").first.click()
        expect(page.locator("h1")).to_have_text("Inbox")

        page.get_by_role("link", name="extend for #47").click()
        page.get_by_label("Reason").fill("once more")
        page.get_by_role("button", name="Confirm").click()
        expect(page.locator("#status")).to_contain_text("decided extend")

        page.get_by_role("link", name="Next: #48").click()
        page.get_by_label("reject").check()
        page.get_by_role("button", name="Confirm").click()
        expect(page.locator("#status")).to_contain_text("decided reject")

        page.goto(f"/w/{stuck}")
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("Cancel…").click()
        page.get_by_label("Why").fill("enough")
        page.get_by_role("button", name="Cancel it for good").click()
        expect(page.locator("#status")).to_contain_text("cancelled")

        page.goto("/fleet")
        page.get_by_label("State").select_option("ended")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("[id^=row-]")).to_have_count(1)

        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Sign in")
    assert world.played.engine.state(stuck).outcome == "cancelled"
    assert world.played.engine.state(held).escalation is None
