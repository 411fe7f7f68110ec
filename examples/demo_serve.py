"""The act of `make demo PROFILE=serve`: a decision on the page, by a headless browser if there is one, else by its
forms."""

import contextlib
import html
import http.cookiejar
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

from demo_stage import FIXLOOP, LIMIT_SECONDS, Stage

REASON = "known, will be fixed next week"
BROWSERS = ("/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chromium")
ADDRESS = re.compile(r"(http://[^/\s]+)(/sign-in\?code=\S+)")
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


def decided_on_a_page(stage: Stage) -> None:
    """`stuck` is submitted, its worker runs in the server, and a person decides remotely."""
    project = stage.project("stuck")
    stage.run(project, "enqueue", "--issue", "48")
    with serving(stage, project) as (address, sign_in):
        print(f"\n   the inbox is at {address}", flush=True)
        site = Site(address)
        site.sign_in(sign_in)
        item = site.waited_for("/v1/inbox", lambda told: next(iter(told["items"]), None))
        stage.check("what waits in the inbox", item["reason"], "Deadlock - no progress")
        page = f"/w/{item['workflow_id']}/decide/{urllib.parse.quote(item['escalation_id'])}"
        with browser() as found:
            how = "a headless browser" if found else "its form"
            print(f"   answering {page} through {how}", flush=True)
            decide_in(found, site, page) if found else site.decide(page)
        ended = site.waited_for(
            f"/v1/workflows/{item['workflow_id']}", lambda told: told if told["outcome"] else None
        )
    stage.check("the verdict", ended["verdict"], "passed_with_known_issues")
    entries = stage.read(project, "log", "48", "--all").get("history", [])
    stage.check("whether the history has the person's reason", REASON in json.dumps(entries), True)


@contextlib.contextmanager
def serving(stage: Stage, project: Path):
    """`fixloop serve` in the project: its address, and the path that signs in."""
    print("\n$ fixloop serve --port 0", flush=True)
    command = [FIXLOOP, "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=project, env=stage.environment, stderr=subprocess.PIPE, text=True
    ) as process:
        late = threading.Timer(LIMIT_SECONDS, process.kill)
        late.start()
        try:
            said = ""
            while not (found := ADDRESS.search(said)):
                line = process.stderr.readline()
                if not line:
                    raise SystemExit(f"fixloop serve ended: {said}")
                said += line
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield found.groups()
        finally:
            late.cancel()
            process.terminate()
            process.wait(LIMIT_SECONDS)


@contextlib.contextmanager
def browser():
    """The system's Chromium; None if there is none, or nothing to drive it with."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        yield None
        return
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield found
        finally:
            found.close()


def decide_in(found, site: "Site", path: str) -> None:
    """Like a person on the page: a choice, a reason, and Confirm."""
    context = found.new_context(base_url=site.address)
    context.add_cookies([{"name": each.name, "value": each.value, "url": site.address} for each in site.cookies])
    page = context.new_page()
    page.goto(path)
    page.get_by_role("radio", name=re.compile("^skip")).check()
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("decided").first.wait_for()


class Site:
    """The server, as seen by a browser without scripts."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def sign_in(self, path: str) -> None:
        code = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)["code"][0]
        self._send("/sign-in", {**self._hidden(path), "code": code})

    def decide(self, path: str) -> None:
        self._send(path, {**self._hidden(path), "decision": "skip", "reason": REASON})

    def waited_for(self, path: str, wanted):
        """What `wanted` finds in a document of the API, polled until it does."""
        give_up = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < give_up:
            if (found := wanted(json.loads(self._open(path)))) is not None:
                return found
            time.sleep(0.2)
        raise subprocess.TimeoutExpired(["fixloop", path], LIMIT_SECONDS)

    def _hidden(self, path: str) -> dict[str, str]:
        return {name: html.unescape(value) for name, value in FIELD.findall(self._open(path))}

    def _send(self, path: str, fields: dict[str, str]) -> None:
        self._open(path, urllib.parse.urlencode(fields).encode())

    def _open(self, path: str, body: bytes | None = None) -> str:
        with self._opener.open(f"{self.address}{path}", body, timeout=LIMIT_SECONDS) as answer:
            return answer.read().decode()
