"""What the interpreter of a project can import, remembered as long as the packages of its environment stay the same.

Starting an interpreter takes longer than most of a check's other preparations. Owns `{cache}/interpreters/`, one file
per question.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fixloop.errors import InfrastructureError
from fixloop.files.folders import keep_in
from fixloop.machine.interpreters import LOOK_SECONDS, Interpreter, printed
from fixloop.servers.settings import load_settings

MOST: Final = 500
"""Answers kept; more are deleted together."""
# Runs in the project's interpreter, which may be older than this one, and in a sandbox only if the project brought it:
# nothing that it imports may come from the folder in which it is started. Locates modules and imports none of the
# project's; import hooks and .pth files of editable installs are active, as they will be in a check.
LOCATE: Final = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
import importlib.util, json
roots, names = json.loads(sys.argv[1])
sys.path[:0] = roots
found = {}
for name in names:
    try:
        spec = importlib.util.find_spec(name.split(".")[0])
    except Exception as error:
        found[name] = ["", "%s: %s" % (type(error).__name__, error)]
        continue
    place = spec and spec.origin
    if place in (None, "namespace", "built-in", "frozen"):
        place = next(iter(spec and spec.submodule_search_locations or []), "")
    found[name] = [place, ""]
sys.stdout.write("\\n" + json.dumps(found) + "\\n")
"""


def importable_modules(
    interpreter: Interpreter, directory: Path, names: Iterable[str], *, user_site: bool = False
) -> frozenset[str]:
    """The `names` that `interpreter` can import when it is started in `directory`; for `a.b` only `a` is looked for.
    `user_site`: also in the user's site packages."""
    asked = list(names)
    if not interpreter.path or not asked:
        return frozenset()
    # Not by PYTHONPATH: the interpreter would run the project's sitecustomize.py at its start.
    roots = [directory / "src", directory]
    # What there could hide a module; a folder only if it is a package.
    own = sorted(
        (each.name, (each / "__init__.py").is_file())
        for root in roots
        for each in root.glob("*")
        if each.name.partition(".")[0] in asked
    )
    variables = {"PYTHONDONTWRITEBYTECODE": "1"} | ({} if user_site else {"PYTHONNOUSERSITE": "1"})

    def ask() -> str:
        command = [interpreter.path, "-c", LOCATE, json.dumps([[*map(str, roots)], asked])]
        if interpreter.origin not in ("checkout", "setup"):
            others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            return printed(command, directory, others | variables).decode().splitlines()[-1]
        # The project brought it. Slow to load, and seldom needed.
        from fixloop.machine.sandbox import run_reading

        done = run_reading(
            command,
            cwd=directory,
            source=Path(interpreter.prefix).parent,
            variables=variables,
            timeout_seconds=LOOK_SECONDS,
        )
        return done.output.splitlines()[-1]

    try:
        question = [LOCATE, str(directory), own, asked]
        told = ask() if user_site else remembered(load_settings().cache_dir, interpreter, question, ask)
        places = {name: place for name, (place, _) in {**json.loads(told)}.items() if place}
        # A mere folder with the name is no module.
        return frozenset(name for name, place in places.items() if "." in name or not os.path.isdir(place))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, IndexError, InfrastructureError):
        return frozenset()


def remembered(cache: Path, interpreter: Interpreter, question: Any, ask: Callable[[], str]) -> str:
    """The answer of `ask`, in JSON, or its earlier one to the same question, which must contain all that the answer
    depends on besides the environment. Not kept: an empty one, or of an interpreter with packages in other folders."""
    if not (stamp := _stamp(interpreter)):
        return ask()
    asked = json.dumps([interpreter.path, stamp, question])
    file = cache / "interpreters" / f"{hashlib.sha256(asked.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError):
        json.loads(earlier := file.read_text(encoding="utf-8"))  # a power loss may have emptied it
        return earlier
    if answer := ask():
        with suppress(OSError):
            kept = list(file.parent.glob("*.json"))
            for old in kept if len(kept) >= MOST else ():
                old.unlink(missing_ok=True)
            keep_in(cache, file, answer)
    return answer


def _stamp(interpreter: Interpreter) -> list[tuple[str, int, int]]:
    """Name, size and date of all that is directly in the environment's packages; empty if it is not known."""
    if not interpreter.prefix:
        return []
    try:
        settings = Path(interpreter.prefix, "pyvenv.cfg").read_text(encoding="utf-8").lower()
        if "include-system-site-packages = false" not in settings:
            return []
        folders = sorted(Path(interpreter.prefix).glob("lib/python3*/site-packages"))
        places = [interpreter.path, *(entry.path for each in folders for entry in os.scandir(each))]
        found = [(place, os.stat(place)) for place in sorted(places)]
    except (OSError, UnicodeDecodeError):
        return []
    return [(place, status.st_size, status.st_mtime_ns) for place, status in found]
