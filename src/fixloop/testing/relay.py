"""A relay between workers and Redis: a socket for each host, with a witness that sees and may change the traffic.

The peer's process id is known for each connection, so a claim, a commit or a hint on the wire shows which process is at
which boundary, without extra code in the worker. The relay forwards bytes; the witness interprets them.
"""

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import hiredis

from fixloop.testing.wire import Request, Requests, is_whole

CHUNK: Final = 1 << 16
Peer = Callable[[asyncio.StreamWriter], int]
"""The process at the other end of a connection; 0 if it is gone."""


class Cut(Exception):
    """The connection ends here: nothing more is passed on."""


@dataclass(eq=False)
class Link:
    """One connection of a worker's process."""

    host: str
    pid: int
    unanswered: list[Request] = field(default_factory=list)
    """Requests sent and not yet answered."""
    pops: bool = False
    """Whether the connection waits for messages."""


class Witness(Protocol):
    """Watches the links, and decides what is passed on."""

    def sent(self, link: Link, requests: list[Request], data: bytes) -> tuple[bytes, bytes]:
        """Before requests reach Redis: what to pass on, and an immediate reply; raises Cut to close the link."""

    def answered(self, link: Link, data: bytes) -> bytes:
        """Before replies to `link.unanswered` reach the client: what to pass on; raises Cut to close the link."""


class Relay:
    def __init__(self, redis_socket: Path, witness: Witness) -> None:
        self._redis = redis_socket
        self._witness = witness
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.StreamWriter, Link] = {}
        self._cut: set[str] = set()
        self._silent: dict[str, asyncio.Event] = {}
        self.refused: Counter[str] = Counter()
        """By host, the connections refused while it was cut off."""
        self.withheld: Counter[str] = Counter()
        """By host, the number of deliveries delayed while it was silent."""

    async def listen(self, host: str, door: Path | socket.socket, peer: Peer | None = None) -> None:
        """Accept connections of `host` at a Unix socket's path, or at a socket whose peer `peer` identifies."""

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            link = Link(host, (peer or _peer)(writer))
            self._open[writer] = link
            try:
                with contextlib.suppress(OSError, Cut):
                    if host in self._cut:
                        self.refused[host] += 1
                    elif link.pid:
                        await self._join(link, reader, writer)
            finally:
                writer.transport.abort()
                self._open.pop(writer, None)

        self._servers.append(
            await asyncio.start_unix_server(take, door, limit=CHUNK)
            if isinstance(door, Path)
            else await asyncio.start_server(take, sock=door, limit=CHUNK)
        )

    def cut(self, host: str) -> None:
        """End all connections of `host`, and refuse new ones until `mend`."""
        self._cut.add(host)
        self.drop(host)

    def drop(self, host: str) -> None:
        for writer, link in list(self._open.items()):
            if link.host == host:
                writer.transport.abort()

    def is_away(self, host: str) -> bool:
        return host in self._cut or host in self._silent

    def silence(self, host: str) -> None:
        """Hold back all data until `mend`, without ending connections."""
        self._silent[host] = asyncio.Event()

    def mend(self, host: str) -> None:
        self._cut.discard(host)
        silence = self._silent.pop(host, None)
        if silence is not None:
            silence.set()

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in list(self._open):
            writer.transport.abort()
        while self._open:
            await asyncio.sleep(0.01)

    async def _join(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_redis, to_redis = await asyncio.open_unix_connection(self._redis, limit=CHUNK)

        async def pass_requests() -> None:
            requests = Requests()
            while data := await reader.read(CHUNK):
                await self._wait_while_silent(link.host)
                found = requests.read(data)
                passed, answer = self._witness.sent(link, found, data) if found else (data, b"")
                if passed:
                    to_redis.write(passed)
                    await to_redis.drain()
                if answer:
                    writer.write(answer)

        async def pass_answers() -> None:
            held = b""
            while data := await from_redis.read(CHUNK):
                await self._wait_while_silent(link.host)
                held += data
                if link.unanswered or link.pops:
                    # Redis may send a reply in pieces, and the first may be too short to interpret.
                    if not is_whole(held):
                        continue
                    held = self._witness.answered(link, held)
                if held:
                    writer.write(held)
                    await writer.drain()
                held = b""

        ways = [asyncio.ensure_future(pass_requests()), asyncio.ensure_future(pass_answers())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_redis.transport.abort()
            for way in ways:
                way.cancel()
                with contextlib.suppress(OSError, Cut, asyncio.CancelledError, hiredis.ProtocolError):
                    await way

    async def _wait_while_silent(self, host: str) -> None:
        silence = self._silent.get(host)
        if silence is not None:
            self.withheld[host] += 1
            await silence.wait()


def _peer(writer: asyncio.StreamWriter) -> int:
    connected: socket.socket = writer.get_extra_info("socket")
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])
