"""A night's sleep (S34): `python -m tests.crash.night --away 45`.

The engine is killed and stays away for longer than every limit of its workflows, which are seconds here. Then it is
started again and what was asked for arrives: nobody is reminded, nothing escalates, and the clocks have stood still.
One workflow waits for its fix, one has been reminded already, of one a check is running, and one is held.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from fixloop.protocol.events import Continued, FixCompleted, Paused, WorkflowStarted
from fixloop.protocol.state import Completion, Limits
from tests.crash.figures import Report
from tests.fixtures.deployment import Deployment, deployed
from tests.fixtures.redis_server import RedisServer

LIMIT_SECONDS: Final = 20.0
WINDOW_SECONDS: Final = 20.0
LONGEST_SECONDS: Final = 40.0
"""The clock of a killed engine runs on for 5 s; the rest is for a machine that is busy."""
AFTER_SLEEP_SECONDS: Final = 5.0
FIX: Final = FixCompleted(
    specialist="test-runner",
    completion=Completion(iteration=1, by="ann", fixes=("mended",), files=("a.py",), tip="c", tree="t"),
)


def main() -> int:
    """Measure and print; 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--away", type=float, default=LONGEST_SECONDS + 5.0, help="seconds that the engine sleeps"
    )
    parser.add_argument("--redis", action="store_true", help="Redis sleeps, too")
    options = parser.parse_args()
    if options.away <= LONGEST_SECONDS:
        parser.error(f"--away has to be over {LONGEST_SECONDS:.0f}, the longest limit")
    server = RedisServer().start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="fixloop-") as folder,
            deployed(server.url, Path(folder)) as own,
        ):
            return night(own, server, options)
    finally:
        server.end()


def night(own: Deployment, server: RedisServer, options: argparse.Namespace) -> int:
    """Begin, sleep, wake, answer, judge."""
    reminded = begin(own, "a -", reminder_seconds=0.5)
    own.until(lambda: own.last_line(reminded.workflow).startswith("TIMEOUT-"), about=reminded.workflow)
    held = begin(own, "a -")
    own.until(lambda: own.last_line(held.workflow).startswith("VFR-"), about=held.workflow)
    own.tell(held.workflow, Paused())
    waiting, checked = begin(own, "a -"), begin(own, "-~2")
    own.until(lambda: own.last_line(waiting.workflow).startswith("VFR-"), about=waiting.workflow)
    own.owner_pid(checked.workflow)

    before = own.store.now(waiting.workflow).clock
    sleep(own, server, options)
    own.start()
    own.until(lambda: own.store.now(waiting.workflow).clock > before + AFTER_SLEEP_SECONDS + 1.0)
    own.tell(held.workflow, Continued())
    for one in (reminded, held, waiting):
        own.tell(one.workflow, FIX)
    started = [reminded, held, waiting, checked]
    own.finished(*[one.workflow for one in started])
    return judge(own, started, own.store.now(waiting.workflow).clock - before, options.away)


def begin(own: Deployment, script: str, *, reminder_seconds: float | None = None) -> WorkflowStarted:
    """A workflow whose every limit is seconds."""
    limits = Limits(
        fix_seconds=LIMIT_SECONDS,
        validation_seconds=LIMIT_SECONDS,
        revalidation_seconds=LIMIT_SECONDS,
        iteration_seconds=LONGEST_SECONDS,
        reminder_window_seconds=WINDOW_SECONDS,
        reminder_seconds=reminder_seconds,
    )
    return own.begin(script, fixer="outside", limits=limits)


def sleep(own: Deployment, server: RedisServer, options: argparse.Namespace) -> None:
    """`kill -9` of everything, and nothing for a long time."""
    for process in own.processes():
        os.kill(process.pid, signal.SIGKILL)
    own.until(lambda: own.processes() == [])
    if options.redis:
        server.signal(signal.SIGKILL)
    time.sleep(options.away)
    if options.redis:
        server.start()


def judge(own: Deployment, started: list[WorkflowStarted], clock_seconds: float, away_seconds: float) -> int:
    """Compare and print."""
    report = Report()
    lines = [[line.message_id.partition("-")[0] for line in own.messages(one.workflow)] for one in started]
    report.exactly(
        "reminders beside the one from before", sum(each.count("TIMEOUT") for each in lines) - 1, 0
    )
    report.exactly("escalations", sum(each.count("ESC") for each in lines), 0)
    succeeded = sum(own.state(one.workflow).outcome == "success" for one in started)
    report.exactly("workflows that ended as success", succeeded, len(started))
    print(
        f"     away for {away_seconds:.0f} s, with limits of {LIMIT_SECONDS:.0f} to {LONGEST_SECONDS:.0f} s"
    )
    report.at_most("the engine's clock went on by", clock_seconds, LIMIT_SECONDS)
    return report.code


if __name__ == "__main__":
    sys.exit(main())
