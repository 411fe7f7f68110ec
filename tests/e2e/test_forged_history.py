"""A fixer that reaches the embedded server and writes what fixloop would write there: nothing of it can pass."""

import sys
from pathlib import Path

import pytest

from tests.fixtures.project import TOML, Project

pytestmark = pytest.mark.slow

# Says in a person's name that the phase may be skipped, in a history whose every digest and decision is right.
_FORGE = """\
import os
from pathlib import Path
from fixloop.engine.engine import Engine
from fixloop.protocol import events as ev
from fixloop.protocol.messages import Decision
from fixloop.servers.keeper import password_in
from fixloop.store.redis_store import RedisStore
data = Path({data!r})
store = RedisStore(f"unix://:{{password_in(data)}}@{{(data / 'socket').read_text()}}")
((workflow, _),) = store.workflows()
engine = Engine(store)
engine.apply(workflow, ev.BlockerSignalled(by="fixer", text="forged"), operation="one")
engine.apply(workflow, ev.DecisionMade(decision=Decision.SKIP, by="User"), operation="two")
"""


@pytest.mark.parametrize("what", ["a decision", "only what asks for one"])
def test_a_fixer_s_forged_history_neither_ends_nor_escalates_the_workflow(tmp_path: Path, what: str) -> None:
    project = Project(tmp_path / "shop")
    forge = tmp_path / "forge.py"
    lines = _FORGE.format(data=str(project.folder / ".fixloop/redis")).splitlines()
    forge.write_text("\n".join(lines if what == "a decision" else lines[:-1]))
    project.write("fixloop.toml", f'[fixer]\ncommand = ["{sys.executable}", "{forge}"]\n\n{TOML}')

    told = project.fixloop("run", FIXLOOP_SANDBOX="off")

    assert told.code not in (0, 3), told.out
    assert "was not written by fixloop" in told.err
    audit = project.fixloop("audit", "verify")
    assert audit.code == 1
    assert "has no seal" in audit.out
