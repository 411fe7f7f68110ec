"""The output of `fixloop chaos`, and when it reports a fault."""

from collections import Counter
from typing import Any

import pytest

from fixloop.commands.chaos import report_lines
from fixloop.testing.contrast import Contrast
from fixloop.testing.executions import Execution
from fixloop.testing.report import Report, Verdict
from fixloop.testing.site import Order

WELL = Verdict("d15a57e2-1-1", steps=4, fixes=1)
AGAIN = Execution("d15a57e2-1-1.test-runner.fix.1.1", 7, "fix", "tree-0", 10, 4.0)
LAST = "chaos: 0 lost, 0 doubled, 0 unexplained, 0 stuck, 1 of 1 histories verify (seed 1)"


def report(**more: Any) -> Report:
    told: dict[str, Any] = {
        "order": Order(1, 10, 1),
        "verdicts": (WELL,),
        "left_alone": (WELL,),
        "planned": Counter({"Redis frozen": 10}),
        "done": Counter({"Redis frozen": 10}),
        "executions": 3,
        "repeated": 0,
        "unexplained": (),
        "resumptions": (0.5, 1.0, 2.5),
        "surplus": 1,
        "undisturbed_seconds": 1.0,
        "injured_seconds": 2.0,
    }
    return Report(**{**told, **more})


def test_a_run_without_a_fault_succeeds() -> None:
    assert report().is_well
    lines = list(report_lines(report()))
    assert lines[-1] == LAST
    assert "  10 of 10 × Redis frozen" in lines
    assert "killed in mid-step: 3 began again after 1.0 s (median), 2.5 s (p95), 2.5 s (worst)" in lines
    assert "4 effects in the histories, 1 of them fixes; 0 are there twice" in lines
    assert "3 executions by agents, 0 of a ticket that had begun before" in lines
    assert "4 steps, 1 surplus deliveries (0.25 a step)" in lines


@pytest.mark.parametrize(
    ("wrong", "last"),
    [
        ({"verdicts": (WELL._replace(lost="it is not there"),)}, LAST.replace("0 lost", "1 lost")),
        ({"verdicts": (WELL._replace(doubled=("a fix",)),)}, LAST.replace("0 doubled", "1 doubled")),
        ({"verdicts": (WELL._replace(stuck=True),)}, LAST.replace("0 stuck", "1 stuck")),
        ({"verdicts": (WELL._replace(problems=("entry 2",)),)}, LAST.replace("1 of 1", "0 of 1")),
        ({"unexplained": (AGAIN,)}, LAST.replace("0 unexplained", "1 unexplained")),
        ({"left_alone": (WELL._replace(stuck=True),)}, LAST),
        ({"done": Counter({"Redis frozen": 8})}, LAST),
        (
            {
                "planned": Counter({"Redis frozen": 19, "network cut": 1}),
                "done": Counter({"Redis frozen": 19}),
            },
            LAST,
        ),
    ],
)
def test_each_fault_is_reported_and_fails_the_run(wrong: dict[str, Any], last: str) -> None:
    found = report(**wrong)

    assert not found.is_well
    lines = list(report_lines(found))
    assert lines[-1] == last
    assert lines[-2].startswith("  ")


def test_the_way_workers_were_cut_off_is_reported() -> None:
    told = "by the relay; no network namespace can be made here: unshare: Operation not permitted"

    assert f"workers are cut off {told}" in list(report_lines(report(network=told)))


CHAINS = Contrast(chains=20, ended=16, doubled=61, repeated=62, seconds=56.8, limit_seconds=60.0, injuries=15)


def test_bare_celery_chains_are_shown_for_comparison_and_do_not_count() -> None:
    found = report(contrast=CHAINS)

    assert found.is_well
    assert (
        "bare Celery chains, same plan: 16 of 20 ended in 56.8 s, 61 effects doubled,"
        " 62 steps begun again (15 injuries)"
    ) in list(report_lines(found))


def test_bare_celery_chains_that_timed_out_are_reported() -> None:
    found = report(contrast=CHAINS._replace(seconds=60.4))

    assert any("16 of 20 ended in 60.4 s (the limit)," in line for line in report_lines(found))


def test_a_run_without_duplicated_messages_does_not_prove_them_harmless() -> None:
    order = Order(1, 10, 1, twice=True)

    assert report(order=order, copies=30).is_well
    assert not report(order=order).is_well
    assert "30 messages delivered twice" in list(report_lines(report(order=order, copies=30)))


def test_one_injury_in_ten_may_come_too_late() -> None:
    found = report(done=Counter({"Redis frozen": 9}))

    assert found.is_well
    assert "  1 injuries had no effect, or were planned for tickets that came too late" in list(
        report_lines(found)
    )
