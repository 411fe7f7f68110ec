"""A run of S17's cycle or of S23's handoffs as a user starts it, with agents that are commands, and its result."""

import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.cli import main
from tests.crash.ledger import ISSUE
from tests.crash.scene import Scene, timeless
from tests.fixtures.crews import AGENTS
from tests.fixtures.repositories import git, make_repository
from tests.scenarios.file_steps import on_disk

_AGENT: Final = Path(__file__).parents[1] / "e2e" / "seeds_agent.py"
_OF_A_RUN: Final = {"tip", "duration_seconds", "seconds_by_agent", "updated_at", "deadline", "timestamp"}
_ROLE: Final = """
[{profile}.agent.{agent}]
command = ["sh", "-c", "echo $FIXLOOP_ROLE >> $LEDGER_JOURNAL; exec {python} {program}"]
env = ["LEDGER_JOURNAL"]
"""
_JUDGE: Final = """
[{profile}.agent.{agent}]
command = "fixloop:validation"

[specialist.unit-test]
command = ["sh", "tools/check.sh"]
env = ["LEDGER_JOURNAL"]
"""
_CHECK: Final = """\
echo check >> $LEDGER_JOURNAL
grep -q True auth.py && exit 0
echo "auth.py:2: login fails"
exit 1
"""


class AgentsEnding(NamedTuple):
    """A workflow's result without times: equal for equivalent runs."""

    log: Any
    status: Any
    files: dict[str, str]
    tree: str
    audited: int


class AgentsScene(Scene):
    """One project of such a profile, with all that belongs to its run, below one folder."""

    def __init__(self, folder: Path, profile: str, judge: str = "") -> None:
        """
        Make its project.

        Args:
            judge: the agent whose work a validation loop does, if any.
        """
        self.profile = profile
        self._judge = judge
        super().__init__(folder)

    @property
    def run_words(self) -> tuple[str, ...]:
        return ("run", ".", "--issue", str(ISSUE), "--profile", self.profile)

    def came_to(self) -> AgentsEnding:
        """The result, as the commands and the named files show it."""
        with self._one_redis():
            log = json.loads(self._said_by("log", str(ISSUE), "--json"))
            status = json.loads(self._said_by("status", str(ISSUE), "--json"))
            audited = main(["audit", "verify"])
        named = {path: content for path, content in on_disk(self.project).items() if path.startswith(".")}
        own = str(status.get("cycle_id", ""))
        return AgentsEnding(
            log=_nameless(log, own),
            status=_nameless(status, own),
            files=_nameless(
                {path: text.decode() for path, text in named.items() if ".git/" not in path}, own
            ),
            tree=git(self.project, "rev-parse", f"fixloop/{ISSUE}^{{tree}}"),
            audited=audited,
        )

    def _made(self, settings: str) -> Path:
        roles = "".join(
            _ROLE.format(profile=self.profile, agent=agent, python=sys.executable, program=_AGENT)
            for agent in AGENTS[self.profile]
            if agent != self._judge
        )
        if self._judge:
            roles += _JUDGE.format(profile=self.profile, agent=self._judge)
        files = {
            "fixloop.toml": f'project = "agents"\n{settings}{roles}',
            "README.md": "Users.\n",
            "tools/check.sh": _CHECK,
        }
        return make_repository(self.folder / "project", files)


def _nameless(found: Any, cycle_id: str) -> Any:
    """`found` without times, and without what is random or depends on times: the cycle's id, and commits."""
    if isinstance(found, dict):
        kept = {name: value for name, value in found.items() if name not in _OF_A_RUN}
        return {_nameless(name, cycle_id): _nameless(value, cycle_id) for name, value in kept.items()}
    if isinstance(found, list):
        return [_nameless(value, cycle_id) for value in found]
    return timeless(found.replace(cycle_id, "#") if isinstance(found, str) and cycle_id else found)
