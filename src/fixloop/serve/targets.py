"""Sends requests to addresses that users named: only to the public internet, unless the target is listed.

A name's address is checked when the connection is made, and that same address is used, so a name that resolves
differently the next time gains nothing. Redirects are not followed.
"""

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

import httpcore

from fixloop.errors import UsageError

TIMEOUT_SECONDS: Final = 10.0
_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[\w.-]+|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?(?:[/?][!-~]*)?", re.ASCII
)
_NAT64: Final = ip_network("64:ff9b::/96")
_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network


class Refused(Exception):
    """The target must not be sent requests."""


class Targets:
    """The allowed targets of requests; safe to share between threads."""

    def __init__(self, listed: Iterable[str] = ()) -> None:
        """`listed` are names, addresses and networks that are allowed although they are not on the public internet."""
        self._networks: list[_Network] = []
        self._names: set[str] = set()
        for each in listed:
            try:
                self._networks.append(ip_network(each))
            except ValueError:
                self._names.add(each.lower())
        checked = _Checked(self)
        self._pool = httpcore.ConnectionPool(network_backend=checked, max_connections=20, keepalive_expiry=30)

    def check(self, url: str) -> None:
        """Check an address before it is stored. UsageError: it is no web URL, has a login, or leads inside."""
        found = _ADDRESS.fullmatch(url)
        host, port = (found["host"].strip("[]"), int(found["port"] or 443)) if found else ("", 0)
        if found is None or port > 65_535:
            told = f"{url[:200]!r} is no address for webhooks; use https://host/path, without a login"
            raise UsageError(told)
        if found["scheme"] == "http" and not self._is_listed(host):
            told = f"{url[:200]!r} is not encrypted; use https, or list {host} with --webhook-target"
            raise UsageError(told)
        try:
            self.addresses(host, port)
        except Refused as refused:
            raise UsageError(str(refused)) from None
        except (OSError, ValueError):
            # A name that does not resolve yet is checked when something is sent.
            pass

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Send a request; returns the status. Raises Refused, or OSError if nothing answered within TIMEOUT_SECONDS."""
        limits = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT_SECONDS)}
        told = list(headers.items())
        try:
            with self._pool.stream("POST", url, headers=told, content=body, extensions=limits) as response:
                # The rest of the response is not read: it may be endless.
                return response.status
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise OSError(str(error) or type(error).__name__) from None
        except httpcore.UnsupportedProtocol as error:
            raise Refused(str(error)) from None

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """The current addresses of a name. Refused: a request may not go to all of them; OSError: there is none."""
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = list(dict.fromkeys(str(each[4][0]) for each in known))
        for each in found:
            address = ip_address(each.partition("%")[0])
            if not (self._is_listed(host) or _is_public(address) or self._is_within(address)):
                told = f"{host} is {each}, which is not of the internet at large"
                raise Refused(f"{told}; list it with --webhook-target")
        return found

    def _is_listed(self, host: str) -> bool:
        if host.lower() in self._names:
            return True
        try:
            return self._is_within(ip_address(host))
        except ValueError:
            return False

    def _is_within(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


class _Checked(httpcore.SyncBackend):
    """Connects to the checked addresses."""

    def __init__(self, targets: Targets) -> None:
        super().__init__()
        self._targets = targets

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed: Exception = OSError(f"{host} stands for no address")
        for address in self._targets.addresses(host, port):
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError as error:
                failed = error
        raise failed


def _is_public(address: _Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is not None:
            return _is_public(inner)
        if address in _NAT64:
            return _is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast
