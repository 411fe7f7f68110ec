"""Hosts with a network of their own: a namespace for each, and a cable (a veth pair) to the relay's.

No namespace has a name, and nothing of the machine's own network is touched: they are held by a shell each, which ends
with this process, and the cables go with them. Names and addresses are the same in every run and cannot meet.
Root only, with util-linux and iproute2.
"""

import asyncio
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from fixloop.testing.processes import Access
from fixloop.testing.relay import Relay

PORT: Final = 6379
_NOTICING: Final = {"snmp": ("Ip", "OutNoRoutes"), "netstat": ("TcpExt", "TCPTimeouts")}
"""What the kernel counts, by its file in `/proc/net`, for a sender without a way, and for one who hears nothing."""
# One command a line, without quotes; each is answered by a line with its exit code and what it said.
_SHELL: Final = "while read -r line; do said=$($line 2>&1); echo $? $said; done"
_LISTENING: Final = (
    "import socket, sys; listener = socket.create_server((sys.argv[1], int(sys.argv[2])));"
    "socket.send_fds(socket.socket(fileno=int(sys.argv[3])), [b'.'], [listener.fileno()])"
)


class Unavailable(Exception):
    """No namespace or no link can be made; says why."""


class Room:
    """A network namespace without a name, for as long as it is not closed and this process lives."""

    def __init__(self) -> None:
        """
        Make it, with its loopback up.

        Raises:
            Unavailable: it cannot be made.
        """
        try:
            self._shell = subprocess.Popen(
                ["unshare", "--net", "/bin/sh", "-f", "-c", _SHELL],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except OSError as error:
            raise Unavailable(f"unshare: {error.strerror}") from None
        try:
            self.do("ip link set lo up")
        except Unavailable:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process that holds it."""
        return self._shell.pid

    @property
    def entering(self) -> tuple[str, ...]:
        """The words before a command that is to run in it."""
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net", "--")

    def do(self, command: str) -> None:
        """
        Run a command of plain words in it.

        Raises:
            Unavailable: it failed.
        """
        said = ""
        with suppress(OSError):
            print(command, file=self._shell.stdin, flush=True)
            said = self._shell.stdout.readline() if self._shell.stdout else ""
        code, _, told = said.strip().partition(" ")
        if code != "0":
            # What unshare itself says has no exit code in front of it.
            raise Unavailable((told if code.isdigit() else said.strip()) or "unshare ended without a word")

    def listen(self, address: str) -> socket.socket:
        """A socket that takes connections in it."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            words = [sys.executable, "-S", "-c", _LISTENING, address, str(PORT), str(theirs.fileno())]
            subprocess.run([*self.entering, *words], pass_fds=[theirs.fileno()], check=True)
            _, [descriptor], _, _ = socket.recv_fds(ours, 1, 1)
        return socket.socket(fileno=descriptor)

    def close(self) -> None:
        """It is gone as soon as nobody is in it any more."""
        with suppress(BrokenPipeError):
            self._shell.communicate()


class Cable:
    """The line of one host that has a room of its own."""

    def __init__(self, host: str, number: int, room: Room, middle: Room) -> None:
        """
        Lay it.

        Raises:
            Unavailable: it cannot be made.
        """
        self._host = host
        self._room = room
        self._middle = middle
        self._end = f"cable{number}"
        self._address = f"10.0.{number}.1"
        self._relay: Relay | None = None
        self._is_away = False
        middle.do(f"ip link add {self._end} type veth peer name cable netns {room.pid}")
        middle.do(f"ip address add {self._address}/30 dev {self._end}")
        room.do(f"ip address add 10.0.{number}.2/30 dev cable")
        self.mend()

    @property
    def access(self) -> Access:
        """See `Line`."""
        return Access(f"redis://{self._address}:{PORT}", self._room.entering)

    @property
    def is_away(self) -> bool:
        """See `Line`."""
        return self._is_away

    @property
    def noticed(self) -> int:
        """By the kernel's own count for this host."""
        place = Path(f"/proc/{self._room.pid}/net")
        return sum(_counted((place / file).read_text(), *names) for file, names in _NOTICING.items())

    async def open(self, relay: Relay) -> None:
        """See `Line`."""
        self._relay = relay
        await relay.listen(self._host, self.listen(), self._peer)

    def listen(self) -> socket.socket:
        """A socket at the other end; whoever closes a connection of it without a link is not heard of."""
        listener = self._middle.listen(self._address)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return listener

    def cut(self) -> None:
        """
        The host's own end is down: there is no way to anywhere.

        The other end forgets its connections without a word, as a firewall does, or a Redis that moved: who waits on
        one is not told when the link is up again.
        """
        self._is_away = True
        self._room.do("ip link set cable down")
        if self._relay is not None:
            self._relay.drop(self._host)

    def silence(self) -> None:
        """The other end is down: what is sent is lost, and sent again by the kernel."""
        self._is_away = True
        self._middle.do(f"ip link set {self._end} down")

    def mend(self) -> None:
        """Both ends are up."""
        self._room.do("ip link set cable up")
        self._middle.do(f"ip link set {self._end} up")
        self._is_away = False

    def _peer(self, writer: asyncio.StreamWriter) -> int:
        port: int = writer.get_extra_info("peername")[1]
        return _holder(self._room.pid, port)


@contextmanager
def cables(hosts: Sequence[str]) -> Iterator[Mapping[str, Cable]]:
    """
    A room for each host with a cable to a common one, as long as the block lasts.

    Raises:
        Unavailable: this user, or this machine, cannot make them.
    """
    with ExitStack() as ending:
        middle = _room(ending)
        yield {host: Cable(host, number, _room(ending), middle) for number, host in enumerate(hosts, 1)}


def _room(ending: ExitStack) -> Room:
    room = Room()
    ending.callback(room.close)
    return room


def _counted(table: str, protocol: str, name: str) -> int:
    """From pairs of lines, the names and the numbers of one protocol."""
    named, counted = (line.split() for line in table.splitlines() if line.startswith(f"{protocol}:"))
    return int(dict(zip(named, counted, strict=True))[name])


def _holder(within: int, port: int) -> int:
    """
    The process that has a TCP connection from a port, 0 when it is gone.

    Args:
        within: a process of the same network namespace.
    """
    wanted = f"socket:[{_inode(within, port)}]"
    place = os.readlink(f"/proc/{within}/ns/net")
    # Whoever was forked with it has it, too, and came later.
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/net") == place and wanted in _open_files(pid):
                return pid
    return 0


def _inode(within: int, port: int) -> str:
    for line in Path(f"/proc/{within}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if int(words[1].rpartition(":")[2], 16) == port:
            return words[9]
    return ""


def _open_files(pid: int) -> Iterator[str]:
    for number in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            yield os.readlink(f"/proc/{pid}/fd/{number}")
