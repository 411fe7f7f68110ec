"""What may happen to a workflow, as hypothesis strategies: legal results and answers, and made up events."""

from typing import Any

from hypothesis import strategies as st

from fixloop.protocol import events as ev
from fixloop.protocol.state import Completion, Limits, SpecialistState, State
from tests.scenarios.script import SILENT, BadAnswer, Breaks, Fix, Result, errs, fails, failure, passes

SPECIALISTS = ("unit-test", "test-runner", "security")
CHECK = ("pytest",)
TREES = st.sampled_from([None, None, None, "tree-x", "tree-y"])


def _failed(names: str, lists: bool) -> Result:
    found = tuple(failure(name, check="pytest") for name in names)
    return fails(*found, lists_passes=CHECK if lists else ())


NAMES = st.sampled_from(["a", "b", "ab", "abc", "c"])
FAILING = st.builds(_failed, NAMES, st.booleans())
RESULTS = st.one_of(
    FAILING,
    st.builds(lambda names: passes(passed=tuple(names), lists_passes=CHECK), NAMES),
    st.just(passes()),
    st.just(passes()),
    st.sampled_from([errs(), Result("failed"), Result("skipped", skipped_checks=CHECK)]),
    st.just(passes(skipped_checks=("optional",))),
    st.just(passes(tree="tree-of-somebody-else")),
    st.just(SILENT),
)
ANSWERS = st.one_of(
    st.builds(lambda tree: Fix(tree=tree), TREES),
    st.builds(lambda tree: Fix(tree=tree), TREES),
    st.sampled_from([Breaks(), Breaks(undelivered=True), Breaks(fatal=True), BadAnswer(), SILENT]),
)
LIMITS = st.sampled_from(
    [Limits(), Limits(iteration_seconds=7200.0), Limits(iteration_seconds=None), Limits(fix_seconds=None)]
)
STEPS = st.sampled_from(["validate", "recheck", "confirm"])
NUMBERS = st.integers(min_value=0, max_value=7)
WHO = st.sampled_from([*SPECIALISTS, "e2e-accessibility", "nobody"])
MESSAGE_IDS = st.sampled_from(
    ["VFR-101-test-runner-1", "VFR-101-unit-test-1", "ESC-101-unit-test-1", "VFR-1"]
)
WILD: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(
        ev.RunFinished,
        step=STEPS,
        specialist=WHO,
        iteration=NUMBERS,
        attempt=st.integers(min_value=1, max_value=3),
        outcome=st.sampled_from(["passed", "failed", "error", "skipped"]),
        tree=st.sampled_from(["tree-0", "tree-1", "tree-x", ""]),
        failures=st.sampled_from([(), (failure("a"),), (failure("a", error_type="vanished"),)]),
        lists_passes=st.sampled_from([(), CHECK]),
    ),
    st.builds(ev.ReportDelivered, specialist=WHO, iteration=NUMBERS),
    st.builds(ev.FixAcknowledged, specialist=WHO, iteration=NUMBERS, by=st.just("somebody")),
    st.builds(
        ev.FixCompleted,
        specialist=WHO,
        completion=st.builds(Completion, iteration=NUMBERS, by=st.just("somebody"), tree=st.just("tree-x")),
    ),
    st.builds(ev.FixFailed, specialist=WHO, iteration=NUMBERS, attempt=NUMBERS, error=st.just("x")),
    st.builds(ev.AnswerRejected, specialist=WHO, iteration=NUMBERS, violations=st.just(("x",))),
    st.builds(ev.BlockerSignalled, by=st.just("somebody"), text=st.just("x")),
    st.builds(
        ev.DeadlineReached,
        name=st.sampled_from(
            [
                "main-agent-fix",
                "main-agent-fix.escalation",
                "total-iteration",
                "re-validation",
                "receipt",
                "unknown",
            ]
        ),
        due=st.floats(min_value=0.0, max_value=9000.0),
    ),
    st.builds(ev.ManualFixDone, tip=st.just("c"), tree=st.just("tree-y")),
    st.builds(ev.PersonNotified, detail=st.just("told")),
    st.builds(
        ev.BranchPushed,
        branch=st.sampled_from(["", "fixloop/1"]),
        attempt=st.integers(min_value=1, max_value=4),
        error=st.sampled_from(["", "not yours"]),
        fatal=st.booleans(),
    ),
    st.builds(ev.MessageStored, message_id=MESSAGE_IDS, attempt=st.integers(min_value=1, max_value=4)),
    st.builds(
        ev.DeliveryFailed,
        message_id=MESSAGE_IDS,
        attempt=st.integers(min_value=1, max_value=4),
        error=st.just("nobody is there"),
    ),
    st.builds(
        ev.BaselineBegun,
        specialist=st.sampled_from(SPECIALISTS),
        check=st.just("ruff"),
        base=st.just("1a2b3c4d"),
    ),
    st.builds(ev.ReceiptGiven, uid=st.just("uid"), message_id=MESSAGE_IDS, by=st.just("somebody")),
)
FIXING: list[dict[str, Any]] = [
    {"fixer": "command"},
    {"fixer": "outside"},
    {"fixer": "outside", "agent": "coder"},
    {"fixer": "outside", "agent": "coder", "acks": True},
]
WORKFLOWS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "runs": st.sampled_from([SPECIALISTS, SPECIALISTS[1:], SPECIALISTS[:1]]).map(
            lambda names: {name: () for name in names}
        ),
        "fixing": st.sampled_from(FIXING),
        "max_iterations": st.sampled_from([5, 5, 3, 2, 1]),
        "limits": LIMITS,
        "notify": st.booleans(),
        "push": st.booleans(),
        "bundle_fix_request": st.sampled_from([True, True, False]),
    }
).map(lambda told: {**told.pop("fixing"), **told})


def near(event: ev.Event, state: State) -> ev.Event:
    """`event` changed to what `state` may be waiting for."""
    active: SpecialistState = state.active
    told = {
        "specialist": active.name,
        "iteration": active.iteration,
        "attempt": max(1, state.attempts),
        "tree": state.tree,
    }
    if (
        isinstance(event, ev.MessageStored | ev.DeliveryFailed | ev.ReceiptGiven)
        and state.delivery is not None
    ):
        told |= {"message_id": state.delivery.message_id, "attempt": state.delivery.attempt}
    return event.model_copy(update={key: value for key, value in told.items() if hasattr(event, key)})
