"""`/mcp`: the tools for agents elsewhere, over HTTP. Requests are independent, so any replica can answer them.

Only tokens are accepted: a browser sends its cookie along with requests of other sites.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from fastapi import Request
from mcp.server.transport_security import TransportSecuritySettings
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from fixloop.serve.access import Caller
from fixloop.serve.identity import Identities
from fixloop.serve.mcp_tools import server_of
from fixloop.serve.problems import Problem
from fixloop.serve.service import Service

PATH: Final = "/mcp"
_CALLER: ContextVar[Caller] = ContextVar("caller")


class McpEndpoint:
    """The protocol's endpoint; a request's token names the caller."""

    def __init__(self, service: Service, identities: Identities, most_bytes: int) -> None:
        self._service, self._identities = service, identities
        # Host names are checked for all routes alike.
        unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = server_of(service, _CALLER.get, with_check=service.has_checkout).streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=most_bytes,
            transport_security=unguarded,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.follower.check()
        request = Request(scope)
        if not request.headers.get("Authorization", "").lower().startswith("bearer "):
            raise Problem("not-signed-in", f"{PATH} needs the token of an agent")
        _CALLER.set(await run_in_threadpool(self._identities.caller, request))
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Must run while requests arrive."""
        async with self._app.router.lifespan_context(self._app):
            yield
