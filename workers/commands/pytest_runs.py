"""Single tests of pytest's, run once more in one process by a plugin of our own."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from fixloop.configuration.model import Check
from fixloop.integrity.tool_call import call_of
from fixloop.machine.guard import GuardedResult
from workers.commands.check_run import Run
from workers.workspaces.ground import Ground

PLUGIN: Final = "fixloop_proof"
_TOOLS: Final = {"pytest": 1, "py.test": 1}
# Read and never imported: pytest is the project's, not ours.
_SOURCE: Final = resources.files("fixloop.integrity") / "proof_plugin.py"
Outcomes = Mapping[str, Mapping[str, str]]
"""What became of each test, in each of the runs of a process."""
_OUTCOMES: Final = TypeAdapter(dict[str, dict[str, str]])


def is_pytest(check: Check) -> bool:
    """Whether it starts pytest, and its report names the tests."""
    return "junit" in check.report_kinds() and call_of(check.command, _TOOLS) is not None


def plain_run(tests: Sequence[str]) -> dict[str, Any]:
    """These tests in the usual order and conditions."""
    bases = list(dict.fromkeys(name.partition("[")[0] for name in tests))
    return {"name": "plain", "args": bases, "only": tests, "varied": False}


def named(found: Outcomes, run: str, outcome: str) -> set[str]:
    """The tests that ended so in a run."""
    return {name for name, ended in found.get(run, {}).items() if ended == outcome}


class Playing:
    """Runs of tests in one process of pytest's, `behind` what it was started for, or in place of that. `elsewhere`:
    with another folder for temporary files and another hash seed."""

    def __init__(
        self,
        run: Run,
        check: Check,
        ground: Ground,
        runs: list[dict[str, Any]],
        seconds: float,
        *,
        elsewhere: bool = False,
        behind: bool = False,
    ) -> None:
        self._run, self._elsewhere = run, elsewhere
        self._own = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch))
        (self._own / "plugin").mkdir()
        (self._own / "plugin" / f"{PLUGIN}.py").write_bytes(_SOURCE.read_bytes())
        self.argv = list(check.command)
        for kind in check.report_kinds():
            path = str(ground.report_path(check.name, kind))
            self.argv = [part.replace("{" + kind + "}", path) for part in self.argv]
        call, directory = call_of(self.argv, _TOOLS), ground.workspace.directory
        at = [run | {"args": [f"{directory}/{name}" for name in run["args"]]} for run in runs if run["args"]]
        self._told = {
            "root": str(directory),
            "seconds": seconds,
            "results": str(self._own / "results"),
            "runs": at,
        }
        if behind and call is not None:
            self._told["behind"] = call.rest

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        """Run a command of pytest's under guard, as `Run` does, and these tests with it."""
        addopts = env.get("PYTEST_ADDOPTS", "")
        (self._own / "told").write_text(json.dumps(self._told | {"addopts": addopts}))
        variables = {
            **env,
            "FIXLOOP_PROOF": str(self._own / "told"),
            "PYTEST_ADDOPTS": f"{addopts} -p {PLUGIN}",
            "PYTHONPATH": f"{self._own / 'plugin'}:{env.get('PYTHONPATH', '')}",
        }
        # Short: a socket's path has at most 108 characters.
        with tempfile.TemporaryDirectory(prefix="t") as temporary:
            if self._elsewhere:
                variables = {"PYTHONHASHSEED": "4241", **variables, "TMPDIR": temporary}
            return self._run(argv, cwd, variables)

    def outcomes(self) -> Outcomes:
        """What became of the tests of each run; nothing where they could not be run so."""
        try:
            # The code that is tested could have written there, too.
            return _OUTCOMES.validate_json((self._own / "results").read_bytes())
        except (OSError, ValueError):
            return {}


def played(
    run: Run,
    check: Check,
    ground: Ground,
    runs: list[dict[str, Any]],
    seconds: float,
    *,
    elsewhere: bool = False,
) -> Outcomes:
    """What became of the tests of each run, in a process that does nothing else."""
    playing = Playing(run, check, ground, runs, seconds, elsewhere=elsewhere)
    ended = playing.run(playing.argv, ground.workspace.directory, ground.check_environment(check.env))
    return playing.outcomes() if ended is not None else {}
