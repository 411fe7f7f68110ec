"""Workflows that work for others, through real workers: the examples' agents, real checks, real commits."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixloop.engine.bridging import child_of
from fixloop.intake.feature import Feature
from fixloop.intake.submission import enqueue
from tests.fixtures.crews import Crews
from tests.fixtures.deployment import ROOT, Deployment, deployed
from tests.fixtures.repositories import git

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"
HANDOFFS = EXAMPLES / "handoff" / "fixloop.toml"
CHECK = '[specialist.unit-test]\ncommand = "python tools/check.py"\n'
TOOL = """\
import pathlib, sys
text = pathlib.Path("tokens.py").read_text()
sys.exit("expires" not in text and "tokens.py:4: a token never ends")
"""


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("bridging")
    with deployed(redis_url, folder, FIXLOOP_CREW="workers.commands.crew:commands") as running:
        yield running


def copied(folder: Path, example: str, configuration: str, tool: str = "") -> Path:
    """An example as a repository, with another configuration."""
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "fixloop.toml").write_text(configuration)
    if tool:
        (folder / "tools").mkdir()
        (folder / "tools" / "check.py").write_text(tool)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start")
    return folder


def loop_of(deployment: Deployment, ticket: str) -> tuple[str, str, int]:
    """Verdict, outcome and steps of the child that works for a ticket."""
    found = deployment.store.read(child_of(ticket))
    assert found is not None
    return found.fields["verdict"], found.fields["outcome"], len(deployment.store.history(child_of(ticket)))


@pytest.mark.proves("D53")
def test_the_fixer_of_a_loop_is_a_workflow_of_handoffs(deployment: Deployment, tmp_path: Path) -> None:
    fixed = f'[fixer]\ncommand = "fixloop:handoff"\n{HANDOFFS.read_text()}{CHECK}'
    project = copied(tmp_path / "v", "handoff", fixed, TOOL)
    cache = deployment.folder / "cache"

    loop = enqueue(deployment.engine, Feature(issue=47, repo=str(project)), cache=cache).workflow
    deployment.finished(loop)

    state = deployment.engine.state(loop)
    ticket = f"{loop}.unit-test.fix.1.1"
    child = deployment.store.read(child_of(ticket))
    assert child is not None
    assert (state.verdict, child.fields["outcome"]) == ("passed", "success")
    assert child.fields["parent"] == ticket
    assert state.specialist("unit-test").runs[0].fixes == (
        "changed specs/20260122-user-auth.md",
        "changed tokens.py",
    )
    assert "expires" in git(project, "show", "fixloop/47:tokens.py")


@pytest.mark.proves("C50", "C53")
def test_cycles_and_handoffs_end_in_the_real_checks(deployment: Deployment, tmp_path: Path) -> None:
    gauntlet = (EXAMPLES / "cycle" / "gauntlet.toml").read_text()
    reviewed = HANDOFFS.read_text().replace("python agents/reviewer.py", "fixloop:validation") + CHECK
    cycles, handoffs = Crews(deployment, "cycle"), Crews(deployment, "handoff")
    in_cycle = copied(tmp_path / "c", "cycle", gauntlet)
    in_handoffs = copied(tmp_path / "h", "handoff", reviewed, TOOL)
    cycle, handoff = cycles.begin_in(in_cycle, 9), handoffs.begin_in(in_handoffs, 12)
    whole, passed_on = cycles.ended(cycle), handoffs.ended(handoff)

    assert (whole.outcome, whole.iteration) == ("success", 2)
    first, second = (loop_of(deployment, f"{cycle}.vas.{run}.1") for run in (1, 2))
    assert first[:2] == ("passed_with_known_issues", "skipped")
    assert second[:2] == ("passed", "success")
    assert "unit-test: " in whole.feedback_log[0].content
    assert (passed_on.outcome, passed_on.iteration) == ("success", 2)
    [request] = [one for one in passed_on.messages if one.type == "fix_request"]
    assert [issue["description"][:10] for issue in request.payload["issues"]]
    assert deployment.store.verify(cycle) == deployment.store.verify(handoff) == []
    assert "PASSWORDS" in git(in_cycle, "show", "fixloop/9:login.py")
    assert "expires" in git(in_handoffs, "show", "fixloop/12:tokens.py")
    validation = in_cycle / ".workflow/.cycle/cycle-9.progress/vas/validation.md"
    assert "2 of 2 specialists passed" in validation.read_text()
