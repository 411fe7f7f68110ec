"""What is kept of runs on a base: bounded, and never in anybody's way."""

import os
from pathlib import Path

from fixloop.protocol.failures import Failure
from workers.commands.baseline import MOST, Baseline, Baselines, key_of

FOUND = Baseline(failures=(Failure(name="F401", file="a.py", line=3),))


def test_what_was_kept_is_found_under_its_key_alone(tmp_path: Path) -> None:
    kept = Baselines(tmp_path)
    kept.keep(key_of("tree", "check"), FOUND)

    assert kept.find(key_of("tree", "check")) == FOUND
    assert kept.find(key_of("treec", "heck")) is None


def test_the_one_that_nobody_asked_for_longest_goes_first(tmp_path: Path) -> None:
    kept = Baselines(tmp_path)
    for number in range(MOST):
        kept.keep(str(number), FOUND)
        os.utime(tmp_path / "baselines" / f"{number}.json", (number, number))

    kept.find("0")
    kept.keep("one more", FOUND)

    assert len(list((tmp_path / "baselines").iterdir())) == MOST
    assert [kept.find(key) for key in ("0", "1", "one more")] == [FOUND, None, FOUND]


def test_a_cache_that_cannot_be_written_keeps_nothing_and_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "baselines").write_text("in the way")
    kept = Baselines(tmp_path)

    kept.keep("key", FOUND)

    assert kept.find("key") is None
