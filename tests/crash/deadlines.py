"""Deadlines over a Redis that restarts: `python -m tests.crash.deadlines --workflows 40 --away 2`.

Workflows wait for outside agents that never answer, each with another limit of seconds, so that at the moment when
Redis is killed some deadlines lie with the sweeper, some in control's memory as countdown tasks, and some fall due
while it is away. Each workflow has to be reminded once and escalated once, in order, and never early.
"""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from fixloop.protocol.events import WorkflowStarted
from fixloop.protocol.state import Limits
from fixloop.testing.rehearsal import undisturbed
from tests.crash.figures import Report, percentile
from tests.fixtures.deployment import Deployment, deployed
from tests.fixtures.redis_server import RedisServer

WINDOW_SECONDS = 3.0
LATE_SECONDS = 15.0
"""Beyond what Redis was away: a deadline whose message was lost is sent again after 5 s; workers restart."""
KINDS = ("TIMEOUT-", "ERR-", "ESC-")


def main() -> int:
    """Measure and print; 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=40)
    parser.add_argument("--away", type=float, default=2.0, help="seconds that Redis is away")
    parser.add_argument("--times", type=int, default=2, help="so often, 4 s apart")
    options = parser.parse_args()
    server = RedisServer().start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="fixloop-") as folder,
            deployed(server.url, Path(folder)) as own,
        ):
            started = waiting(own, options.workflows)
            for _ in range(options.times):
                time.sleep(4.0)
                server.signal(signal.SIGKILL)
                time.sleep(options.away)
                server.start()
            return judge(own, started, options)
    finally:
        server.end()


def waiting(own: Deployment, count: int) -> list[WorkflowStarted]:
    """Workflows whose limits end from 5 s to 17 s after each report."""
    started = [
        own.begin(
            "a -",
            fixer="outside",
            limits=Limits(fix_seconds=5.0 + 12.0 * number / count, reminder_window_seconds=WINDOW_SECONDS),
        )
        for number in range(count)
    ]
    own.until(lambda: all(own.messages(one.workflow) for one in started))
    return started


def judge(own: Deployment, started: list[WorkflowStarted], options: argparse.Namespace) -> int:
    """Wait for all ends, compare, print."""
    own.finished(*[one.workflow for one in started], seconds=120)
    late, wrong, different = [], 0, 0
    for one in started:
        lines = own.messages(one.workflow)
        report, *said = lines[-len(KINDS) - 1 :]
        kinds = tuple(line.message_id.partition("-")[0] + "-" for line in said)
        wrong += kinds != KINDS or sum(line.message_id.startswith(KINDS) for line in lines) != len(KINDS)
        different += own.story(one.workflow) != undisturbed(one)
        assert one.limits.fix_seconds is not None
        due = one.limits.fix_seconds
        late.append((said[0].at - report.at).total_seconds() - due)
        late.append((said[-1].at - said[0].at).total_seconds() - WINDOW_SECONDS)
    report_ = Report()
    away = options.away * options.times
    print(
        f"{len(late)} deadlines, Redis away {options.times} × {options.away:g} s: p50 {percentile(late, 50):.2f} s late"
    )
    report_.exactly("workflows not reminded once and escalated once", wrong, 0)
    report_.exactly("histories that differ from an undisturbed run", different, 0)
    report_.exactly("deadlines that were early", sum(seconds < 0 for seconds in late), 0)
    report_.at_most("late, worst", max(late), away + LATE_SECONDS)
    return report_.code


if __name__ == "__main__":
    sys.exit(main())
