"""The networks between hosts and Redis in a chaos run: a network namespace for each host, or Unix sockets.

Both end at the relay, which sees the traffic; they differ in how they are cut. A veth pair links each namespace to the
relay's; a shell that ends with this process holds it. The machine's own network stays unchanged. Namespaces need root,
util-linux and iproute2.
"""

import asyncio
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from fixloop.errors import UsageError
from fixloop.testing.processes import Access
from fixloop.testing.relay import Relay

Network = Literal["auto", "namespaces", "relay"]
NETWORKS: Final[tuple[Network, ...]] = get_args(Network)
PORT: Final = 6379
_COUNTERS: Final = {"snmp": ("Ip", "OutNoRoutes"), "netstat": ("TcpExt", "TCPTimeouts")}
"""The kernel's counters, by file in `/proc/net`, for packets without a route and for missing replies."""
# Reads one command per line, without quotes; answers each with a line of its exit code and output.
_SHELL: Final = "while read -r line; do said=$($line 2>&1); echo $? $said; done"
_LISTENING: Final = (
    "import socket, sys; listener = socket.create_server((sys.argv[1], int(sys.argv[2])));"
    "socket.send_fds(socket.socket(fileno=int(sys.argv[3])), [b'.'], [listener.fileno()])"
)


class SocketNetwork:
    """A Unix socket, cut by the relay."""

    _relay: Relay
    """Set when it is opened."""

    def __init__(self, host: str, path: Path) -> None:
        self.access = Access(f"unix://{path}")
        self._host = host
        self._path = path

    async def open(self, relay: Relay) -> None:
        self._relay = relay
        await relay.listen(self._host, self._path)

    @property
    def is_away(self) -> bool:
        return self._relay.is_away(self._host)

    @property
    def noticed(self) -> int:
        """The number of refused connections and late deliveries."""
        return self._relay.refused[self._host] + self._relay.withheld[self._host]

    def cut(self) -> None:
        self._relay.cut(self._host)

    def silence(self) -> None:
        self._relay.silence(self._host)

    def mend(self) -> None:
        self._relay.mend(self._host)


class Unavailable(Exception):
    """No namespace or link can be created; gives the reason."""


class Namespace:
    """A network namespace without a name, until it is closed or this process ends."""

    def __init__(self) -> None:
        try:
            words = ["unshare", "--net", "/bin/sh", "-f", "-c", _SHELL]
            self._shell = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError as error:
            raise Unavailable(f"unshare: {error.strerror}") from None
        self.pid = self._shell.pid
        self.entering = ("nsenter", f"--net=/proc/{self.pid}/ns/net", "--")
        try:
            self.do("ip link set lo up")
        except Unavailable:
            self.close()
            raise

    def do(self, command: str) -> None:
        """Run a command that has no quotes; raises Unavailable if it fails."""
        reply = ""
        with suppress(OSError):
            print(command, file=self._shell.stdin, flush=True)
            reply = self._shell.stdout.readline() if self._shell.stdout else ""
        code, _, output = reply.strip().partition(" ")
        if code != "0":
            # A message of `unshare` itself has no exit code.
            raise Unavailable((output if code.isdigit() else reply.strip()) or "unshare ended without a word")

    def listen(self, address: str) -> socket.socket:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            words = [sys.executable, "-S", "-c", _LISTENING, address, str(PORT), str(theirs.fileno())]
            subprocess.run([*self.entering, *words], pass_fds=[theirs.fileno()], check=True)
            _, [descriptor], _, _ = socket.recv_fds(ours, 1, 1)
        return socket.socket(fileno=descriptor)

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._shell.communicate()


class NamespaceNetwork:
    def __init__(self, host: str, number: int, namespace: Namespace, middle: Namespace) -> None:
        self._host = host
        self._namespace = namespace
        self._middle = middle
        self._interface = f"cable{number}"
        self._address = f"10.0.{number}.1"
        self.access = Access(f"redis://{self._address}:{PORT}", namespace.entering)
        self._relay: Relay | None = None
        self.is_away = False
        middle.do(f"ip link add {self._interface} type veth peer name cable netns {namespace.pid}")
        middle.do(f"ip address add {self._address}/30 dev {self._interface}")
        namespace.do(f"ip address add 10.0.{number}.2/30 dev cable")
        self.mend()

    @property
    def noticed(self) -> int:
        """The kernel's own count for this host."""
        total = 0
        for file, (protocol, name) in _COUNTERS.items():
            table = Path(f"/proc/{self._namespace.pid}/net/{file}").read_text()
            # Two lines for each protocol: the names, and the numbers.
            named, counted = (line.split() for line in table.splitlines() if line.startswith(f"{protocol}:"))
            total += int(dict(zip(named, counted, strict=True))[name])
        return total

    async def open(self, relay: Relay) -> None:
        self._relay = relay

        def peer(writer: asyncio.StreamWriter) -> int:
            return _connected_from(writer.get_extra_info("peername")[1], self._namespace.pid)

        await relay.listen(self._host, self.listen(), peer)

    def listen(self) -> socket.socket:
        """A listening socket at the relay's end; a close while the link is down does not reach the peer."""
        listener = self._middle.listen(self._address)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return listener

    def cut(self) -> None:
        """Remove all routes; the relay's end drops its connections silently, like a firewall."""
        self.is_away = True
        self._namespace.do("ip link set cable down")
        if self._relay is not None:
            self._relay.drop(self._host)

    def silence(self) -> None:
        """Take the relay's end down: packets are lost, and the kernel retransmits them."""
        self.is_away = True
        self._middle.do(f"ip link set {self._interface} down")

    def mend(self) -> None:
        self._namespace.do("ip link set cable up")
        self._middle.do(f"ip link set {self._interface} up")
        self.is_away = False


HostNetwork = SocketNetwork | NamespaceNetwork
"""How one host reaches Redis; `cut` ends its connections, `silence` ends none, `mend` restores it."""


class Networks(NamedTuple):
    by_host: Mapping[str, HostNetwork]
    told: str
    """Their kind, and the reason if it is not the preferred one."""


@contextmanager
def namespace_networks(hosts: Sequence[str]) -> Iterator[Mapping[str, NamespaceNetwork]]:
    """A namespace for each host, linked to a common one, until the block ends. Raises Unavailable."""
    with ExitStack() as ending:
        middle, *others = (ending.enter_context(closing(Namespace())) for _ in ("relay", *hosts))
        yield {
            host: NamespaceNetwork(host, number, namespace, middle)
            for number, (host, namespace) in enumerate(zip(hosts, others, strict=True), 1)
        }


def _connected_from(port: int, within: int) -> int:
    """The process in the namespace of process `within` that has a TCP connection from a port; 0 if it is gone."""
    rows = map(str.split, Path(f"/proc/{within}/net/tcp").read_text().splitlines()[1:])
    inode = next((row[9] for row in rows if int(row[1].rpartition(":")[2], 16) == port), "")
    place = os.readlink(f"/proc/{within}/ns/net")
    # Forked children also have it, but have higher process ids.
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/net") != place:
                continue
            for number in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{number}") == f"socket:[{inode}]":
                        return pid
    return 0


@contextmanager
def networks(network: Network, hosts: Sequence[str], sockets: Path) -> Iterator[Networks]:
    """The networks of hosts; `auto` uses namespaces if possible. Raises UsageError if required but impossible."""
    by_relay = {host: SocketNetwork(host, sockets / f"{host}.sock") for host in hosts}
    with ExitStack() as ending:
        if network == "relay":
            found = Networks(by_relay, "by the relay")
        else:
            try:
                by_links = ending.enter_context(namespace_networks(hosts))
                found = Networks(by_links, "by the links of network namespaces")
            except Unavailable as error:
                reason = f"no network namespace can be made here: {error}"
                if network == "namespaces":
                    raise UsageError(f"{reason}; take --network relay") from None
                found = Networks(by_relay, f"by the relay; {reason}")
        yield found
