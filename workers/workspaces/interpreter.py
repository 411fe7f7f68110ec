"""Checks whether an interpreter imports the project from the workspace.

Owns the proof. An interpreter that imports the project from anywhere else is refused.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from fixloop.machine.guard import UNCONFINED, Confined, run_guarded
from fixloop.machine.interpreter_answers import LOCATE, remembered
from fixloop.machine.interpreters import Interpreter
from fixloop.reports.document import bytes_if_any
from fixloop.repository.git import one_line

PROBE_SECONDS: Final = 120.0
NOT_IMPORTED: Final = frozenset(
    {"tests", "test", "testing", "e2e", "conftest", "setup", "noxfile", "docs", "doc", "examples"}
    | {"bench", "benchmarks", "scripts", "build", "dist", "__init__", "__main__"}
)
_INSTALLED: Final = re.compile(r"^/.+|(?<=')/[^'\n]+(?=')", re.MULTILINE)
_DECIDE: Final = frozenset(
    {"PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONSAFEPATH"}
)
"""Variables that decide where modules are found."""


def import_roots(interpreter: Interpreter, directory: Path, top: Path) -> list[Path]:
    """The folders where imports start: `src` if it holds modules and is no package itself, the directory, and each in
    the checkout at `top` whose like in the user's is installed editable, which would be imported instead."""
    src, program = directory / "src", os.path.realpath(interpreter.path)
    # Without an environment, as in a container, packages are beside the interpreter.
    packages = Path(interpreter.prefix or os.path.dirname(os.path.dirname(program)))
    roots = [directory] if (src / "__init__.py").exists() or not any(_modules(src)) else [src, directory]
    for file in sorted(packages.glob("lib/python3*/*-packages/*")):
        # One path a line; setuptools may write the places of single modules instead.
        is_finder = file.name.startswith("__editable__") and file.suffix == ".py"
        text = bytes_if_any(file).decode(errors="replace") if is_finder or file.suffix == ".pth" else ""
        for path in map(os.path.normpath, _INSTALLED.findall(text)):
            place = Path(path).parent if is_finder else Path(path)
            above = (each for each in (place, *place.parents) if os.path.exists(each / ".git"))
            inside = [top / place.relative_to(checkout) for checkout in (*above,)[:1]]
            roots += [root for root in inside if root.is_dir() and root not in roots]
    return roots


def probe_imports(
    interpreter: Interpreter,
    directory: Path,
    top: Path,
    env: Mapping[str, str],
    *,
    hide: Callable[[str], str] = str,
    confined: Confined = UNCONFINED,
    cache: Path | None = None,
) -> str | None:
    """Locate each of the project's top-level packages as a check would, without importing it. If one is found outside
    `top`, the workspace's checkout, the check is invalid: returns a sentence with both paths. With a `cache`, an
    earlier answer of the same environment is enough."""
    roots, program = import_roots(interpreter, directory, top), interpreter.path
    expected = {name: place for root in roots[::-1] for name, place in _modules(root)}
    if not program or not expected:
        return None

    def ask() -> str:
        # The interpreter's start runs files of the project, such as a sitecustomize.py: under guard, like a check.
        done = run_guarded(
            [program, "-c", LOCATE, json.dumps([[], sorted(expected)])],
            cwd=directory,
            env=env,
            timeout_seconds=PROBE_SECONDS,
            apart=True,
            confined=confined,
        )
        if done.not_found or done.timed_out:
            told = "it cannot be started" if done.not_found else f"no answer within {PROBE_SECONDS:.0f} s"
            raise _NoAnswerError(f"{program} does not run: {told}")
        said = done.output.strip().rpartition("\n")[2]
        try:
            _places(said, expected)
        except (ValueError, TypeError, LookupError, RecursionError):
            told = one_line(hide(done.talk)[-400:]) or f"exit code {done.exit_code}"
            raise _NoAnswerError(f"{program} cannot say where it imports from: {told}") from None
        return said

    try:
        if cache is None or _runs_own_code(interpreter, env):
            answer = ask()
        else:
            variables = sorted(pair for pair in env.items() if pair[0] in _DECIDE)
            answer = remembered(cache, interpreter, [LOCATE, str(directory), expected, variables], ask)
    except _NoAnswerError as refusal:
        return str(refusal)
    real_top = os.path.realpath(top)
    for name, (place, error) in _places(answer, expected).items():
        if not place:
            why = f" ({hide(error)})" if error else ""
            return f"{program} does not find the project's {name}, which is {expected[name]}{why}"
        if os.path.commonpath([real_top, place]) != real_top:
            told = "an editable install wins there; install the project without -e"
            if {"site-packages", "dist-packages"}.intersection(Path(place).parts):
                told = "an installed copy wins there; uninstall it"
            return (
                f"{program} imports {name} from {place}, not from the workspace's {expected[name]}: "
                f"{told}, or name a [workspace] setup"
            )
    return None


class _NoAnswerError(Exception):
    """Why there is no answer, in one sentence."""


def _places(answer: str, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The real place of each module, or why it has none. Raises for what LOCATE does not print, but the project may."""
    found = json.loads(answer)
    told = ((name, *found[name]) for name in names)
    return {name: (os.path.realpath(place) if place else "", str(error)) for name, place, error in told}


def _runs_own_code(interpreter: Interpreter, env: Mapping[str, str]) -> bool:
    """Whether the interpreter may run code of the project or the user at its start or in LOCATE, so that its answer may
    be theirs: a module with a name of the standard library, or one that the environment imports at each start."""
    imported = {"sitecustomize", "usercustomize", *sys.stdlib_module_names}
    for file in filter(Path.is_file, Path(interpreter.prefix).glob("lib/python3*/site-packages/*.pth")):
        for line in re.findall(r"^import\b.*", file.read_text(errors="replace"), re.MULTILINE):
            imported.update(re.findall(r"\w+", line))
    roots = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    names = {name.partition(".")[0] for root in roots if os.path.isdir(root) for name in os.listdir(root)}
    return "PYTHONNOUSERSITE" not in env or not names.isdisjoint(imported)


def _modules(root: Path) -> Iterator[tuple[str, str]]:
    """Names and places of what can be imported from `root`, without tests and tools' files."""
    for entry in sorted(root.iterdir()) if root.is_dir() else ():
        name = entry.name.removesuffix(".py")
        if not name.isidentifier() or name in NOT_IMPORTED or name in sys.stdlib_module_names:
            continue
        is_module = entry.suffix == ".py" and entry.is_file() and not name.startswith("test_")
        if is_module or (entry / "__init__.py").is_file():
            yield name, str(entry)
        elif entry.is_dir() and not entry.is_symlink() and name != "src":
            # A folder without `__init__.py` may be shared with others, so the packages in it count.
            for inner in sorted(entry.iterdir()):
                if inner.name.isidentifier() and (inner / "__init__.py").is_file():
                    yield f"{name}.{inner.name}", str(inner)
