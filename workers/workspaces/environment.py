"""The environment of checks and agents: an allow-list, new caches, and imports from the workspace first.

Owns every variable that a command sees, and which parts of the real home folder are linked in a check's own: caches and
installed tools. The rest of the worker's environment is left out: no check may depend on it.
"""

import os
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fixloop.machine.interpreters import Interpreter
from fixloop.machine.variables import allowed_variables
from workers.workspaces.interpreter import import_roots
from workers.workspaces.workspace import Workspace

CAPTURED: Final = "-o junit_logging=all -o junit_log_passing_tests=false"
"""Makes pytest's report contain a failing test's output, however pytest is started; the project's own addopts stay."""
_HOME: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# Tests that commit need an identity; the user's own is a setting.
_GITCONFIG: Final = "[user]\n\tname = fixloop\n\temail = fixloop@localhost\n[safe]\n\tdirectory = *\n"


def environment_for(
    workspace: Workspace, interpreter: Interpreter, variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of all commands in a workspace, with new cache directories in its scratch folder."""
    given = os.environ if variables is None else variables
    caches = Path(tempfile.mkdtemp(prefix="run-", dir=workspace.scratch))
    made = {
        "PYTEST_ADDOPTS": CAPTURED,
        "PYTHONPATH": os.pathsep.join(
            map(str, import_roots(interpreter, workspace.directory, workspace.path))
        ),
        # The caches of tools: an edit of the same size in the same second would otherwise run old bytecode.
        "PYTHONPYCACHEPREFIX": str(caches / "pycache"),
        "MYPY_CACHE_DIR": str(caches / "mypy"),
        "RUFF_CACHE_DIR": str(caches / "ruff"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(caches / "hypothesis"),
        "COVERAGE_FILE": str(caches / ".coverage"),
        # One line for each finding and each badly formatted file; an older ruff does not know it.
        "RUFF_OUTPUT_FORMAT": "concise",
    }
    if (workspace.directory / "Cargo.toml").is_file():
        # Outside the checkout, once for all checks of a workspace. Workspaces cannot share it: Cargo names its outputs
        # by the path within the project and compares dates, so one would run the tests of another one's code.
        made["CARGO_TARGET_DIR"] = str(workspace.scratch / "cargo-target")
    if interpreter.path:
        # The folder in which `python` is the chosen interpreter; created if that has another name.
        programs = Path(interpreter.path).parent
        if not interpreter.prefix and not (programs / "python").exists():
            programs = caches / "bin"
            programs.mkdir()
            (programs / "python").symlink_to(interpreter.path)
        made["PATH"] = os.pathsep.join([str(programs), given.get("PATH", os.defpath)])
    if interpreter.prefix:
        made["VIRTUAL_ENV"] = interpreter.prefix
    return allowed_variables(given) | made


def with_named(made: Mapping[str, str], names: Iterable[str], variables: Mapping[str, str]) -> dict[str, str]:
    """With further variables: their module paths come after the workspace's, their pytest options before fixloop's."""
    further = {name: variables[name] for name in names if name in variables}
    if "PYTHONPATH" in further:
        further["PYTHONPATH"] = os.pathsep.join((made["PYTHONPATH"], further["PYTHONPATH"]))
    if "PYTEST_ADDOPTS" in further:
        further["PYTEST_ADDOPTS"] = f"{further['PYTEST_ADDOPTS']} {made['PYTEST_ADDOPTS']}"
    return {**made, **further}


def allowed_names(names: Iterable[str], *, shared: bool, operators: Collection[str]) -> tuple[str, ...]:
    """The variables a project gets of those it names: on a shared worker only its operator's (`FIXLOOP_ALLOW_ENV`),
    because a repository that anybody may submit must not choose which of the operator's secrets it sees."""
    return tuple(name for name in names if not shared or name in operators)


def in_own_home(env: Mapping[str, str], workspace: Workspace, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment `env` with a new home folder in the workspace's scratch instead of that of `variables`, without
    the user's settings and earlier results that tools remember: they would affect a result."""
    home = Path(tempfile.mkdtemp(prefix="home-", dir=workspace.scratch))
    (home / ".gitconfig").write_text(_GITCONFIG)
    kept = {}
    if os.path.isabs(variables.get("HOME", "")):
        kept = {name: _real(place, variables) for name, place in _HOME["named"].items()}
        linked = {place: _real(place, variables) for place in _HOME["linked"]}
        linked = {place: target for place, target in linked.items() if os.path.exists(target)}
        with suppress(OSError), os.scandir(_real(".cache", variables)) as caches:
            linked |= {
                f".cache/{each.name}": each.path for each in caches if each.name not in _HOME["remembered"]
            }
        for place, target in linked.items():
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            (home / place).symlink_to(target)
    kept |= {name: value for name, value in env.items() if name not in _HOME["moved"].values()}
    git = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(workspace.folder)}
    return kept | git | {"HOME": str(home), "PYTHONNOUSERSITE": "1"}


def _real(place: str, variables: Mapping[str, str]) -> str:
    for folder, variable in _HOME["moved"].items():
        if place.startswith(folder) and os.path.isabs(variables.get(variable, "")):
            return variables[variable] + place.removeprefix(folder)
    return os.path.join(variables["HOME"], place)
