"""Connections of the server: silent ones are closed, and few are kept: a server that can open no other file ends."""

import os
import resource
import signal
import socket
from asyncio import Transport
from types import FrameType

from fastapi import FastAPI
from uvicorn import Config, Server
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from fixloop.errors import ExitCode

HEAD_SECONDS = 10.0
MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self.loop.call_later(HEAD_SECONDS if len(self.connections) <= MOST else 0, self._end_if_silent)

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


class _Server(Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop when the last answer was sent; at a second Ctrl-C at once."""
        if self.should_exit and sig == signal.SIGINT:
            os._exit(ExitCode.INTERRUPTED)
        super().handle_exit(sig, frame)


def bound(app: FastAPI, host: str, port: int) -> tuple[Server, socket.socket]:
    """A server for the application, and the socket on which clients already wait for it."""
    config = Config(
        app, host, port, log_level="warning", access_log=False, server_header=False, proxy_headers=False
    )
    # So many are accepted before the first of them is looked at.
    config.http, config.backlog = Connection, 100
    listening = config.bind_socket()
    # Its connections inherit it. asyncio sets it only if a socket names its protocol, and this one does not: the
    # second part of each answer would wait 40 ms for the acknowledgement of the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A client that connects once the address is printed waits for the start, and is not refused.
    listening.listen()
    return _Server(config), listening
