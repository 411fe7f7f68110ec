"""Single tests of pytest's, run once more in one process by a plugin of our own."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
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


def played(
    run: Run,
    check: Check,
    ground: Ground,
    runs: list[dict[str, Any]],
    seconds: float,
    *,
    elsewhere: bool = False,
    behind: Callable[[Run], object] | None = None,
) -> Outcomes:
    """What became of the tests of each run, in one process; nothing where they could not be run so. `elsewhere`: with
    another folder for temporary files and another hash seed. `behind`: starts pytest for something else, by the `Run`
    that it is given, and the tests are run behind that."""
    directory, argv = ground.workspace.directory, list(check.command)
    own = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch))
    (own / "plugin").mkdir()
    (own / "plugin" / f"{PLUGIN}.py").write_bytes(_SOURCE.read_bytes())
    for kind in check.report_kinds():
        argv = [part.replace("{" + kind + "}", str(ground.report_path(check.name, kind))) for part in argv]
    at = [run | {"args": [f"{directory}/{name}" for name in run["args"]]} for run in runs if run["args"]]
    told = {"root": str(directory), "seconds": seconds, "results": str(own / "results"), "runs": at}
    if behind and (call := call_of(argv, _TOOLS)):
        told["behind"] = call.rest

    def with_tests(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        addopts = env.get("PYTEST_ADDOPTS", "")
        (own / "told").write_text(json.dumps(told | {"addopts": addopts}))
        variables = {
            **env,
            "FIXLOOP_PROOF": str(own / "told"),
            "PYTEST_ADDOPTS": f"{addopts} -p {PLUGIN}",
            "PYTHONPATH": f"{own / 'plugin'}:{env.get('PYTHONPATH', '')}",
        }
        # Short: a socket's path has at most 108 characters.
        with tempfile.TemporaryDirectory(prefix="t") as temporary:
            if elsewhere:
                variables = {"PYTHONHASHSEED": "4241", **variables, "TMPDIR": temporary}
            return run(argv, cwd, variables)

    if behind:
        behind(with_tests)
    elif with_tests(argv, directory, ground.check_environment(check.env)) is None:
        return {}
    try:
        # The code that is tested could have written there, too.
        return _OUTCOMES.validate_json((own / "results").read_bytes())
    except (OSError, ValueError):
        return {}
