"""Stored results of runs on a base: bounded, and never the cause of an error."""

import os
from pathlib import Path

import pytest

from fixloop.protocol.failures import Failure
from workers.commands.baseline import MOST, Baseline, keep_baseline, kept_baseline, key_of

FOUND = Baseline(failures=(Failure(name="F401", file="a.py", line=3),))


def test_a_baseline_is_found_only_under_its_key(tmp_path: Path) -> None:
    keep_baseline(tmp_path, key_of("tree", "check"), FOUND)

    assert kept_baseline(tmp_path, key_of("tree", "check")) == FOUND
    assert kept_baseline(tmp_path, key_of("treec", "heck")) is None


@pytest.mark.heavy
def test_the_least_recently_used_baseline_is_removed_first(tmp_path: Path) -> None:
    for number in range(MOST):
        keep_baseline(tmp_path, str(number), FOUND)
        os.utime(tmp_path / "baselines" / f"{number}.json", (number, number))

    kept_baseline(tmp_path, "0")
    keep_baseline(tmp_path, "one more", FOUND)

    assert len(list((tmp_path / "baselines").iterdir())) == MOST
    assert [kept_baseline(tmp_path, key) for key in ("0", "1", "one more")] == [FOUND, None, FOUND]


def test_an_unwritable_cache_keeps_nothing_and_causes_no_error(tmp_path: Path) -> None:
    (tmp_path / "baselines").write_text("in the way")

    keep_baseline(tmp_path, "key", FOUND)

    assert kept_baseline(tmp_path, "key") is None
