"""fixloop's doors for agents, which the conformance kit uses like an outside agent."""

import asyncio
import json
import os
import time
import urllib.error
import urllib.request
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fixloop.testing.agents import (
    GARBAGE,
    PATIENCE_SECONDS,
    SCENARIOS,
    Answer,
    Door,
    Edit,
    Site,
    Verdict,
    Work,
    play,
)

SILENT: Final = "is silent"
_NO_FENCE: Final = {"uses another fence": "commands on the Redis itself have no fence: they may do all"}
_ANYBODY: Final = {"two agents claim": "commands on the Redis itself belong to anybody who calls them"}
_STARTED: Final = "a command is started by fixloop for one request, and claims nothing"
_PUSHED: Final = ("claims twice", "two agents claim", "is late", "uses another fence", "hands in twice")


class _Claims(ABC):
    """Work is claimed with a token, and answered with the claim's fence."""

    cannot: Mapping[str, str] = {}

    def __init__(self, site: Site) -> None:
        self._site = site
        self._token = cache(site.token)

    def take(self, issue: int, agent: str = "coder") -> Work | None:
        found = self._ask(agent, "claim_work", wait_seconds=2)
        if found["status"] != "claimed" or found["issue"] != issue:
            return None
        return Work(issue, found["claim"], {"fence": found["fence"]})

    def hand_in(self, work: Work, edit: Edit, *, key: str = "", fence: int | None = None) -> Answer:
        told = {"fence": fence or work.facts["fence"], "patch": self._site.patch(edit)}
        return _answer(self._ask("coder", "submit_fix", claim=work.key, idempotency_key=key, **told))

    def decline(self, work: Work, kind: str, text: str) -> Answer:
        told = {"fence": work.facts["fence"], "kind": kind, "text": text}
        return _answer(self._ask("coder", "decline", claim=work.key, **told))

    @abstractmethod
    def _ask(self, agent: str, tool: str, **given: Any) -> Any:
        """The answer to a call of one of fixloop's tools."""


class Http(_Claims):
    """`/v1/claims`."""

    name = "http"
    too_many_bytes = 10_000_000

    def _ask(self, agent: str, tool: str, **given: Any) -> Any:
        headers = {"Authorization": f"Bearer {self._token(agent)}", "Content-Type": "application/json"}
        headers["Idempotency-Key"] = given.pop("idempotency_key", "") or uuid.uuid4().hex
        path, data = "/v1/claims?wait_seconds=2", b""
        if claim := given.pop("claim", ""):
            path, more = f"/v1/claims/{claim}/decline", {}
            if tool == "submit_fix":
                path, more = f"/v1/claims/{claim}/submit", {"summary": "it adds now"}
            data = json.dumps(given | more).encode()
        request = urllib.request.Request(f"{self._site.url}{path}", data, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # nosec B310: our own server
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return {"status": "refused", "reasons": [json.load(error)["detail"]]}


class Mcp(_Claims):
    """`/mcp`, with the SDK's client."""

    name = "mcp"
    too_many_bytes = 2_000_000

    def _ask(self, agent: str, tool: str, **given: Any) -> Any:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        token = self._token(agent)

        async def talk() -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
                transport = streamable_http_client(f"{self._site.url}/mcp", http_client=http)
                async with Client(transport, read_timeout_seconds=60) as client:
                    return await client.call_tool(tool, given)

        try:
            answer = asyncio.run(talk())
        except BaseExceptionGroup as refused:
            error: BaseException = refused
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            return {"status": "refused", "reasons": [str(error)]}
        found = answer.structured_content or {}
        return found.get("result", found)


class Files:
    """`fixloop ack`, the directory it creates, `fixloop fixed` and `fixloop decline`."""

    name = "files"
    cannot: Mapping[str, str] = {**_NO_FENCE, **_ANYBODY}
    too_many_bytes = 40_000_000

    def __init__(self, site: Site) -> None:
        self._site = site

    def take(self, issue: int, agent: str = "coder") -> Work | None:
        done = self._site.fixloop("ack", str(issue))
        if done.returncode:
            return None
        directory = done.stderr.split("work in ")[1].split(", then")[0]
        return Work(issue, f"{issue} {self._site.state(issue)['iteration']}", {"directory": directory})

    def hand_in(self, work: Work, edit: Edit, *, key: str = "", fence: int | None = None) -> Answer:
        words, stdin = ["fixed", str(work.issue)], ""
        if edit is GARBAGE:
            words, stdin = [*words, "--file", "-"], edit[""]
        else:
            for name, text in edit.items():
                (Path(work.facts["directory"]) / name).write_text(text)
        done = self._site.fixloop(*words, stdin=stdin)
        output = f"{done.stdout}{done.stderr}"
        if done.returncode:
            return Answer("too_late" if "awaits no fix" in output or "ended" in output else "refused", output)
        return Answer("unchanged" if "no file was changed" in output else "accepted", output)

    def decline(self, work: Work, kind: str, text: str) -> Answer:
        done = self._site.fixloop("decline", str(work.issue), "--kind", kind, "--text", text)
        return Answer("refused" if done.returncode else "accepted", done.stderr)


class Mailbox(Files):
    """`fixloop mailbox`, which gives the same as `fixloop ack`; answers go through files."""

    name = "mailbox"
    cannot: Mapping[str, str] = {**_NO_FENCE, "two agents claim": "a mailbox is one agent's"}

    def take(self, issue: int, agent: str = "coder") -> Work | None:
        done = self._site.fixloop("mailbox", agent, "--json")
        messages = json.loads(done.stdout)["messages"] if done.stdout.strip() else []
        mine = [each for each in messages if each["issue"] == issue and each.get("directory")]
        if not mine:
            return None
        return Work(issue, f"{issue} {mine[-1]['iteration']}", {"directory": mine[-1]["directory"]})


class Command:
    """A command that fixloop starts; it reads its actions from a pipe for each issue."""

    name = "command"
    cannot: Mapping[str, str] = {
        **dict.fromkeys(_PUSHED, _STARTED),
        "never read the answer": "a command that dies is started again, with the same request",
    }
    too_many_bytes = 40_000_000

    def __init__(self, site: Site, plans: Path) -> None:
        self._site, self._plans = site, plans

    def take(self, issue: int, agent: str = "coder") -> Work | None:
        return Work(issue, str(issue), {})

    def hand_in(self, work: Work, edit: Edit, *, key: str = "", fence: int | None = None) -> Answer:
        if edit is GARBAGE:
            self._play(work.issue, {"answer": edit[""], "edit": {}}, "answer-rejected")
            return Answer("refused", "the answer was rejected")
        self._play(work.issue, {"edit": dict(edit)}, "fix-completed")
        return Answer("accepted", "")

    def decline(self, work: Work, kind: str, text: str) -> Answer:
        self._play(work.issue, {"answer": f"DECLINED {kind}: {text}", "edit": {}}, "blocker-signalled")
        return Answer("accepted", "")

    def _play(self, issue: int, plan: Mapping[str, Any], until: str) -> None:
        """Let the command do this once; wait for `until` in the history, or for the workflow to need a person."""
        pipe = self._plans / str(issue)
        if not pipe.exists():
            os.mkfifo(pipe)
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:
                # There is no reader yet.
                assert time.monotonic() < ends, f"no command asks what to do: {pipe.name}"
                time.sleep(0.05)
        os.set_blocking(descriptor, True)
        with open(descriptor, "w") as pipe_end:
            pipe_end.write(json.dumps(plan))

        def is_played(state: Mapping[str, Any]) -> bool:
            log = self._site.fixloop("log", str(issue), "--all").stdout
            return until in log or state["owner"] == "person"

        self._site.wait(issue, is_played)


AGENT: Final = """\
import json, os, pathlib, sys, time
plan = pathlib.Path({plans!r}) / os.environ["FIXLOOP_ISSUE"]
while not plan.exists():
    time.sleep(0.05)
told = json.loads(plan.read_text())
for name, text in told["edit"].items():
    pathlib.Path(name).write_text(text)
if "answer" in told:
    pathlib.Path(os.environ["FIXLOOP_ANSWER"]).write_text(told["answer"])
"""
_DOORS: Final[Mapping[str, Callable[[Site], Door]]] = {
    "http": Http,
    "mcp": Mcp,
    "files": Files,
    "mailbox": Mailbox,
}


def opened(name: str, folder: Path, scenarios: Sequence[str] = tuple(SCENARIOS)) -> Iterator[Verdict]:
    """Play scenarios through one of fixloop's doors, in an empty folder."""
    fixer, plans = 'agent = "coder"\n[agent.coder]', folder / "plans"
    if name == "command":
        plans.mkdir()
        (folder / "agent.py").write_text(AGENT.format(plans=str(plans)))
        fixer = f'command = ["python3", "{folder / "agent.py"}"]'
    others = [each for each in scenarios if each != SILENT]
    for part, minutes in ((others, 30.0), ([SILENT] if SILENT in scenarios else [], 0.03)):
        if not part:
            continue
        with Site(folder / f"site-{minutes:g}", fixer=fixer, minutes=minutes).serving() as site:
            door: Door = Command(site, plans) if name == "command" else _DOORS[name](site)
            yield from play(site, door, part)


def _answer(told: Mapping[str, Any]) -> Answer:
    status = "refused" if told["status"] == "error" else told["status"]
    return Answer(status, " ".join(map(str, told.get("reasons", told.get("notes", ())))))
