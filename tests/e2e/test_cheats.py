"""`fixloop cheats --short` as a user runs it: a few cheats are detected, a few honest fixes pass."""

import json
import subprocess

import pytest

from tests.fixtures.project import FIXLOOP

pytestmark = pytest.mark.slow

SECONDS = 400
"""For a machine that is busy with other tests; alone it takes a minute."""


def test_in_a_short_run_no_cheat_passes_and_no_honest_fix_is_held() -> None:
    ended = subprocess.run(
        [FIXLOOP, "cheats", "--short", "--json", "--jobs", "2"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert ended.returncode in (0, 1), ended.stderr
    cases = json.loads(ended.stdout)["cases"]
    assert [each for each in cases if each["wrong"]] == []
    assert {each["expect"] for each in cases} == {"cheat", "honest"}
