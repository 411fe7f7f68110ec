"""A machine's clock is set ahead and back by hours while workflows wait, run and are claimed.

Redis and every process of the worker use it; the monotonic clock is right. A library that is put before the C library
stands in for setting the clock, which would be that of the machine the tests run on.
"""

import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import redis

from fixloop.protocol.state import Limits
from tests.attacks.sizes import size
from tests.crash.test_workers_killed import unharmed
from tests.fixtures.deployment import Deployment
from tests.fixtures.patience import slack
from tests.fixtures.redis_server import RedisServer

pytestmark = pytest.mark.slow

HOUR: Final = 3600
SLACK_SECONDS: Final = 20.0
"""The machine may be busy with other tests."""
SETTINGS: Final = (6 * HOUR, -6 * HOUR, 0, 30 * HOUR, -30 * HOUR, 1, -90)
SHIM: Final = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off(void) {
  static volatile long *shared;
  if (!shared) {
    int file = open(getenv("TEST_CLOCK"), O_RDONLY);
    shared = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    close(file);
  }
  return *shared;
}
int clock_gettime(clockid_t id, struct timespec *told) {
  int failed = syscall(SYS_clock_gettime, id, told);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) told->tv_sec += off();
  return failed;
}
int gettimeofday(struct timeval *told, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  told->tv_sec = now.tv_sec;
  told->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *told) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (told) *told = now.tv_sec;
  return now.tv_sec;
}
"""


class Clock:
    """The wall clock of all processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler here")
        self._file = folder / "clock"
        self.set(0)
        (folder / "shim.c").write_text(SHIM)
        library = folder / "shim.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, folder / "shim.c"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "TEST_CLOCK": str(self._file)}
        self.entering = ("env", *(f"{name}={value}" for name, value in self.environment.items()))

    def set(self, seconds: int) -> None:
        """From now on it is wrong by this much."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("l", seconds))


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


@pytest.fixture
def own(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """A Redis and a worker with that clock."""
    server = RedisServer()
    with monkeypatch.context() as within:
        for name, value in clock.environment.items():
            within.setenv(name, value)
        url = server.start().url
    deployment = Deployment(url, tmp_path, within=clock.entering)
    try:
        yield deployment.start()
        deployment.stop()
    finally:
        deployment.end()
        server.end()


def test_only_the_clock_of_redis_counts(own: Deployment, clock: Clock) -> None:
    client = redis.Redis.from_url(own.url)
    before = client.time()[0]

    clock.set(6 * HOUR)

    assert client.time()[0] - before in range(6 * HOUR, 6 * HOUR + 60)
    client.close()


@pytest.mark.proves("K34", "R6", "R7")
@pytest.mark.parametrize("seconds", SETTINGS[: size(4, len(SETTINGS))])
def test_workflows_end_the_same_when_clocks_are_wrong(own: Deployment, clock: Clock, seconds: int) -> None:
    """During a check, a fix, a delay before the next attempt, and with messages on their way."""
    started = [own.begin(script) for script in ("a~0.5 -", "!a~0.2 b -", "a -~0.2; fix: ok~0.5", "ab~0.2 -")]
    own.owner_pid(started[0].workflow)

    clock.set(seconds)
    own.until(lambda: len(own.executions()) > 6)
    clock.set(0)

    unharmed(own, *started)


@pytest.mark.proves("A61", "A66", "K34")
@pytest.mark.parametrize("seconds", [6 * HOUR, -6 * HOUR])
def test_a_deadline_expires_after_its_duration_whatever_the_clock_says(
    own: Deployment, clock: Clock, seconds: int
) -> None:
    limits = Limits(fix_seconds=3, reminder_window_seconds=3, iteration_seconds=None, backoff_seconds=0.1)
    started = own.begin("a -", fixer="outside", limits=limits)
    own.until(lambda: any(line.message_id.startswith("VFR-") for line in own.messages(started.workflow)))
    asked = time.monotonic()

    clock.set(seconds)
    own.until(lambda: own.last_line(started.workflow).startswith("ESC-"))

    # The engine's clock stops during what it takes for an absence: up to five seconds of that count.
    assert 1.0 < time.monotonic() - asked < 6.0 + slack(SLACK_SECONDS)
