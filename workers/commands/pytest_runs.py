"""Single tests of pytest's, run once more in one process by a plugin of our own, which may wait for them."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from fixloop.configuration.model import Check
from fixloop.files.atomic import File, place
from fixloop.integrity.tool_call import call_of
from fixloop.machine.guard import GuardedResult
from fixloop.reports.document import bytes_if_any
from workers.commands.check_run import Run
from workers.workspaces.ground import Ground

PLUGIN: Final = "fixloop_proof"
_TOOLS: Final = {"pytest": 1, "py.test": 1}
# Read and never imported: pytest is the project's, not ours.
_SOURCE: Final = resources.files("fixloop.integrity") / "proof_plugin.py"
Runs = Sequence[dict[str, Any]]
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


class Rerun:
    """Tests that run once more in one process. It may be begun before it is known which tests these are: pytest is
    loaded then, and waits with all that is the project's. `elsewhere`: with another folder for temporary files and
    another hash seed."""

    def __init__(self, run: Run, check: Check, ground: Ground, *, elsewhere: bool = False) -> None:
        self._run, self._check, self._ground, self._elsewhere = run, check, ground, elsewhere
        self._thread = ThreadPoolExecutor(1, "fixloop-rerun")
        self._ended: Future[Any] | None = None
        self._own = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch))

    def begin(self, behind: Callable[[Run], object] | None = None) -> Future[Any]:
        """Start the process, which has ended with what is returned. `behind`: starts pytest for something else, by the
        `Run` that it is given, and the tests are run behind that."""
        directory, argv = self._ground.workspace.directory, list(self._check.command)
        (self._own / "plugin").mkdir()
        (self._own / "plugin" / f"{PLUGIN}.py").write_bytes(_SOURCE.read_bytes())
        for kind in self._check.report_kinds():
            place = str(self._ground.report_path(self._check.name, kind))
            argv = [part.replace("{" + kind + "}", place) for part in argv]
        told = {name: str(self._own / name) for name in ("tests", "results")} | {"root": str(directory)}
        call = call_of(argv, _TOOLS) if behind else None
        more = {"behind": call.rest} if call else {}

        def with_tests(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
            addopts = env.get("PYTEST_ADDOPTS", "")
            (self._own / "told").write_text(json.dumps(told | more | {"addopts": addopts}))
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

        environment = {} if behind else self._ground.check_environment(self._check.env)
        start = partial(behind, with_tests) if behind else partial(with_tests, argv, directory, environment)
        self._ended = self._thread.submit(start)
        return self._ended

    def played(self, runs: Runs, seconds: float) -> Outcomes:
        """What became of the tests of each run, within so long; nothing where they could not be run so."""
        self._tell(runs, seconds)
        (self._ended or self.begin()).result()
        try:
            # The code that is tested could have written there, too.
            return _OUTCOMES.validate_json(bytes_if_any(self._own / "results"))
        except ValueError:
            return {}

    def _tell(self, runs: Runs, seconds: float) -> None:
        at = f"{self._ground.workspace.directory}/"
        told = [run | {"args": [f"{at}{name}" for name in run["args"]]} for run in runs if run["args"]]
        asked = File.of(f"{self._own.name}/tests", json.dumps({"runs": told, "seconds": seconds}).encode())
        place(self._own.parent, [asked])

    def close(self) -> None:
        """Wait for its end; where it still waits for tests, it ends without."""
        if not (self._own / "tests").exists():
            self._tell([], 0)
        self._thread.shutdown()


def played(
    run: Run, check: Check, ground: Ground, runs: Runs, seconds: float, *, elsewhere: bool = False
) -> Outcomes:
    """What became of the tests of each run, in one process that is started for them."""
    with closing(Rerun(run, check, ground, elsewhere=elsewhere)) as rerun:
        return rerun.played(runs, seconds)
