"""The workers' handlers of each profile: every step of its decisions, and the event of a failed step."""

from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_named
from fixloop.errors import NewerVersion
from fixloop.outside.mailbox import Mailboxes
from fixloop.profile_table import names, registered_in
from fixloop.protocol.event import Event
from fixloop.protocol.events import WorkflowStarted
from fixloop.store.contract import Store
from tests.fixtures.deployment import wait_until
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.patience import slack
from tests.fixtures.profile_runs import FLOW, SCRIPTS
from tests.fixtures.validation_stage import START
from workers.steps.agent_runs import heard_of
from workers.steps.execution import STEP_HANDLERS, told_of
from workers.steps.step import Heart, Step
from workers.steps.step_handlers import Failure
from workflows import FOLLOWING

LOOP: Final[dict[str, Any]] = {
    "workflow": FLOW,
    "issue": 7,
    "name": "x",
    "specialists": ("test-runner",),
    "tree": "t",
}


MAILBOXES = Mailboxes("redis://localhost:1")


def begun(profile: str) -> tuple[Step, Store]:
    """The first step of a cycle or of handoffs, claimed."""
    script, store = SCRIPTS[profile], MemoryStore(lambda: START)
    engine: ProfileEngine[Any] = ProfileEngine(store, script.profile)
    (ticket,) = engine.start(script.begin).steps
    claim = store.claim(ticket.id, "me", "token")
    assert claim.ticket is not None
    holding = engine.held(script.profile, claim.ticket, claim, "me")
    return Step(engine, Heart(), holding, MAILBOXES), store


@pytest.mark.proves("R1", "R2", "K30")
def test_every_profile_has_handlers_and_a_canvas_and_every_step_counts_retries() -> None:
    assert set(STEP_HANDLERS) == set(FOLLOWING) == set(names())
    for name, shop in STEP_HANDLERS.items():
        assert shop.profile is profile_named(name)
        assert [step for step, kind in shop.steps.items() if kind.retries < 0] == []


@pytest.mark.parametrize("head", [b'{"profile":"cycle"', b'{"profile":"handoff"', b'{"workflow":"x"'])
def test_a_snapshot_says_where_its_steps_are_done(head: bytes) -> None:
    name = head.split(b'"')[3].decode() if b"profile" in head else "validation"

    assert STEP_HANDLERS[registered_in(head + b"}").name].profile.name == name


def test_a_snapshot_of_an_unknown_profile_is_left_to_newer_workers() -> None:
    with pytest.raises(NewerVersion, match="'relay'"):
        registered_in(b'{"profile":"relay"}')


@pytest.mark.proves("K40", "D38", "K5")
@pytest.mark.parametrize("profile", ["cycle", "handoff"])
@pytest.mark.parametrize("is_final", [True, False])
def test_a_run_that_kills_its_processes_escalates_and_one_that_fails_is_retried(
    profile: str, is_final: bool
) -> None:
    step, store = begun(profile)
    event = STEP_HANDLERS[profile].failure(
        step, Failure("5 processes died over this step", is_final=is_final)
    )
    assert event is not None

    applied = step.finish(event)

    assert applied.status == "ok"
    found = store.read(FLOW)
    assert found is not None
    assert found.fields.get("paused", "") == ("1" if is_final else "")
    assert [ticket.attempt for ticket in applied.steps] == ([] if is_final else [2])


def exhausted(profile: str) -> tuple[Step, Step, Store]:
    """A step in its last attempt, as its worker and Celery's failure handler hold it."""
    now = [START]
    store = MemoryStore(lambda: now[-1])
    engine: ProfileEngine[Any] = ProfileEngine(store, profile_named(profile))
    (ticket,) = engine.start(
        WorkflowStarted(**LOOP) if profile == "validation" else SCRIPTS[profile].begin
    ).steps
    while True:
        claim = store.claim(ticket.id, "me", "token")
        assert claim.ticket is not None
        holding = engine.held(profile_named(profile), claim.ticket, claim, "me")
        step = Step(engine, Heart(), holding, MAILBOXES)
        if ticket.attempt > STEP_HANDLERS[profile].steps[ticket.step].retries:
            return step, Step(engine, Heart(), holding, MAILBOXES), store
        (ticket,) = step.finish(failed(profile, step)).steps
        now.append(now[-1] + timedelta(seconds=60))
        store.stay_awake()


def failed(profile: str, step: Step) -> Event:
    event = STEP_HANDLERS[profile].failure(step, Failure("it cannot be run"))
    assert event is not None
    return event


@pytest.mark.proves("R9", "K5", "R8")
@pytest.mark.parametrize("profile", names())
def test_the_commit_and_the_failure_handler_escalate_once_and_alike(profile: str) -> None:
    shop, found = STEP_HANDLERS[profile], []
    for handler_first in (True, False):
        step, handler, store = exhausted(profile)
        by_handler = partial(told_of, shop, handler, Failure("it cannot be run"))
        by_step = partial(step.finish, failed(profile, step))
        first, second = (by_handler, by_step) if handler_first else (by_step, by_handler)

        assert first() is not None
        *_, last = store.history(FLOW)
        after = store.read(FLOW)
        assert after is not None
        found.append((last.seq, last.body["event"], {**after.fields, "updated_at": ""}))
        second()

        assert store.history(FLOW, last.seq) == []
        assert after.fields["paused"] == "1"

    assert found[0] == found[1]


@pytest.mark.proves("K41")
@pytest.mark.parametrize("profile", names())
def test_the_failure_handler_records_no_secret(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "wq7-Zp3kfeMs9")
    _, step, store = exhausted(profile)

    told_of(STEP_HANDLERS[profile], step, Failure("git said wq7-Zp3kfeMs9", "at wq7-Zp3kfeMs9"))

    *_, last = store.history(FLOW)
    assert "git said ***" in str(last.body)
    assert "wq7-Zp3kfeMs9" not in str(last.body)


@pytest.mark.proves("K5", "R9")
@pytest.mark.parametrize(
    ("profile", "name"), [(shop, step) for shop in names() for step in STEP_HANDLERS[shop].steps]
)
def test_a_failure_of_every_step_is_an_event_or_the_step_cannot_fail(profile: str, name: str) -> None:
    step = exhausted(profile)[0]
    step.holding = step.holding._replace(ticket=step.holding.ticket.model_copy(update={"step": name}))

    event = STEP_HANDLERS[profile].failure(step, Failure("it cannot be run"))

    if event is None:
        assert name in ("report", "attend", "finish")
    else:
        assert event.kind != "person-notified" or name == "notify"
        assert STEP_HANDLERS[profile].failed(step.holding.state, event) is not None or name == "notify"


@pytest.mark.proves("R8", "R9")
@pytest.mark.parametrize("profile", ["cycle", "handoff"])
def test_a_step_s_event_is_applied_once_and_a_withdrawn_step_is_notified(profile: str) -> None:
    step, store = begun(profile)
    agent = step.holding.ticket.specialist
    started = SCRIPTS[profile].started(agent)

    step.tell(started, "started")
    step.tell(started, "started")

    assert [entry.body["event"]["kind"] for entry in store.history(FLOW)][1:] == [started.kind]
    assert not step.cancelled()
    engine: ProfileEngine[Any] = ProfileEngine(store, profile_named(profile))
    engine.apply(FLOW, profile_named(profile).read_event('{"kind": "cancelled"}'), operation="cancel")
    step.tell(started, "again")
    assert step.cancelled()


@pytest.mark.proves("D34", "G18")
def test_an_agent_of_handoffs_sends_heartbeats_while_it_works() -> None:
    step, store = begun("handoff")
    step.tell(SCRIPTS["handoff"].started("planner"), "started")
    heartbeat = profile_named("handoff").read_event('{"kind": "heartbeat", "sender": "planner"}')

    def beats() -> int:
        return [entry.body["event"]["kind"] for entry in store.history(FLOW)].count("heartbeat")

    with heard_of(step, heartbeat, every_seconds=0.001):
        wait_until(lambda: beats() >= 2, seconds=slack(10))
    told = beats()

    assert not step.cancelled()
    assert store.verify(FLOW) == []
    assert beats() == told


def test_an_agent_no_longer_at_work_learns_it_from_its_next_heartbeat() -> None:
    step, _ = begun("handoff")
    heartbeat = profile_named("handoff").read_event('{"kind": "heartbeat", "sender": "planner"}')

    with heard_of(step, heartbeat, every_seconds=0.001):
        wait_until(step.cancelled, seconds=slack(10))
