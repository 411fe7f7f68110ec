"""Reruns single pytest tests in one process, through a fixloop plugin that can start before the tests are known."""

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
# Read, never imported: pytest belongs to the project.
_SOURCE: Final = resources.files("fixloop.integrity") / "proof_plugin.py"
Runs = Sequence[dict[str, Any]]
Outcomes = Mapping[str, Mapping[str, str]]
"""The outcome of each test, by run of a process and test."""
_OUTCOMES: Final = TypeAdapter(dict[str, dict[str, str]])


def is_pytest(check: Check) -> bool:
    """Whether the check starts pytest, and its report names the tests."""
    return "junit" in check.report_kinds() and call_of(check.command, _TOOLS) is not None


def plain_run(tests: Sequence[str]) -> dict[str, Any]:
    """A run of these tests in the usual order and under the usual conditions."""
    bases = list(dict.fromkeys(name.partition("[")[0] for name in tests))
    return {"name": "plain", "args": bases, "only": tests, "varied": False}


def named(found: Outcomes, run: str, outcome: str) -> set[str]:
    """The tests with this outcome in a run."""
    return {name for name, ended in found.get(run, {}).items() if ended == outcome}


class Rerun:
    """A rerun of tests in one process. It may begin before the tests are known: pytest then loads nothing of the
    project until they are. `elsewhere`: with another folder for temporary files and another hash seed."""

    def __init__(self, run: Run, check: Check, ground: Ground, *, elsewhere: bool = False) -> None:
        self._run, self._check, self._ground, self._elsewhere = run, check, ground, elsewhere
        self._thread = ThreadPoolExecutor(1, "fixloop-rerun")
        self._ended: Future[Any] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch))

    def begin(self, behind: Callable[[Run], object] | None = None) -> Future[Any]:
        """Start the process; the returned future completes when it ends. `behind`: starts pytest for another purpose
        with the given `Run`; the tests run after that."""
        directory, argv = self._ground.workspace.directory, list(self._check.command)
        (self._folder / "plugin").mkdir()
        (self._folder / "plugin" / f"{PLUGIN}.py").write_bytes(_SOURCE.read_bytes())
        for kind in self._check.report_kinds():
            place = str(self._ground.report_path(self._check.name, kind))
            argv = [part.replace("{" + kind + "}", place) for part in argv]
        paths = {name: str(self._folder / name) for name in ("tests", "results")} | {"root": str(directory)}
        call = call_of(argv, _TOOLS) if behind else None
        more = {"behind": call.rest} if call else {}

        def with_tests(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
            addopts = env.get("PYTEST_ADDOPTS", "")
            (self._folder / "told").write_text(json.dumps(paths | more | {"addopts": addopts}))
            variables = {
                **env,
                "FIXLOOP_PROOF": str(self._folder / "told"),
                "PYTEST_ADDOPTS": f"{addopts} -p {PLUGIN}",
                "PYTHONPATH": f"{self._folder / 'plugin'}:{env.get('PYTHONPATH', '')}",
            }
            # A short name, because a socket's path has at most 108 characters.
            with tempfile.TemporaryDirectory(prefix="t") as temporary:
                if self._elsewhere:
                    variables = {"PYTHONHASHSEED": "4241", **variables, "TMPDIR": temporary}
                return self._run(argv, cwd, variables)

        environment = {} if behind else self._ground.check_environment(self._check.env)
        start = partial(behind, with_tests) if behind else partial(with_tests, argv, directory, environment)
        self._ended = self._thread.submit(start)
        return self._ended

    def played(self, runs: Runs, seconds: float) -> Outcomes:
        """The outcomes of the tests of each run, within this time; empty if they could not run."""
        self._write_tests(runs, seconds)
        (self._ended or self.begin()).result()
        try:
            # Validate: the tested code could have written there, too.
            return _OUTCOMES.validate_json(bytes_if_any(self._folder / "results"))
        except ValueError:
            return {}

    def _write_tests(self, runs: Runs, seconds: float) -> None:
        at = f"{self._ground.workspace.directory}/"
        absolute = [run | {"args": [f"{at}{name}" for name in run["args"]]} for run in runs if run["args"]]
        wanted = json.dumps({"runs": absolute, "seconds": seconds}).encode()
        place(self._folder.parent, [File.of(f"{self._folder.name}/tests", wanted)])

    def close(self) -> None:
        """Wait for the end of the process; if it still waits for tests, it ends without any."""
        if not (self._folder / "tests").exists():
            self._write_tests([], 0)
        self._thread.shutdown()


def played(
    run: Run, check: Check, ground: Ground, runs: Runs, seconds: float, *, elsewhere: bool = False
) -> Outcomes:
    """The outcomes of the tests of each run, in one new process."""
    with closing(Rerun(run, check, ground, elsewhere=elsewhere)) as rerun:
        return rerun.played(runs, seconds)
