"""`/v1/claims`: fixes by agents from elsewhere."""

import asyncio
import time
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from fixloop.serve.api import PROBLEMS
from fixloop.serve.requests import Key, Known, Serving
from fixloop.serve.submission import Body
from fixloop.serve.work import MOST_PATCH_BYTES, Desk

LONGEST_WAIT_SECONDS = 45.0
"""Clients give up after a minute."""
MOST_WORDS = 5000
REVISION = r"^([A-Za-z0-9][\w./@+-]*)?$"
AGAIN_SECONDS = 5.0
"""The longest delay until a claim that ran out is noticed."""
router = APIRouter(prefix="/v1/claims", responses=PROBLEMS)


def desk_of(service: Serving, caller: Known) -> Desk:
    return Desk(service, caller)


AtDesk = Annotated[Desk, Depends(desk_of)]
Claim = Annotated[str, Path(pattern=r"^[0-9a-f]{8}-\d{1,15}-\d{1,9}\.[a-z0-9-]{1,60}\.\d{1,9}\.\d{1,9}$")]
Fence = Annotated[int, Field(ge=1, le=2**53)]
DecliningKind = Literal["blocked", "needs-info", "test-is-wrong", "not-mine"]
Number = Annotated[str, Path(pattern=r"^F?\d{1,6}$")]
Part = Annotated[int, Query(ge=1, le=100_000)]


class Held(Body):
    """Whose claim it is: the fence that came with it."""

    fence: Fence


class Fix(Held):
    """A fix: a unified diff onto the claim's base_commit, or a revision of the repository that builds on it."""

    patch: str = Field("", max_length=2 * MOST_PATCH_BYTES)
    revision: str = Field("", max_length=300, pattern=REVISION)
    """A branch, tag or commit of the repository that was handed in."""
    summary: str = Field("", max_length=MOST_WORDS)


class Declined(Held):
    """Why there will be no fix."""

    kind: DecliningKind
    text: str = Field(min_length=1, max_length=MOST_WORDS)


@router.post("")
async def claim(
    desk: AtDesk, wait_seconds: Annotated[float, Query(ge=0, le=LONGEST_WAIT_SECONDS)] = 0
) -> dict[str, Any]:
    """
    Take the request that has waited longest for this caller's agent; the same one again for who holds it.

    `status` is `claimed`, or `none` where nothing came in `wait_seconds`. A claim has a lease; a heartbeat renews it.
    """
    return await claimed(desk, wait_seconds)


async def claimed(desk: Desk, wait_seconds: float) -> dict[str, Any]:
    """The answer of `Desk.claim`, repeated on each change until something is claimed or the time is over."""
    ends = time.monotonic() + wait_seconds
    with desk.changes() as queue:
        while True:
            found = await run_in_threadpool(desk.claim)
            left = ends - time.monotonic()
            if found["status"] != "none" or left <= 0:
                return found
            with suppress(TimeoutError):
                await asyncio.wait_for(queue.get(), min(left, AGAIN_SECONDS))


@router.post("/{claim}/heartbeat")
def heartbeat(desk: AtDesk, claim: Claim, given: Held) -> dict[str, Any]:
    """Keep a claim; `too_late` says who has it since."""
    return desk.heartbeat(claim, given.fence)


@router.get("/{claim}/failures/{number}")
def failure(desk: AtDesk, claim: Claim, number: Number, part: Part = 1) -> dict[str, Any]:
    """One failure in full, in pages."""
    return desk.failure(claim, number, part)


@router.post("/{claim}/submit")
def submit(desk: AtDesk, claim: Claim, given: Fix, key: Key) -> dict[str, Any]:
    """Hand in a fix: `accepted`, `unchanged`, `refused` or `too_late`, with reasons."""
    return desk.submit(claim, given.fence, given.patch, given.summary, key, given.revision)


@router.post("/{claim}/decline")
def decline(desk: AtDesk, claim: Claim, given: Declined, key: Key) -> dict[str, Any]:
    """Say that there will be no fix, and why: a person decides, and no iteration is counted."""
    return desk.decline(claim, given.fence, given.kind, given.text, key)
