"""What routes need from a request: its caller, and the service that answers."""

import uuid
from typing import Annotated, Final, NamedTuple, cast
from urllib.parse import parse_qsl

from fastapi import Depends, Header, Request
from starlette.concurrency import run_in_threadpool

from fixloop.serve.access import ADMIN, Caller
from fixloop.serve.identity import Identities
from fixloop.serve.problems import Problem
from fixloop.serve.service import Service
from fixloop.serve.targets import Targets
from fixloop.store.webhooks import Webhooks

_FORM: Final = "application/x-www-form-urlencoded"
_MOST_BYTES: Final = 1024 * 1024
_MOST_FIELDS: Final = 100
"""A form is read before its sender is known, and nothing else is served meanwhile: 8 MiB of `&` take seconds."""


async def body_of(request: Request) -> bytes:
    return await request.body()


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form; none if the body is something else. Problem: it has too many."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip()
    body = await request.body() if kind == _FORM else b""
    if len(body) > _MOST_BYTES or body.count(b"&") >= _MOST_FIELDS:
        raise Problem("too-large", f"a form may have {_MOST_FIELDS} fields and {_MOST_BYTES:,} bytes")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def service_of(request: Request) -> Service:
    return cast(Service, request.app.state.service)


def identities_of(request: Request) -> Identities:
    return cast(Identities, request.app.state.identities)


class Hooks(NamedTuple):
    """Outgoing and incoming events."""

    webhooks: Webhooks
    targets: Targets


def hooks_of(request: Request) -> Hooks:
    return cast(Hooks, request.app.state.hooks)


def notices_for(caller: Caller, service: Service, hooks: Hooks) -> list[dict[str, str]]:
    """Items that need attention besides waiting ones: disabled webhooks, and waivers that run out."""
    broken = hooks.webhooks.disabled() if caller.may(ADMIN) else []
    mine = [each.notice for each in broken if caller.covers(each.projects)]
    return mine + [each.notice for each in service.waivers(caller)]


async def known_caller(request: Request) -> Caller:
    # While Redis is frozen, no caller has to wait for it.
    service_of(request).follower.check()
    form = await form_of(request)
    return await run_in_threadpool(identities_of(request).caller, request, form.get("csrf", ""))


def once(
    key: Annotated[
        str,
        Header(alias="Idempotency-Key", max_length=200, description="A repetition gets the first answer."),
    ] = "",
) -> str:
    """The key of a request, a new one if it has none."""
    return key or uuid.uuid4().hex


Form = Annotated[dict[str, str], Depends(form_of)]
Known = Annotated[Caller, Depends(known_caller)]
"""The caller of the request; an unknown caller gets a Problem."""
Hooked = Annotated[Hooks, Depends(hooks_of)]
Serving = Annotated[Service, Depends(service_of)]
Key = Annotated[str, Depends(once)]
"""The request's Idempotency-Key."""
