"""Offers work to agents as seven tools of the Model Context Protocol. None decides, skips, cancels or configures."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from mcp.server.mcpserver import MCPServer
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from fixloop import __version__
from fixloop.errors import FixloopError
from fixloop.serve.access import Caller
from fixloop.serve.lists import Filter
from fixloop.serve.problems import Problem
from fixloop.serve.requests import once
from fixloop.serve.service import Service
from fixloop.serve.work import Desk
from fixloop.serve.work_api import LONGEST_WAIT_SECONDS, MOST_WORDS, DecliningKind, Fence, claimed

CHECK_SECONDS: Final = 40
"""Clients give up after a minute."""
MOST_CHARACTERS: Final = 4000
SHOWN_WORKFLOWS: Final = 20
INSTRUCTIONS: Final = (
    "Claim work, then submit a patch or decline. Tests and gates are frozen. `next` says what to do."
)
_ROW: Final = ("workflow_id", "issue", "name", "status", "owner", "specialist", "iteration", "max_iterations")
_VERDICTS: Final = {0: "passed", 1: "failed"}

Answer = dict[str, Any]
Claim = Annotated[str, Field(max_length=200)]
Number = Annotated[str, Field(max_length=7)]
Words = Annotated[str, Field(max_length=MOST_WORDS)]
Once = Annotated[str, Field(max_length=200, description="The same for a repetition.")]


def server_of(service: Service, caller: Callable[[], Caller], *, with_check: bool) -> MCPServer[Any]:
    """The tools, for the caller that `caller` returns on each call; `with_check`: there is a checkout to check here."""

    def desk() -> Desk:
        return Desk(service, caller())

    server = MCPServer[Any]("fixloop", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")

    if with_check:

        @server.tool()
        async def check(path: Annotated[str, Field(max_length=1000)] = ".") -> Answer:
            """Validate the checkout as it lies there; nothing is handed in."""
            return await _answered(lambda: _checked(service.checkout(caller()), path))

    @server.tool()
    async def claim_work(
        wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)] = LONGEST_WAIT_SECONDS,
    ) -> Answer:
        """Take the fix request that has waited longest; the same again while it is yours."""
        try:
            return await claimed(desk(), wait_seconds)
        except (FixloopError, Problem) as error:
            return _failed(error)

    @server.tool()
    async def get_failure(claim: Claim, number: Number, part: int = 1) -> Answer:
        """One failure in full, such as F3."""
        return await _answered(lambda: desk().failure(claim, number, part))

    @server.tool()
    async def submit_fix(
        claim: Claim, fence: Fence, patch: str, summary: Words = "", idempotency_key: Once = ""
    ) -> Answer:
        """Hand in a unified diff onto base_commit."""
        return await _answered(lambda: desk().submit(claim, fence, patch, summary, once(idempotency_key)))

    @server.tool()
    async def decline(
        claim: Claim, fence: Fence, kind: DecliningKind, text: Words, idempotency_key: Once = ""
    ) -> Answer:
        """Say that there will be no fix, and why: a person decides."""
        return await _answered(lambda: desk().decline(claim, fence, kind, text, once(idempotency_key)))

    @server.tool()
    async def heartbeat(claim: Claim, fence: Fence) -> Answer:
        """Keep a claim."""
        return await _answered(lambda: desk().heartbeat(claim, fence))

    @server.tool()
    async def status() -> Answer:
        """The live workflows: whose turn it is, and in which run."""

        def found() -> Answer:
            page = service.workflows(caller(), Filter(state="live"), SHOWN_WORKFLOWS)
            shown = [{name: each[name] for name in _ROW} for each in page.workflows]
            return {"status": "found", "workflows": shown, "next": "claim_work"}

        return await _answered(found)

    return server


def _checked(directory: Path, path: str) -> Answer:
    place = (directory / path).resolve()
    if not place.is_relative_to(directory.resolve()):
        told = f"{path} is not below {directory}"
        return {"status": "refused", "reasons": [told], "next": "check another path"}
    # A separate program, because its output is not part of this protocol, and it can be killed.
    # With `-P`, no file of the checkout is taken for a module of fixloop.
    command = [sys.executable, "-P", "-m", "fixloop.cli", "check", str(place), "--within", str(CHECK_SECONDS)]
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = (done.stdout or done.stderr).decode("utf-8", "replace")[:MOST_CHARACTERS]
    verdict = _VERDICTS.get(done.returncode, "could_not_check")
    following = "mend it, then check" if verdict == "failed" else "submit"
    return {"status": verdict, "text": said, "next": following}


async def _answered(ask: Callable[[], Answer]) -> Answer:
    """The result of `ask`, run in a thread with the request's context and so its caller."""
    try:
        return await run_in_threadpool(ask)
    except (FixloopError, Problem) as error:
        return _failed(error)


def _failed(error: Exception) -> Answer:
    return {"status": "error", "reasons": [str(error)], "next": "read the reason, then ask again"}
