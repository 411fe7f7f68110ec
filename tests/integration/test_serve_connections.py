"""Connections of the server: who sends nothing keeps nobody else out."""

import socket
import threading
from typing import Any

import pytest
import uvicorn

from fixloop.serve import connections
from tests.fixtures.patience import slack


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo"], ids=["nothing", "half a head"])
def test_a_connection_without_a_request_is_closed(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    config = uvicorn.Config(app, "127.0.0.1", 0, http=connections.Connection, lifespan="off", log_config=None)
    server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        with socket.create_connection(listening.getsockname(), timeout=slack(5)) as silent:
            silent.sendall(sent)
            assert silent.recv(1) == b""
        with socket.create_connection(listening.getsockname(), timeout=slack(5)) as asking:
            asking.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert asking.recv(100).startswith(b"HTTP/1.1 204")
    finally:
        server.should_exit = True
        thread.join(slack(10))
