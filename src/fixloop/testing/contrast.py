"""Injures bare Celery chains by the same plan, for comparison: how many end, and what they repeat."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis
from kombu.exceptions import OperationalError

from fixloop.engine.hints import producer
from fixloop.errors import InfrastructureError
from fixloop.machine.attached import attached
from fixloop.machine.guard_program import children
from fixloop.machine.processes import variables_for
from fixloop.servers.settings import RedisUrls
from fixloop.testing.bare import QUEUE, send
from fixloop.testing.plan import VALIDATION, Plan, Schedule
from fixloop.testing.processes import Host
from fixloop.testing.site import Order, Progress, site
from fixloop.testing.wire import BEGUN, EFFECTS

PATIENCE_SECONDS: Final = 30.0
"""Longer than the redelivery of a lost message takes."""
SENDING_SECONDS: Final = 60.0
LEAST_LIMIT_SECONDS: Final = 60.0
LIMIT_TIMES: Final = 3.0
"""The time limit of the chains, as a multiple of fixloop's time."""


class Contrast(NamedTuple):
    chains: int
    ended: int
    """Chains that ended within `limit_seconds`."""
    doubled: int
    repeated: int
    """Steps that began more than once."""
    seconds: float
    limit_seconds: float
    injuries: int


class BareHost(Host):
    """A `celery worker`, restarted when it dies, without control and sweeper."""

    wanted = frozenset({"work", "worker"})

    def _launch(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        url = self.access.url
        celery = [
            *self.access.entering,
            sys.executable,
            "-m",
            "celery",
            "-A",
            "fixloop.testing.bare",
            "worker",
        ]
        options = ["-Q", QUEUE, "-c", str(self._concurrency), "--without-gossip", "--without-mingle"]
        environment = os.environ | variables_for(RedisUrls(url, url)) | dict(self._environment)
        return attached([*celery, *options, "-l", "WARNING"], environment, log=self._log)

    def roles(self) -> dict[int, str]:
        if self._process is None:
            return {}
        main = self._process.pid
        return {main: "work"} | dict.fromkeys(children(main), "worker")


@dataclass
class _Chains:
    _app: Any
    _client: Any
    _tickets: Mapping[str, Sequence[str]]

    def begin(self) -> list[str]:
        for tickets in self._tickets.values():
            # Retry a failed send, as any caller would while Redis is injured.
            until = time.monotonic() + SENDING_SECONDS
            while True:
                try:
                    send(self._app, list(tickets))
                    break
                except OperationalError as error:
                    if time.monotonic() > until:
                        message = f"no chain can be sent to the injured Redis: {error}"
                        raise InfrastructureError(message) from None
        return list(self._tickets)

    def unended(self, names: Sequence[str]) -> list[str]:
        done = self._client.hmget(EFFECTS, [self._tickets[name][-1] for name in names])
        return [name for name, count in zip(names, done, strict=True) if not count]


def contrast(
    order: Order,
    folder: Path,
    planned: Plan,
    tickets: Mapping[str, Sequence[str]],
    compared_seconds: float,
    *,
    tell: Callable[[Progress], object],
) -> Contrast:
    """Run a chain of each workflow's `tickets`, injured as planned; `compared_seconds` is fixloop's time."""
    folder.mkdir(exist_ok=True)
    limit_seconds = max(LEAST_LIMIT_SECONDS, LIMIT_TIMES * compared_seconds)
    with (
        site(folder, order, BareHost) as place,
        closing(producer(place.server.url)) as app,
        closing(redis.Redis.from_url(place.server.url, socket_timeout=2.0)) as client,
    ):
        chains = _Chains(app, client, tickets)
        place.arm(Schedule(planned, VALIDATION))
        seconds = place.run(
            "bare chains", chains, tell, patience_seconds=PATIENCE_SECONDS, limit_seconds=limit_seconds
        )
        place.heal()
        return Contrast(
            chains=len(tickets),
            ended=len(tickets) - len(chains.unended(list(tickets))),
            doubled=sum(int(count) > 1 for count in client.hvals(EFFECTS)),
            repeated=sum(int(count) > 1 for count in client.hvals(BEGUN)),
            seconds=seconds,
            limit_seconds=limit_seconds,
            injuries=sum(applied.took_effect for applied in place.injurer.injuries),
        )
