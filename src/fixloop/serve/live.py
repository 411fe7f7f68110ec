"""`/v1/events`: changes as server-sent events. An event names the workflow; its content has to be read."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from fixloop.errors import FixloopError
from fixloop.serve import access
from fixloop.serve.api import PROBLEMS
from fixloop.serve.follower import Follower, News
from fixloop.serve.problems import Problem, require
from fixloop.serve.requests import Known, Serving, identities_of

KEEP_ALIVE_SECONDS: Final = 20.0
"""Proxies close a connection that is silent for half a minute."""
KNOWN_SECONDS: Final = 60.0
"""How long a revoked token may still listen."""
router = APIRouter(prefix="/v1", responses=PROBLEMS)


@router.get(
    "/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}}
)
async def events(
    request: Request,
    caller: Known,
    service: Serving,
    workflow: Annotated[str, Query(pattern=r"^([0-9a-f]{8}-\d{1,15}-\d{1,9})?$")] = "",
    project: Annotated[str, Query(pattern=r"^([0-9a-f]{8})?$")] = "",
    last_event_id: Annotated[str, Header(max_length=400)] = "",
) -> StreamingResponse:
    """
    Each change as an event `change` with the workflow's id and version; Last-Event-ID goes on where a stream ended.

    An event may come twice, and is never lost: where some may be missing, `reset` says so, and all is to be read again;
    so does the first event of a stream without a Last-Event-ID.
    `away`: Redis does not answer; what happens meanwhile comes later.
    """
    require(caller, access.READ)
    missed = await run_in_threadpool(service.follower.since, last_event_id) if last_event_id else None

    def written(news: News) -> bytes:
        """An event that is not for this caller only moves the cursor."""
        named = news.workflow == workflow if workflow else news.workflow.startswith(project)
        lines = []
        if news.kind != "change" or (named and caller.sees(news.workflow)):
            document = {"workflow": news.workflow, "version": news.version} if news.workflow else {}
            lines = [f"event: {news.kind}", f"data: {json.dumps(document)}"]
        if news.cursor:
            lines.append(f"id: {news.cursor}")
        return ("\n".join(lines) + "\n\n").encode() if lines else b""

    def is_known() -> bool:
        try:
            return identities_of(request).caller(request) == caller
        except Problem:
            return False
        except FixloopError:
            # Redis is away: the caller is authenticated again when it is back.
            return True

    told = _stream(service.follower, missed, written, is_known)
    return StreamingResponse(told, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _stream(
    follower: Follower,
    missed: Iterable[News] | None,
    written: Callable[[News], bytes],
    is_known: Callable[[], bool],
) -> AsyncIterator[bytes]:
    asked_at = time.monotonic()
    with follower.listening() as queue:
        # A page's content may have become outdated before it started to listen.
        for news in [News("reset", cursor=follower.cursor)] if missed is None else missed:
            yield written(news)
        while True:
            try:
                yield written(await asyncio.wait_for(queue.get(), KEEP_ALIVE_SECONDS))
            except TimeoutError:
                yield b": \n\n"
            if time.monotonic() - asked_at > KNOWN_SECONDS:
                if not await run_in_threadpool(is_known):
                    return
                asked_at = time.monotonic()
