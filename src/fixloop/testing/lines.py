"""The lines by which hosts reach Redis in a chaos run, and which form of them: cables between network namespaces, or
Unix sockets. Both end at the relay, which sees what passes; they differ in how they are cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol, get_args

from fixloop.errors import UsageError
from fixloop.testing.cables import Unavailable, cables
from fixloop.testing.processes import Access
from fixloop.testing.relay import Relay

Network = Literal["auto", "namespaces", "relay"]
NETWORKS: Final[tuple[Network, ...]] = get_args(Network)


class Line(Protocol):
    """How one host reaches Redis."""

    @property
    def access(self) -> Access:
        """Where its processes find Redis."""

    @property
    def is_away(self) -> bool:
        """Whether nothing passes."""

    @property
    def noticed(self) -> int:
        """How often somebody was held up because it was away; it only grows."""

    async def open(self, relay: Relay) -> None:
        """Let it end at the relay."""

    def cut(self) -> None:
        """Nothing passes, no connection can be made, and those that were there are gone."""

    def silence(self) -> None:
        """Nothing passes, and no connection ends."""

    def mend(self) -> None:
        """As it was before."""


class Lines(NamedTuple):
    """Those of all hosts."""

    by_host: Mapping[str, Line]
    told: str
    """What they are, and why they are not what they might be."""


class SocketLine:
    """A Unix socket; it is the relay that cuts it."""

    def __init__(self, host: str, path: Path) -> None:
        self.access = Access(f"unix://{path}")
        self._host = host
        self._path = path
        self._relay: Relay | None = None

    async def open(self, relay: Relay) -> None:
        """See `Line`."""
        self._relay = relay
        await relay.listen(self._host, self._path)

    @property
    def is_away(self) -> bool:
        """See `Line`."""
        return self._opened.is_away(self._host)

    @property
    def noticed(self) -> int:
        """Connections that were refused, and what came too late."""
        return self._opened.refused[self._host] + self._opened.withheld[self._host]

    def cut(self) -> None:
        """See `Line`; new connections are refused."""
        self._opened.cut(self._host)

    def silence(self) -> None:
        """See `Line`."""
        self._opened.silence(self._host)

    def mend(self) -> None:
        """See `Line`."""
        self._opened.mend(self._host)

    @property
    def _opened(self) -> Relay:
        if self._relay is None:
            raise RuntimeError(f"the line of {self._host} was not opened")
        return self._relay


@contextmanager
def laid(network: Network, hosts: Sequence[str], sockets: Path) -> Iterator[Lines]:
    """
    A line for each host, in the form that is asked for; `auto` takes namespaces where they can be made.

    Args:
        sockets: a folder for Unix sockets.

    Raises:
        UsageError: namespaces are asked for and cannot be made.
    """
    with ExitStack() as ending:
        yield _lines(network, hosts, sockets, ending)


def _lines(network: Network, hosts: Sequence[str], sockets: Path, ending: ExitStack) -> Lines:
    by_relay = {host: SocketLine(host, sockets / f"{host}.sock") for host in hosts}
    if network == "relay":
        return Lines(by_relay, "by the relay")
    try:
        return Lines(ending.enter_context(cables(hosts)), "by the links of network namespaces")
    except Unavailable as error:
        reason = f"no network namespace can be made here: {error}"
    if network == "namespaces":
        raise UsageError(f"{reason}; take --network relay")
    return Lines(by_relay, f"by the relay; {reason}")
