"""How a worker's processes start: forked from a supervisor that has loaded what they need."""

from pathlib import Path
from typing import Final

import pytest

from fixloop.machine.health import healths, problems
from tests.fixtures.deployment import Deployment, deployed

pytestmark = pytest.mark.slow

WATCH: Final = """
import os, sys

class Watch:
    def find_spec(self, name, path, target=None):
        with open(os.environ["LOADED_LATE"], "a") as file:
            file.write(name + "\\n")

os.register_at_fork(after_in_child=lambda: sys.meta_path.insert(0, Watch()))
"""


def test_the_processes_of_a_worker_load_almost_nothing_themselves(redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    late = tmp_path / "late"

    with deployed(redis_url, tmp_path, PYTHONPATH=str(tmp_path), LOADED_LATE=str(late)) as deployment:
        deployment.finished(deployment.begin("a -").workflow)
        deployment.until(lambda: is_well(deployment))
        commands = {Path(f"/proc/{each.pid}/cmdline").read_bytes() for each in deployment.processes()}

    assert len(commands) == 1, "not all of them are forks"
    names = set(late.read_text().splitlines())
    assert not {name for name in names if name.startswith(("workers.", "fixloop.testing"))}
    assert len(names) < 20, names


def is_well(deployment: Deployment) -> bool:
    known = list(healths(deployment.folder / "cache"))
    return bool(known) and not any(problems(health, health.at) for health in known)
