"""Real workers killed, stopped and cut off at any point: the end is that of a run that nothing disturbed.

Each test says how it disturbs; `unharmed` says what has to hold at the end, always the same.
"""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixloop.machine.health import healths, problems
from fixloop.protocol.events import Cancelled, Continued, Paused, WorkflowStarted
from fixloop.protocol.messages import Escalation, Reason
from fixloop.protocol.state import Limits, WorkflowOutcome
from fixloop.testing.processes import below
from fixloop.testing.rehearsal import undisturbed
from tests.fixtures.deployment import PATIENCE_SECONDS, Deployment, Execution, deployed, fresh_database
from tests.fixtures.patience import slack
from tests.fixtures.redis_server import RedisServer
from workers.recovery.supervisor import DRAIN_SECONDS

pytestmark = pytest.mark.slow

SCRIPTS = ("abc~0.2 a~0.2 -", "ab~0.1 -~0.3", "!a~0.2 b -", "a -~0.2; fix: ok~0.3", "ab~0.2 ab ab", "-~0.5")
SLACK_SECONDS = 4.0
"""The machine may be busy with other tests; with the limits of 3 s it is still less than a lease, which would be the
other way to the same end. `make recovery` has the limits themselves."""


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("killed")) as running:
        yield running


@pytest.fixture
def own(redis_url: str, tmp_path: Path) -> Iterator[Deployment]:
    """The test's own deployment, not started yet."""
    deployment = Deployment(fresh_database(redis_url), tmp_path)
    try:
        yield deployment
        deployment.stop()
        assert deployment.processes() == []
    finally:
        deployment.end()


@pytest.mark.proves("S30", "K40")
def test_a_step_whose_process_is_killed_continues_within_three_seconds(deployment: Deployment) -> None:
    started = deployment.begin("a~3 -")
    pid = deployment.owner_pid(started.workflow)

    os.kill(pid, signal.SIGKILL)

    took = deployment.until(lambda: len(deployment.executions(f"{started.workflow}.")) >= 2)
    assert took < 3.0 + slack(SLACK_SECONDS)
    first, second = deployment.executions(f"{started.workflow}.")[:2]
    assert first.ticket == second.ticket
    assert first.fence < second.fence
    unharmed(deployment, started)


@pytest.mark.proves("S30", "K40")
def test_a_killed_step_is_not_queued_behind_waiting_ones(deployment: Deployment) -> None:
    others = [deployment.begin("-~0.05") for _ in range(30)]
    started = deployment.begin("a~3 -")
    more = [deployment.begin("-~0.05") for _ in range(30)]
    pid = deployment.owner_pid(started.workflow)
    before = len(deployment.executions())

    os.kill(pid, signal.SIGKILL)

    deployment.until(lambda: len(deployment.executions(f"{started.workflow}.")) >= 2)
    after = [run.ticket.partition(".")[0] for run in deployment.executions()[before:]]
    assert after.index(started.workflow) < 25, "it waited for the others"
    unharmed(deployment, started, *others[::15], *more[::15])


@pytest.mark.proves("S30", "K40")
def test_work_survives_repeated_kills_of_its_processes(deployment: Deployment) -> None:
    started = batch(deployment)

    for _ in range(4):
        deployment.kill("worker")
        deployment.until(lambda: len(deployment.processes("worker")) == 2)

    unharmed(deployment, *started)


@pytest.mark.proves("S30")
@pytest.mark.parametrize("role", ["work", "control", "sweep"])
def test_a_killed_process_of_the_worker_is_replaced(deployment: Deployment, role: str) -> None:
    started = batch(deployment)
    deployment.owner_pid(started[0].workflow)

    # The tests before this one have killed it, too.
    deployment.until(lambda: len(deployment.processes(role)) == 1)
    (killed,) = deployment.kill(role)

    back = deployment.until(lambda: killed not in {p.pid for p in deployment.processes(role)} != set())
    assert back < 1.0 + slack(SLACK_SECONDS)
    unharmed(deployment, *started)
    deployment.until(lambda: wrong_with(deployment) == [])
    (health,) = healths(deployment.folder / "cache")
    assert [part.last_death for part in health.parts if part.role == role] == ["killed by SIGKILL"]


@pytest.mark.proves("S30", "K40")
def test_a_killed_supervisor_ends_its_processes_and_a_new_one_continues(own: Deployment) -> None:
    started = batch(own)
    undisturbed_seconds = seconds_to_next_execution(own)

    own.kill("supervise")
    assert own.until(lambda: own.processes() == []) < 1.0 + slack(SLACK_SECONDS)
    assert seconds_to_next_execution(own) < undisturbed_seconds + 3.0 + slack(SLACK_SECONDS)

    own.kill("")
    own.until(lambda: own.processes() == [])
    own.start()
    unharmed(own, *started)


@pytest.mark.proves("S30")
def test_a_stopped_process_does_not_block_the_others(own: Deployment) -> None:
    own.start(ready=("work", "worker", "control", "sweep"))
    (stopped,) = own.kill("control", signal.SIGSTOP)

    own.kill("supervise")

    ended = own.until(lambda: {process.pid for process in own.processes()} == {stopped})
    assert ended < 1.0 + slack(SLACK_SECONDS)
    os.kill(stopped, signal.SIGCONT)
    own.until(lambda: own.processes() == [])


@pytest.mark.proves("A14", "K21", "S30")
def test_events_sent_while_all_workers_were_down_are_processed_later(own: Deployment) -> None:
    own.start()
    cancelled, paused, continued = (own.begin(f"a~{seconds} -") for seconds in (30, 30, 1))
    for one in (cancelled, paused):
        own.owner_pid(one.workflow)
    own.kill("supervise")
    own.until(lambda: own.processes() == [])

    own.tell(cancelled.workflow, Cancelled(by="ann"))
    own.tell(paused.workflow, Paused(by="ann"))
    own.tell(continued.workflow, Paused(by="ann"))
    own.tell(continued.workflow, Continued(by="ann"))
    before = own.executions()
    own.start()

    unharmed(own, continued)
    again = {run.ticket.partition(".")[0] for run in own.executions()[len(before) :]}
    assert again == {continued.workflow}
    assert own.state(cancelled.workflow).outcome is WorkflowOutcome.CANCELLED
    assert own.state(paused.workflow).held is not None
    own.tell(paused.workflow, Continued(by="ann"))
    own.until(
        lambda: bool({run.ticket for run in own.executions()[len(before) :]} & tickets_of(before, paused))
    )
    own.tell(paused.workflow, Cancelled(by="ann"))


@pytest.mark.proves("S30", "R7")
def test_work_whose_hints_were_never_sent_is_found(deployment: Deployment) -> None:
    sent = time.monotonic()
    started = [deployment.begin("a -", hinted=False) for _ in range(5)]

    deployment.until(lambda: all(deployment.executions(f"{one.workflow}.") for one in started))

    assert time.monotonic() - sent < 2.0 + slack(SLACK_SECONDS)
    unharmed(deployment, *started)


@pytest.mark.proves("S30", "R7")
def test_work_continues_when_all_messages_are_lost_at_once(deployment: Deployment) -> None:
    started = batch(deployment)
    deployment.owner_pid(started[0].workflow)

    deployment.broker_forgets()

    unharmed(deployment, *started)


@pytest.mark.proves("S30", "R7")
def test_a_backlog_is_not_filled_with_copies(own: Deployment) -> None:
    started = [own.begin("a -") for _ in range(200)]

    own.start()

    own.finished(*[one.workflow for one in started], seconds=240)
    tickets = sum(len(own.store.history(one.workflow)) - 1 for one in started)
    assert tickets == 200 * 4
    assert (len(own.deliveries()) - tickets) / tickets <= 0.2
    unharmed(own, *started[::10])


@pytest.mark.proves("S30", "R8", "K40")
def test_a_process_that_sleeps_through_its_lease_changes_nothing(own: Deployment) -> None:
    own.start()
    started = own.begin("a~3 -")
    stopped = own.owner_pid(started.workflow)

    os.kill(stopped, signal.SIGSTOP)
    own.finished(started.workflow)
    os.kill(stopped, signal.SIGCONT)

    first = f"{started.workflow}.test-runner.validate.1.1"
    own.until(lambda: len([pair for pair in own.deliveries() if pair[0] == first]) >= 2)
    said = Counter(status for ticket, status in own.deliveries() if ticket == first)
    assert said.pop("done") == 1
    assert set(said) <= {"stale", "gone", "cancelled", "busy"}
    assert [run.ticket for run in own.executions(first)] == [first, first]
    unharmed(own, started)


@pytest.mark.proves("S30")
def test_work_survives_a_frozen_and_a_killed_redis(tmp_path: Path) -> None:
    server = RedisServer().start()
    try:
        with deployed(server.url, tmp_path) as own:
            long = own.begin("a~2 -")
            own.owner_pid(long.workflow)
            server.signal(signal.SIGSTOP)
            time.sleep(1.0)
            server.signal(signal.SIGCONT)
            unharmed(own, long)
            assert [run.step for run in own.executions(long.workflow)] == ["validate", "fix", "recheck"]

            started = batch(own)
            own.owner_pid(started[0].workflow)
            server.signal(signal.SIGKILL)
            time.sleep(1.0)
            server.start()

            before = len(own.executions())
            assert own.until(lambda: len(own.executions()) > before) < 3.0 + slack(SLACK_SECONDS)
            unharmed(own, *started)
    finally:
        server.end()


@pytest.mark.proves("S30", "K40")
def test_a_stopping_worker_finishes_a_short_step_and_returns_a_long_one(own: Deployment) -> None:
    short, long = own.begin("a~3 -"), own.begin("a~30 -")
    undisturbed_seconds = seconds_to_next_execution(own)
    own.owner_pid(short.workflow)
    own.owner_pid(long.workflow)

    stopping = time.monotonic()
    own.stop()

    assert time.monotonic() - stopping < 8.0 + slack(SLACK_SECONDS)
    assert own.processes() == []
    assert own.store.owners() == {}
    assert [event["kind"] for event in own.events(short.workflow)][:2] == ["workflow-started", "run-finished"]
    assert len(own.events(long.workflow)) == 1
    before = len(own.executions(f"{long.workflow}."))
    assert seconds_to_next_execution(own) < undisturbed_seconds + 3.0 + slack(SLACK_SECONDS)
    own.until(lambda: len(own.executions(f"{long.workflow}.")) > before)
    unharmed(own, short)
    assert len(own.executions(f"{short.workflow}.")) == 3
    own.engine.apply(long.workflow, Cancelled(), operation="enough")


@pytest.mark.proves("K40")
@pytest.mark.parametrize("moment", ["heeds", "forked"])
def test_a_worker_stopped_during_start_up_exits_cleanly(own: Deployment, moment: str) -> None:
    own.start(ready=())
    assert own.supervisor is not None
    pid = own.supervisor.pid
    own.until(lambda: heeds(pid, signal.SIGTERM) if moment == "heeds" else bool(below(pid, 1)))

    own.supervisor.send_signal(signal.SIGTERM)

    assert own.supervisor.wait(PATIENCE_SECONDS) == 0


@pytest.mark.proves("K40")
def test_a_worker_stopped_twice_returns_its_step_at_once(own: Deployment) -> None:
    long = own.start().begin("a~30 -")
    own.owner_pid(long.workflow)
    assert own.supervisor is not None

    stopping = time.monotonic()
    for after_seconds in (0.0, 0.5, 1.5):
        # Those that come with the first are the same request, as a service manager makes it to a whole group.
        time.sleep(max(0.0, stopping + after_seconds - time.monotonic()))
        own.supervisor.send_signal(signal.SIGTERM)
        assert own.supervisor.poll() is None
    own.stop()

    assert 1.5 < time.monotonic() - stopping < DRAIN_SECONDS
    assert own.processes() == []
    assert own.store.owners() == {}
    assert len(own.events(long.workflow)) == 1
    own.engine.apply(long.workflow, Cancelled(), operation="enough")


@pytest.mark.proves("K40")
def test_a_step_that_kills_its_process_five_times_is_its_own_fault(deployment: Deployment) -> None:
    deployment.until(steady(deployment))
    checks = deployment.begin("#")
    fixes = deployment.begin("a -; fix: #")

    deployment.finished(checks.workflow, fixes.workflow)

    assert [run.step for run in deployment.executions(checks.workflow)] == ["validate"] * 5
    assert escalation(deployment, checks).reason is Reason.SPECIALIST_ERROR
    assert [run.step for run in deployment.executions(fixes.workflow)] == ["validate"] + ["fix"] * 5
    assert escalation(deployment, fixes).reason is Reason.UNRESPONSIVE


@pytest.mark.proves("K40")
def test_deaths_that_stop_leave_no_trace(deployment: Deployment) -> None:
    deployment.until(steady(deployment))
    started = deployment.begin("##a -")

    deployment.finished(started.workflow)

    assert len(deployment.executions(f"{started.workflow}.")) == 5
    assert deployment.story(started.workflow) == undisturbed(with_script(started, "a -"))


def wrong_with(deployment: Deployment) -> list[str]:
    """What the worker's own health check would say."""
    known = list(healths(deployment.folder / "cache"))
    return [said for health in known for said in problems(health, time.monotonic())] if known else ["nothing"]


def heeds(pid: int, number: int) -> bool:
    """Whether a process has its own handler for the signal."""
    (caught,) = re.findall(r"^SigCgt:\s(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def tickets_of(runs: list[Execution], started: WorkflowStarted) -> set[str]:
    """What was started of a workflow."""
    return {run.ticket for run in runs if run.ticket.startswith(f"{started.workflow}.")}


def batch(deployment: Deployment) -> list[WorkflowStarted]:
    """Some workflows of each kind at once."""
    return [
        deployment.begin(script, limits=Limits(backoff_seconds=0.1)) for _ in range(2) for script in SCRIPTS
    ]


def unharmed(deployment: Deployment, *started: WorkflowStarted) -> None:
    """Wait for the end, which has to be the undisturbed one, with nothing done twice or left over."""
    deployment.finished(*[one.workflow for one in started])
    for one in started:
        assert deployment.story(one.workflow) == undisturbed(one), one.name
        fixes = Counter(
            (event["specialist"], event["completion"]["iteration"])
            for event in deployment.events(one.workflow)
            if event["kind"] == "fix-completed"
        )
        assert set(fixes.values()) <= {1}, f"a fix was made twice in {one.workflow}"
    owned = {ticket.partition(".")[0] for ticket in deployment.store.owners()}
    assert not owned & {one.workflow for one in started}


def seconds_to_next_execution(own: Deployment) -> float:
    """Start the deployment; the time until a step starts, the processes' own start included."""
    before, began = len(own.executions()), time.monotonic()
    own.start()
    own.until(lambda: len(own.executions()) > before)
    return time.monotonic() - began


def steady(deployment: Deployment) -> Callable[[], bool]:
    """Whether the work processes have run long enough for a death to count (K40)."""

    def is_steady() -> bool:
        mains = deployment.processes("work")
        if len(mains) != 1:
            # One that was replaced is still going.
            return False
        started = float(Path(f"/proc/{mains[0].pid}/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
        return up - started / os.sysconf("SC_CLK_TCK") > 3.5

    return is_steady


def escalation(deployment: Deployment, started: WorkflowStarted) -> Escalation:
    body = deployment.messages(started.workflow)[-1].body
    assert isinstance(body, Escalation)
    return body


def with_script(started: WorkflowStarted, script: str) -> WorkflowStarted:
    return started.model_copy(update={"name": script})
