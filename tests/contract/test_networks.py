"""Network namespaces of a chaos run: real links, taken down at either end. Root only."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixloop.errors import UsageError
from fixloop.testing.networks import NamespaceNetwork, Unavailable, namespace_networks, networks
from fixloop.testing.processes import comes
from fixloop.testing.relay import Link, Relay
from fixloop.testing.wire import Request

pytestmark = pytest.mark.slow

# Connects, says so, and sends what it is told to; at the end prints what it received.
CLIENT = """
import socket, sys
try:
    line = socket.create_connection((sys.argv[1], 6379), 1.0)
except OSError as error:
    sys.exit(f"refused: {error.strerror or error}")
line.settimeout(float(sys.argv[2]))
for word in sys.stdin:
    line.sendall(word.encode())
    print("sent", flush=True)
try:
    print("heard", line.recv(9).decode(), flush=True)
except TimeoutError:
    print("silence", flush=True)
"""


class Passing:
    """Lets everything pass."""

    def sent(self, link: Link, requests: list[Request], data: bytes) -> tuple[bytes, bytes]:
        return data, b""

    def answered(self, link: Link, data: bytes) -> bytes:
        return data


@pytest.fixture
def cable() -> Iterator[NamespaceNetwork]:
    try:
        with namespace_networks(["here"]) as made:
            yield made["here"]
    except Unavailable as reason:
        pytest.skip(f"no network namespace can be made here: {reason}")


@pytest.fixture
def listener(cable: NamespaceNetwork) -> Iterator[socket.socket]:
    with cable.listen() as made:
        made.settimeout(5.0)
        yield made


def client(cable: NamespaceNetwork, seconds: float = 5.0) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", CLIENT, address(cable), str(seconds)]
    return subprocess.Popen(
        [*cable.access.entering, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def address(cable: NamespaceNetwork) -> str:
    return cable.access.url.removeprefix("redis://").partition(":")[0]


def say(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    print(word, file=process.stdin, flush=True)
    assert process.stdout.readline() == "sent\n"


@pytest.mark.proves("S30")
def test_a_cut_cable_allows_no_connection_and_its_old_ones_are_forgotten(
    cable: NamespaceNetwork, listener: socket.socket
) -> None:
    waiting = client(cable, 0.5)
    taken, _ = listener.accept()
    say(waiting, "one")
    assert taken.recv(9) == b"one\n"

    cable.cut()
    taken.close()
    refused = client(cable)
    _, told = refused.communicate()
    was_noticed, was_away = cable.noticed, cable.is_away
    cable.mend()

    assert "refused: Network is unreachable" in told
    assert (was_noticed > 0, was_away, cable.is_away) == (True, True, False)
    assert waiting.communicate()[0] == "silence\n"


@pytest.mark.proves("S30")
def test_data_sent_into_a_silent_cable_arrives_when_it_is_repaired(
    cable: NamespaceNetwork, listener: socket.socket
) -> None:
    waiting = client(cable)
    taken, _ = listener.accept()
    taken.setblocking(False)

    cable.silence()
    say(waiting, "one")
    assert comes(lambda: cable.noticed > 0)
    with pytest.raises(BlockingIOError):
        taken.recv(9)
    cable.mend()
    taken.settimeout(5.0)

    assert taken.recv(9) == b"one\n"
    taken.sendall(b"two")
    assert waiting.communicate()[0] == "heard two\n"
    taken.close()


@pytest.mark.proves("S30")
def test_the_process_at_the_other_end_of_a_cable_is_known(cable: NamespaceNetwork, redis_url: str) -> None:
    async def met() -> tuple[int, list[int]]:
        relay = Relay(Path(redis_url.removeprefix("unix://")), Passing())
        await cable.open(relay)
        process = client(cable)
        give_up = time.monotonic() + 60.0
        while not (links := list(relay._open.values())) and time.monotonic() < give_up:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(process.communicate, "PING\r\n")
        await relay.close()
        return process.pid, [link.pid for link in links]

    pid, found = asyncio.run(met())

    assert found == [pid]


HOLDER = """
import os, sys
from fixloop.testing.networks import namespace_networks
with namespace_networks(["here"]) as made:
    print(os.readlink(f"/proc/{made['here'].access.entering[1].split('/')[2]}/ns/net"), flush=True)
    sys.stdin.read()
"""


@pytest.mark.proves("S30")
def test_namespaces_end_with_the_process_that_made_them(cable: NamespaceNetwork) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    namespace = holder.stdout.readline().strip()
    assert inside(namespace)

    holder.send_signal(signal.SIGKILL)
    holder.communicate()

    assert comes(lambda: not inside(namespace))


def inside(namespace: str) -> list[str]:
    """The processes in a network namespace; it has no other holders."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.readlink(process / "ns/net") == namespace:
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.proves("S30")
def test_without_namespaces_the_relay_cuts_or_the_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with networks("auto", ["here"], tmp_path) as made:
        assert made.told == (
            "by the relay; no network namespace can be made here: unshare: No such file or directory"
        )
        assert made.by_host["here"].access.url == f"unix://{tmp_path}/here.sock"
    with pytest.raises(UsageError, match="take --network relay"), networks("namespaces", ["here"], tmp_path):
        pass
