"""Connections of the server: silent ones are closed, and few are kept: a server that can open no other file ends."""

import resource
from asyncio import Transport

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self.loop.call_later(HEAD_SECONDS if len(self.connections) <= MOST else 0, self._end_if_silent)

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()
