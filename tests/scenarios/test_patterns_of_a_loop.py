"""Who does what in which order: the four patterns, the communicator's occasions, and what each status means."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

import fixloop
from fixloop.engine.engine import Engine
from fixloop.engine.history import said
from fixloop.engine.replay import audit
from fixloop.errors import UsageError
from fixloop.profiles.validation.engine import plain_fields
from fixloop.protocol import events as ev
from fixloop.protocol.event import Moment, Unexpected
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER, FixRequest, Message, RevalidationResult
from fixloop.protocol.rendering import render, render_whole
from fixloop.protocol.roles import HANDLES
from fixloop.protocol.specialists import SPECIALISTS, Status
from fixloop.protocol.state import OperationName, State, WorkflowOutcome
from fixloop.protocol.validation import decide
from fixloop.store.records import Snapshot
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.script import SILENT, Fix, Result, errs, fails, passes
from tests.fixtures.validation_stage import START, Stage, finished, started
from tests.scenarios.documents import field, section

SPECIALIST = "@test-runner-specialist"


@pytest.mark.proves("A1", "U1")
def test_six_specialists_the_orchestrator_the_main_agent_and_the_user_take_part() -> None:
    addresses = {entry.handle for entry in SPECIALISTS}

    assert len(addresses) == 6
    assert addresses | {ORCHESTRATOR, MAIN_AGENT, USER} == HANDLES
    assert (ORCHESTRATOR, MAIN_AGENT) == ("@validation-orchestrator", "@feature-implementer-main")


@pytest.mark.proves("A4", "A5")
def test_a_failure_is_detected_reported_with_details_and_then_waits_for_a_receipt() -> None:
    stage = Stage([fails("a")], answers=None)
    stage.step()

    (detected,) = stage.messages
    assert (detected.sender, detected.recipient) == (SPECIALIST, ORCHESTRATOR)
    assert "a - AssertionError" in render(detected)
    stage.step()
    assert stage.ids == ["DETECT-101-test-runner-1", "VFR-101-test-runner-1"]
    assert stage.messages[1].recipient == MAIN_AGENT
    assert (stage.active.status, stage.state.owner) == (Status.AWAITING_FIX, "agent")
    assert not stage.pending
    stage.acknowledge()
    assert stage.active.status is Status.FIXING


@pytest.mark.proves("A6", "B11")
def test_a_completion_is_confirmed_before_the_re_validation_is_triggered() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()

    assert not stage.said("revalidation-trigger")
    stage.acknowledge()
    assert not stage.pending
    outcome = stage.complete()

    said = [message.body.kind for message in outcome.messages]
    assert said == ["fix-completion", "revalidation-trigger"]
    assert [ticket.step for ticket in outcome.steps] == ["recheck"]


@pytest.mark.proves("A9", "B12")
def test_each_fix_leads_to_one_trigger_one_run_and_one_result() -> None:
    stage = Stage([fails("a", "b"), fails("a"), fails("c"), passes()]).run()

    triggers = [message.iteration for message in stage.said("revalidation-trigger")]
    results = [message.iteration for message in stage.said("revalidation-result")]
    runs = [ticket.iteration for ticket in stage.executed if ticket.step == "recheck"]
    assert triggers == results == runs == [2, 3, 4]
    assert len(stage.said("fix-completion")) == 3
    for number in (2, 3, 4):
        asked = stage.ids.index(f"REVAL-101-test-runner-{number}")
        assert stage.ids[asked - 1] == f"FIXDONE-101-{number - 1}"
        assert stage.ids[asked + 1] == f"REVALRES-101-test-runner-{number}"


@pytest.mark.proves("A2")
def test_a_workflow_that_names_another_specialist_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown specialist 'lint'"):
        decide(None, started({}, {"specialists": ["test-runner", "lint"]}), Moment(START, 0.0))


@pytest.mark.proves("A10")
def test_a_specialist_has_no_third_result() -> None:
    with pytest.raises(ValidationError):
        ev.event_from_json(
            '{"kind": "run-finished", "step": "validate", "specialist": "test-runner", "iteration": 1,'
            ' "outcome": "partly", "tree": "tree-0"}'
        )
    stage = Stage([fails("a"), fails("a", "b"), passes()]).run()
    told = [section(render(message), "Result Summary") for message in stage.said("revalidation-result")]
    assert [field(summary, "Status") for summary in told] == ["FAIL", "PASS"]


@pytest.mark.proves("A11", "B16")
def test_an_escalation_is_sent_then_the_workflow_pauses_and_waits() -> None:
    stage = Stage([fails("a")], answers=[SILENT]).run().advance(2101.0)

    assert [i.split("-")[0] for i in stage.ids][-1] == "ESC"
    assert stage.messages[-1].recipient == USER
    assert stage.state.paused
    assert stage.state.owner == "person"
    stage.advance(100_000.0)
    assert stage.state.paused, "nothing but a decision ends a pause"


CONDITIONS: dict[str, Callable[[], Stage]] = {
    "Max iterations exceeded": lambda: Stage([fails("a")], max_iterations=1).run(),
    "Timeout exceeded": lambda: Stage([fails("a")], answers=[SILENT]).run().advance(2101.0),
    "Deadlock - no progress": lambda: Stage([fails("a")] * 3).run(),
    "Specialist error": lambda: Stage([errs(), errs()]).run(),
}


@pytest.mark.proves("A65", "A66", "A67", "A68")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_has_its_own_text_and_recipient(condition: str) -> None:
    stage = CONDITIONS[condition]()

    (report,) = stage.said("escalation")
    assert stage.escalation.reason.text == condition
    assert field(render(report), "Condition") == condition
    assert report.recipient == (MAIN_AGENT if condition == "Specialist error" else USER)


@pytest.mark.proves("A69", "K8", "A12")
def test_two_conditions_at_once_are_one_escalation() -> None:
    stage = Stage([fails("a")] * 3, max_iterations=3).run()
    stage.advance(10_000.0)

    (report,) = stage.said("escalation")
    assert stage.escalation.reason.text == "Max iterations exceeded"
    assert report is stage.messages[-1]


@pytest.mark.proves("A13", "A88")
def test_an_unknown_word_is_neither_a_decision_nor_a_status() -> None:
    stage = CONDITIONS["Deadlock - no progress"]()

    with pytest.raises(ValueError, match="retry"):
        stage.decide("retry")
    assert stage.state.paused
    snapshot = stage.state.model_dump_json()
    assert State.model_validate_json(snapshot) == stage.state
    with pytest.raises(ValidationError):
        State.model_validate_json(snapshot.replace('"ESCALATED"', '"STUCK"'))


@pytest.mark.proves("A54", "A55", "A85", "B18")
def test_every_transition_is_in_the_history_entry_that_caused_it() -> None:
    store = MemoryStore(lambda: START)
    engine = Engine(store)
    engine.start(started({"test-runner": ()}, {}))
    played = Stage([fails("a"), passes()]).run()
    for number, (event, _) in enumerate(played.applied[1:]):
        engine.apply("0f0f0f0f-101-1", event, operation=str(number))

    entries = store.history("0f0f0f0f-101-1")
    kept = [change for entry in entries for change in entry.body.get("transitions", ())]
    path = ["PENDING", *(change["after"] for change in kept)]
    assert path == [str(status) for status in played.path()]
    assert [change["before"] for change in kept] == path[:-1]
    by_event = {entry.body["event"]["kind"]: entry.body.get("transitions", []) for entry in entries}
    assert [change["after"] for change in by_event["fix-acknowledged"]] == ["FIXING"]
    assert [rendered(line.message) for line in said(entries)] == [rendered(m) for m in played.messages]
    found = audit(store, "0f0f0f0f-101-1")
    assert (found.problems, found.replayed) == ((), len(entries))


def rendered(message: Message) -> str:
    """The text without what differs between two clocks."""
    return render_whole(message.model_copy(update={"at": START, "attached": None}))


@pytest.mark.proves("A7")
def test_a_request_without_items_is_invalid_and_an_unnamed_failure_is_an_item() -> None:
    with pytest.raises(ValidationError):
        FixRequest(items=(), expected="All tests pass", remaining_iterations=4)

    stage = Stage([Result("failed"), passes()]).run()

    (request,) = stage.said("fix-request")
    assert isinstance(request.body, FixRequest)
    assert len(request.body.items) == 1


@pytest.mark.proves("A64", "R6")
def test_a_finished_operation_leaves_no_deadline_behind() -> None:
    stage = Stage([fails("a"), SILENT], answers=None).run()
    assert OperationName.FIX.value in stage.deadlines

    outcome = stage.complete()

    assert {OperationName.FIX.value, OperationName.FIX.reminder_deadline} <= set(outcome.cleared_deadlines)
    assert not {name for name in stage.deadlines if name.startswith(OperationName.FIX.value)}


@pytest.mark.proves("A50", "A49")
def test_each_status_has_its_meaning() -> None:
    stage = Stage({"test-runner": [fails("a"), passes()], "security": []}, answers=None)
    seen = [_situation(stage)]
    assert stage.state.specialist("security").status is Status.PENDING

    for act in (stage.step, stage.step, stage.acknowledge, stage.complete, stage.step):
        act()
        seen.append(_situation(stage))

    assert seen[:5] == [
        ("IN_PROGRESS", "engine", ["validate"]),
        ("FAIL", "engine", ["report"]),
        ("AWAITING_FIX", "agent", []),
        ("FIXING", "agent", []),
        ("RE_CHECKING", "engine", ["recheck"]),
    ]
    assert stage.path()[-2:] == [Status.PASS, Status.COMPLETED]
    assert stage.state.current == "security"


def _situation(stage: Stage) -> tuple[str, str, list[str]]:
    """The status, its owner, and the present work."""
    return stage.active.status, stage.state.owner, [ticket.step for ticket in stage.pending]


@pytest.mark.proves("A50", "A68")
def test_escalated_means_that_a_person_has_to_act() -> None:
    stage = Stage([errs(), errs()]).run()

    assert (stage.active.status, stage.state.paused, stage.state.owner) == (Status.ESCALATED, True, "person")


@pytest.mark.proves("A95", "B1")
def test_a_workflow_s_record_carries_the_protocol_s_version() -> None:
    store = MemoryStore(lambda: START)
    Engine(store).start(started({"test-runner": ()}, {}))

    found = store.read("0f0f0f0f-101-1")
    assert found is not None
    assert found.fields["protocol"] == "2.0.0"
    assert plain_fields(Stage([passes()]).state)["protocol"] == "2.0.0"


@pytest.mark.proves("B1", "B2")
def test_the_communicator_starts_by_itself_separately_from_checks_and_fixes() -> None:
    stage = Stage([fails("a")], answers=None)
    stage.step()

    (ticket,) = stage.pending
    assert (ticket.step, ticket.queue) == ("report", "fixloop.control")
    outcome = stage.apply(ev.ReportDelivered(specialist="test-runner", iteration=1))
    assert "(recursive-communicator skill)" in render(outcome.messages[0])
    assert stage.state.tree == "tree-0"


def imports(path: Path) -> set[str]:
    """The first parts of the names a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name.partition(".")[0] for name in found}


OUTSIDE = {
    "asyncio",
    "celery",
    "kombu",
    "os",
    "random",
    "redis",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "time",
}


@pytest.mark.heavy
@pytest.mark.proves("B2", "R10")
def test_the_protocol_runs_nothing_and_reads_no_clock() -> None:
    (folder,) = fixloop.__path__
    modules = sorted(Path(folder, "protocol").rglob("*.py"))
    # Waiting for a lock is a command's, not a decision's.
    profiles = Path(folder, "profiles").glob("*/*.py")
    modules += sorted(path for path in profiles if path.stem != "lock_commands")

    found = {str(path.relative_to(folder)): imports(path) & OUTSIDE for path in modules}
    # A count would only say how many files it takes.
    decides = {"protocol/validation.py", "profiles/cycle/decide.py", "profiles/handoff/decide.py"}
    assert decides < found.keys()
    assert {Path(name).parts[0] for name in found} == {"protocol", "profiles"}
    assert {name: outside for name, outside in found.items() if outside} == {}


def _reports() -> Stage:
    return Stage([fails("a"), passes()]).run()


def _stalls() -> Stage:
    return Stage([fails("a")] * 3).run()


OCCASIONS: dict[str, Callable[[], bool]] = {
    "communicate failures": lambda: bool(_reports().said("failure-report")),
    "request fixes": lambda: bool(_reports().said("fix-request")),
    "trigger re-validation": lambda: bool(_reports().said("revalidation-trigger")),
    "manage the loop": lambda: (
        len(Stage([fails("a"), fails("b"), passes()]).run().said("failure-report")) == 2
    ),
    "track iterations": lambda: _reports().active.iteration == 2,
    "prevent deadlocks": lambda: _stalls().escalation.reason.value == "deadlock",
    "escalate": lambda: _stalls().state.paused,
    "log": lambda: [message.number for message in _reports().messages] == [1, 2, 3, 4, 5, 6],
}


@pytest.mark.proves("B3")
@pytest.mark.parametrize("occasion", OCCASIONS)
def test_the_communicator_acts_on_each_of_its_eight_occasions(occasion: str) -> None:
    assert OCCASIONS[occasion]()


@pytest.mark.proves("B3", "B4")
def test_the_communicator_sends_nothing_after_a_pass() -> None:
    stage = Stage([passes()]).run()

    assert not {"failure-report", "fix-request", "revalidation-trigger"} & {
        m.body.kind for m in stage.messages
    }
    assert not [ticket for ticket in stage.executed if ticket.step == "report"]


@pytest.mark.proves("B13", "A55")
@pytest.mark.parametrize(("second", "told"), [(passes(), "success"), (fails("b"), "failure-report")])
def test_every_party_gets_the_result_of_a_re_validation(second: Result, told: str) -> None:
    stage = Stage([fails("a"), second], answers=None).run()
    stage.complete()
    stage.run()

    after = stage.messages[stage.ids.index("FIXDONE-101-1") + 1 :]
    assert [(message.body.kind, message.recipient) for message in after] == [
        ("revalidation-trigger", SPECIALIST),
        ("revalidation-result", ORCHESTRATOR),
        (told, MAIN_AGENT),
    ]
    changes = [(change.before, change.after) for change in stage.transitions]
    assert (Status.FIXING, Status.RE_CHECKING) in changes


@pytest.mark.proves("B14", "B39", "B44", "B45")
def test_the_same_result_continues_or_ends_by_the_rule_alone() -> None:
    def second_failure(max_iterations: int) -> Stage:
        return Stage(
            [fails("a", "b"), fails("a")], answers=[Fix(), SILENT], max_iterations=max_iterations
        ).run()

    goes_on, ends = second_failure(3), second_failure(2)

    assert goes_on.applied[-2][0] == ends.applied[-1][0]
    assert goes_on.ids[-1] == "VFR-101-test-runner-2"
    assert ends.escalation.iterations == 2


@pytest.mark.proves("B17", "K21", "A14")
def test_a_workflow_that_waits_for_a_person_does_not_hold_up_another() -> None:
    store = MemoryStore(lambda: START)
    engine = Engine(store)
    for issue in (101, 102):
        engine.start(started({"test-runner": ()}, {"issue": issue}))

    stuck, other = "0f0f0f0f-101-1", "0f0f0f0f-102-1"
    for attempt in (1, 2):
        (held,) = _found(store, stuck).tickets
        event = finished(held.ticket, errs(), "tree-0")
        assert event.attempt == attempt
        engine.apply(stuck, event, operation=f"run-{attempt}")
    (held,) = _found(store, other).tickets
    engine.apply(other, finished(held.ticket, passes(), "tree-0"), operation="run")

    assert engine.state(stuck).paused
    assert not _found(store, stuck).tickets
    assert engine.state(other).outcome is WorkflowOutcome.SUCCESS


def _found(store: MemoryStore, workflow: str) -> Snapshot:
    found = store.read(workflow)
    assert found is not None
    return found


@pytest.mark.proves("B60", "A93")
def test_every_iteration_is_kept_with_its_time_and_the_fixes_that_answered_it() -> None:
    fixes = [Fix(fixes=("first",), takes_seconds=60.0), Fix(fixes=("second",), takes_seconds=30.0)]
    stage = Stage([fails("a", "b"), fails("b", "c"), passes()], answers=fixes).run()

    runs = stage.active.runs
    assert [(run.number, run.passed, run.fixes) for run in runs] == [
        (1, False, ("first",)),
        (2, False, ("second",)),
        (3, True, ()),
    ]
    assert [(run.at - START).total_seconds() for run in runs] == [0.0, 60.0, 90.0]
    body = stage.message("REVALRES-101-test-runner-2").body
    assert isinstance(body, RevalidationResult)
    assert (body.comparison.resolved, body.comparison.persisting, body.comparison.new) == (
        ("a",),
        ("b",),
        ("c",),
    )


@pytest.mark.proves("B15", "A92")
def test_each_specialist_has_its_own_iterations() -> None:
    runs = {"unit-test": [fails("a"), fails("b"), passes()], "security": [fails("x"), passes()]}
    stage = Stage(runs).run()

    counts = {entry.name: entry.iteration for entry in stage.state.specialists if entry.applicable}
    assert counts == {"unit-test": 3, "security": 2}
    for message in stage.messages:
        assert message.iteration <= message.max_iterations == 5


@pytest.mark.proves("A8", "R8")
def test_an_unrequested_completion_changes_nothing() -> None:
    stage = Stage([fails("a")], answers=None)

    refusal = stage.refused(lambda: stage.complete())

    assert "FIXDONE" in refusal or "no fix is awaited" in refusal
    with pytest.raises(Unexpected):
        stage.acknowledge()
