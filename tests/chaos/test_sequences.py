"""
Random sequences of everything that can happen: 250 in `make test`, 10,000 in `make chaos`.

A sequence that breaks a rule is shortened by hypothesis and printed as the calls that lead there.
"""

from typing import Final

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fixloop.protocol.messages import Reason
from fixloop.protocol.state import WorkflowOutcome
from tests.chaos.feature import Feature

FEW: Final = 20
PART: Final = 125
"""The number in one process: hypothesis remembers every choice it has made."""
REACHED: Final = {
    *(
        "failure-report",
        "fix-completion",
        "revalidation-result",
        "success",
        "escalation",
        "error-notification",
    ),
    *(Reason.MAX_ITERATIONS, Reason.DEADLOCK, WorkflowOutcome.SUCCESS, WorkflowOutcome.SKIPPED),
    Reason.INTEGRITY_HOLD,
    *("reopened", "paused"),
}
"""What every part has to reach, or it shows little; the long walks reach the rest."""


def _is_chaos() -> bool:
    return settings.get_current_profile_name() == "chaos"


def _parts() -> range:
    return range(80 if _is_chaos() else 2)


@pytest.mark.slow
@pytest.mark.proves("A92", "K37", "K39", "R4")
@pytest.mark.parametrize("part", _parts())
def test_the_protocol_holds_for_any_events_in_any_order(part: int) -> None:
    Feature.seen.clear()

    # Hypothesis also draws constants of the modules that this process has loaded, so a seed does not always do.
    for number in (part + 1, part + 1001, part + 2001):
        if not set(Feature.seen) >= REACHED:
            _play(number, PART)

    assert set(Feature.seen) >= REACHED


@pytest.mark.heavy
@pytest.mark.proves("A69", "A78", "B42", "R8")
def test_the_protocol_holds_for_a_few_sequences() -> None:
    _play(0, min(FEW, settings().max_examples))


def _play(number: int, sequences: int) -> None:
    run_state_machine_as_test(
        seed(number)(Feature),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=40 if _is_chaos() else 25,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
