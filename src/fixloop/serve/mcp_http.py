"""`/mcp`: the tools for agents elsewhere, over HTTP. Requests are independent, so any replica can answer them.

Only tokens are accepted: a browser sends its cookie along with requests of other sites.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from fastapi import Request
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from fixloop.serve.access import Caller
from fixloop.serve.identity import Identities
from fixloop.serve.problems import Problem
from fixloop.serve.service import Service

PATH: Final = "/mcp"
_CALLER: ContextVar[Caller] = ContextVar("caller")


class McpEndpoint:
    """The protocol's endpoint; a request's token names the caller."""

    def __init__(self, service: Service, identities: Identities, most_bytes: int) -> None:
        self._service, self._identities, self._most_bytes = service, identities, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.follower.check()
        request = Request(scope)
        if not request.headers.get("Authorization", "").lower().startswith("bearer "):
            raise Problem("not-signed-in", f"{PATH} needs the token of an agent")
        _CALLER.set(await run_in_threadpool(self._identities.caller, request))
        self._wanted.set()
        await (await asyncio.shield(self._app))(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Must run while requests arrive."""
        self._wanted, self._app = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(self._serve(self._app))
            yield
            serving.cancel()

    async def _serve(self, made: "asyncio.Future[Starlette]") -> None:
        await self._wanted.wait()
        try:
            app = await run_in_threadpool(self._make)
        except Exception as error:
            made.set_exception(error)
            return
        async with app.router.lifespan_context(app):
            made.set_result(app)
            await asyncio.Event().wait()

    def _make(self) -> Starlette:
        # Imported late: without the SDK, a server starts in half of the time.
        from mcp.server.transport_security import TransportSecuritySettings

        from fixloop.serve.mcp_tools import server_of

        server = server_of(self._service, _CALLER.get, with_check=self._service.has_checkout)
        return server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=self._most_bytes,
            # Host names are checked for all routes alike.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
