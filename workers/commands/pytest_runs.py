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
from workers.commands.check_run import Run
from workers.workspaces.ground import Ground

PLUGIN: Final = "fixloop_proof"
# Read and never imported: pytest is the project's, not ours.
_SOURCE: Final = resources.files("fixloop.integrity") / "proof_plugin.py"
Outcomes = Mapping[str, Mapping[str, str]]
"""What became of each test, in each of the runs of a process."""
_OUTCOMES: Final = TypeAdapter(dict[str, dict[str, str]])


def is_pytest(check: Check) -> bool:
    """Whether it starts pytest, and its report names the tests."""
    return "junit" in check.report_kinds() and call_of(check.command, {"pytest": 1, "py.test": 1}) is not None


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
) -> Outcomes:
    """What became of the tests of each run, in one process; nothing where they could not be run so. `elsewhere`: with
    another folder for temporary files and another hash seed."""
    directory, environment = ground.workspace.directory, ground.check_environment(check.env)
    own, argv = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch)), list(check.command)
    for kind in check.report_kinds():
        argv = [part.replace("{" + kind + "}", str(ground.report_path(check.name, kind))) for part in argv]
    (own / "plugin").mkdir()
    (own / "plugin" / f"{PLUGIN}.py").write_bytes(_SOURCE.read_bytes())
    addopts = environment.get("PYTEST_ADDOPTS", "")
    at = [run | {"args": [f"{directory}/{name}" for name in run["args"]]} for run in runs if run["args"]]
    told = {"root": str(directory), "seconds": seconds, "results": str(own / "results"), "addopts": addopts}
    (own / "told").write_text(json.dumps(told | {"runs": at}))
    environment |= {
        "FIXLOOP_PROOF": str(own / "told"),
        "PYTEST_ADDOPTS": f"{addopts} -p {PLUGIN}",
        "PYTHONPATH": f"{own / 'plugin'}:{environment.get('PYTHONPATH', '')}",
    }
    # Short: a socket's path has at most 108 characters.
    with tempfile.TemporaryDirectory(prefix="t") as temporary:
        if elsewhere:
            environment = {"PYTHONHASHSEED": "4241", **environment, "TMPDIR": temporary}
        if run(argv, directory, environment) is None:
            return {}
    try:
        # The code that is tested could have written there, too.
        return _OUTCOMES.validate_json((own / "results").read_bytes())
    except (OSError, ValueError):
        return {}
