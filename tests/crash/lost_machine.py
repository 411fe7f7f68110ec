"""How soon a lost machine's steps continue elsewhere: `python -m tests.crash.lost_machine --rounds 5 [--backlog 100]`.

One worker runs in a process namespace of its own, so that nobody else can tell whether its processes live, another
one outside it; both share a Redis. The namespace is killed as a whole, as if somebody pulled the plug, and is not
started again. Needs the right to make a namespace (root, or unprivileged user namespaces).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fixloop.machine.owner import machine
from fixloop.protocol.events import WorkflowStarted
from fixloop.testing.rehearsal import undisturbed
from tests.crash.figures import Report, begun
from tests.fixtures.deployment import Deployment, fresh_database
from tests.fixtures.redis_server import RedisServer

LIMIT_SECONDS = 12.0
NAMESPACE = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"]


def main() -> int:
    """Measure and print; 1 if a limit is not met, 2 if no namespace can be made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backlog", type=int, default=0, help="workflows that wait for a process")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--step", type=float, default=1.0, help="seconds that a step takes")
    options = parser.parse_args()
    within = namespace()
    if not within:
        print("a process namespace cannot be made here: run it as root", file=sys.stderr)
        return 2
    report, took = Report(), []
    server = RedisServer().start()
    try:
        for number in range(1, options.rounds + 1):
            seconds, differing = lose_one(server.url, within, options)
            print(
                f"round {number}: {len(seconds)} steps went on after {min(seconds):.1f} to {max(seconds):.1f} s"
            )
            report.exactly("histories that differ from an undisturbed run", differing, 0)
            took += seconds
    finally:
        server.end()
    report.at_most("resumed elsewhere, worst", max(took), LIMIT_SECONDS)
    return report.code


def namespace() -> list[str]:
    """The command that makes one, as root or as a user; empty if neither may."""
    for command in (NAMESPACE, [*NAMESPACE, "--user", "--map-root-user"]):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return []


def lose_one(url: str, within: list[str], options: argparse.Namespace) -> tuple[list[float], int]:
    """Seconds until each step of the lost one starts again, and the number of wrong histories."""
    url = fresh_database(url)
    with tempfile.TemporaryDirectory(prefix="fixloop-") as left, tempfile.TemporaryDirectory() as right:
        lost = Deployment(url, Path(left), concurrency=options.concurrency, within=within)
        other = Deployment(url, Path(right), concurrency=options.concurrency)
        try:
            lost.start()
            other.start()
            script = f"a~{options.step} -~{options.step}"
            busy = options.backlog + 4 * options.concurrency
            started = [other.begin(script) for _ in range(busy)]
            lost.until(lambda: len(held_elsewhere(lost)) == options.concurrency)
            killed = time.monotonic()
            held = kill_machine(lost)
            return [resumed(other, ticket) - killed for ticket in held], ended(other, started)
        finally:
            lost.end()
            other.end()


def kill_machine(lost: Deployment) -> list[str]:
    """Kill the machine; the tickets of the steps it was at, at least one."""
    assert lost.supervisor is not None
    lost.supervisor.kill()
    lost.until(lambda: lost.processes() == [])
    held = held_elsewhere(lost)
    assert held, "all its steps were just through; make them longer"
    return held


def held_elsewhere(lost: Deployment) -> list[str]:
    """The tickets of the lost machine's work processes."""
    pids = {one.pid for one in begun(lost.folder / "executions")}
    return [
        ticket
        for ticket, (owner, _) in lost.store.owners().items()
        if not owner.startswith(f"{machine()}/") and int(owner.split("/")[-2]) in pids
    ]


def resumed(other: Deployment, ticket: str) -> float:
    """When the other machine began the step."""
    found: list[float] = []

    def has_begun() -> bool:
        found.extend(each.at for each in begun(other.folder / "executions") if each.ticket == ticket)
        return bool(found)

    other.until(has_begun, about=ticket.partition(".")[0])
    return found[0]


def ended(other: Deployment, started: list[WorkflowStarted]) -> int:
    """The number of workflows that ended differently from an undisturbed run."""
    other.finished(*[one.workflow for one in started], seconds=300)
    return sum(other.story(one.workflow) != undisturbed(one) for one in started)


if __name__ == "__main__":
    sys.exit(main())
