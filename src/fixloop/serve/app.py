"""The application: every request is limited in size, authenticated, and answered in the same form, on every route."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fixloop import __version__
from fixloop.errors import FixloopError
from fixloop.serve import (
    api,
    link_pages,
    live,
    metrics,
    pages,
    runs_api,
    signing_in,
    webhook_api,
    work_api,
    workflow_pages,
)
from fixloop.serve.identity import Identities
from fixloop.serve.mcp_http import PATH, McpEndpoint
from fixloop.serve.problems import Problem, problem_of
from fixloop.serve.rendering import wants_page
from fixloop.serve.requests import Hooks
from fixloop.serve.service import Service

MOST_BYTES: Final = 8 * 1024 * 1024
"""The limit of a request's body."""
DRAINED_BYTES: Final = 64 * 1024 * 1024
"""How much of a larger body is read before the connection is closed."""
_NAMES: Final = {404: "not-found", 405: "not-allowed-here", 413: "too-large"}
_HEADERS: Final = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
}
"""Added to every response that does not set them."""


def create_app(
    service: Service,
    identities: Identities,
    hooks: Hooks,
    hosts: Sequence[str] = ("*",),
    *,
    is_secure: bool = False,
) -> FastAPI:
    """The whole application. `hosts` are the names it answers to, against DNS rebinding to a loopback address;
    `is_secure` says that browsers can only reach it by TLS."""
    app = FastAPI(
        title="fixloop",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=_lifespan,
    )
    app.state.service, app.state.identities, app.state.hooks = service, identities, hooks
    app.state.is_secure = is_secure
    for_programs = (api, runs_api, work_api, webhook_api, live, metrics)
    for_browsers = (pages, workflow_pages, link_pages, signing_in)
    for each in (*for_programs, *for_browsers):
        # The same routes in each application: `include_router` would make every one again on its first request.
        app.router.routes.extend(each.router.routes)
    app.state.mcp = McpEndpoint(service, identities, MOST_BYTES) if find_spec("mcp") is not None else None
    if app.state.mcp is not None:
        app.router.routes.append(Route(PATH, endpoint=app.state.mcp))
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(FixloopError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unrouted)
    app.add_middleware(_Bounded)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    async with AsyncExitStack() as running:
        running.enter_context(service.follower.running())
        if app.state.mcp is not None:
            await running.enter_async_context(app.state.mcp.running())
        # Computed ahead, so that the first caller does not wait for lists that are the same for all.
        listing = asyncio.create_task(run_in_threadpool(service.make_lists))
        yield
        await listing


def _answer(request: Request, problem: Problem) -> Response:
    if wants_page(request):
        return pages.refusal(request, problem)
    return JSONResponse(problem.document(), problem.status, problem.headers, "application/problem+json")


async def _refused(request: Request, error: Exception) -> Response:
    return _answer(request, problem_of(error))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [{"pointer": "/".join(map(str, each["loc"])), "detail": each["msg"]} for each in error.errors()]
    first = f"{found[0]['pointer']}: {found[0]['detail']}" if found else "it cannot be read"
    return _answer(request, Problem("invalid", first, errors=found))


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = f"{request.method} {request.url.path[:200]}: {error.detail}"
    answer = _answer(request, Problem(_NAMES.get(error.status_code, "invalid"), said))
    answer.headers.update(error.headers or {})
    return answer


class _Bounded:
    """Refuses bodies that are too large, and adds missing headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken = 0
        told = dict(scope["headers"]).get(b"content-length", b"0")

        async def receive_bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise Problem("too-large", f"a body may have {MOST_BYTES:,} bytes")
            return message

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in _HEADERS.items() if name not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        if told.isdigit() and int(told) > MOST_BYTES:
            problem = Problem("too-large", f"a body may have {MOST_BYTES:,} bytes, not {int(told):,}")
            # A client that is answered while it is sending may see a broken connection and no answer.
            while taken < DRAINED_BYTES and (message := await receive()).get("more_body"):
                taken += len(message["body"])
            await _answer(Request(scope), problem)(scope, receive, send_guarded)
            return
        await self._app(scope, receive_bounded, send_guarded)
