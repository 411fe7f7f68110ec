"""The clocks of an embedded Redis: the workflows they run for, and the start of the process that runs them.

Its access to Redis is small because the timekeeper, `workers/recovery/timekeeper.py`, has to be; a project has one.
"""

import json
import socket
import subprocess
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

import hiredis

from fixloop.errors import InfrastructureError
from fixloop.files.locks import Lock
from fixloop.machine.attached import launching
from fixloop.machine.owner import identity
from fixloop.servers.keeper import password_in
from fixloop.servers.redis_place import Place
from fixloop.store.keys import SHARDS, shard_keys, workflow_key_prefix
from fixloop.store.limits import HORIZON_SECONDS, MOST_PER_SWEEP, SHARD_LEASE_SECONDS
from fixloop.store.scripts import source

LOCK: Final = "timekeeper.lock"
"""Next to the embedded Redis's data; held by the only timekeeper."""
TELLING: Final = ("deliver", "escalate", "notify")
"""The steps that only notify somebody; a timekeeper has them done."""
RECURRING: Final = ("attend",)
"""The steps that recur while a workflow lives."""
ANSWER_SECONDS: Final = 3.0
START_SECONDS: Final = 10.0


class Kept(NamedTuple):
    """A workflow that only waits for an outsider."""

    workflow: str
    shard: int
    due: float
    """The time until its earliest deadline, in seconds of engine time; infinite without one."""
    tells: bool
    """Whether a notification can be sent at once."""


class Clocks:
    """A timekeeper's requests to the embedded Redis; every call is one round trip per shard."""

    def __init__(self, path: str, password: str = "") -> None:
        self._owner = identity()
        self._replies = hiredis.Reader()
        self._connection = socket.socket(socket.AF_UNIX)
        try:
            self._connection.settimeout(ANSWER_SECONDS)
            self._connection.connect(path)
            if password:
                self._ask("AUTH", password)
        except (OSError, InfrastructureError):
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def kept(self) -> list[Kept]:
        """The workflows whose clocks run without a worker."""
        steps = [json.dumps(dict.fromkeys(names, True)) for names in (TELLING, RECURRING)]
        found = []
        for shard in range(SHARDS):
            clock, each = self._run("waiting", shard, workflow_key_prefix(shard), *steps)
            found += [
                Kept(name.decode(), shard, float(due or "inf") - float(clock), bool(tells))
                for name, due, tells in each
            ]
        return found

    def sweep(self, shard: int) -> bool:
        """
        Advance a shard's clock; False if a worker's sweeper does it. No deadline is handed out.

        Tickets that the sweep offers again are hinted by the next worker's sweeper, which finds them unheard.
        """
        limits = (SHARD_LEASE_SECONDS, HORIZON_SECONDS, MOST_PER_SWEEP, 0)
        mine, *_ = self._run("sweep", shard, self._owner, *limits, workflow_key_prefix(shard), "[]")
        return bool(mine)

    def _run(self, script: str, shard: int, *arguments: object) -> Sequence[Any]:
        names = shard_keys(shard)
        answer: Sequence[Any] = self._ask("EVAL", source(script), len(names), *names, *map(str, arguments))
        return answer

    def _ask(self, *words: Any) -> Any:
        self._connection.sendall(hiredis.pack_command(words))
        while (reply := self._replies.gets()) is False:
            data = self._connection.recv(65_536)
            if not data:
                raise ConnectionError("Redis closed the connection")
            self._replies.feed(data)
        if isinstance(reply, Exception):
            raise InfrastructureError(f"the embedded Redis cannot serve now: {reply}")
        return reply


def keep_time(place: Place) -> int:
    """Start a timekeeper for a Redis that the caller holds; its process id, or 0 if there is one or nothing waits."""
    with closing(Lock(place.data / LOCK)) as charge:
        if not charge.take():
            return 0
        with closing(Clocks(str(place.recorded_socket()), password_in(place.data))) as clocks:
            if not clocks.kept():
                return 0
        with closing(Lock(place.data / "users.lock")) as user:
            user.take(shared=True)
            # Both locks are passed on, so that there is always a timekeeper and a user of the Redis.
            given = {"project": str(place.project), "charge": charge.descriptor, "user": user.descriptor}
            command = launching("keep", json.dumps(given))
            with (place.data / "timekeeper.log").open("ab") as log:
                # It leaves this process's tree and session, prints its id and continues.
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    pass_fds=(charge.descriptor, user.descriptor),
                    start_new_session=True,
                    timeout=START_SECONDS,
                    check=False,
                )
    if not done.stdout.strip().isdigit():
        raise InfrastructureError(f"no timekeeper could be started; see {place.data / 'timekeeper.log'}")
    return int(done.stdout)
