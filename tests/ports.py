"""Ports of loopback for the servers of tests: chosen here, bound by them a moment later."""

import os
import socket
from itertools import count
from typing import Final

# Below those that the kernel gives to outgoing connections, which could take one in between. Processes that test at
# the same time begin far apart.
_FIRST: Final = 10_000
_COUNT: Final = 20_000
_offsets: Final = count(os.getpid() * 7919)


def free_port() -> int:
    """One that nobody has, and nobody else here asks for soon."""
    while True:
        port = _FIRST + next(_offsets) % _COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
