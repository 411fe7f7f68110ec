"""The demo's stage: copies of the examples in a temporary directory, fixloop as a user calls it, and the checks.

Leaves neither files nor processes, and uses nothing of the caller's environment.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
# Next to this interpreter, unresolved: in a virtual environment `python` is a link out of it.
FIXLOOP = Path(sys.executable).with_name("fixloop")
LIMIT_SECONDS = 180


class Stage:
    """A temporary directory, an isolated environment, and what has gone wrong so far."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.wrong: list[str] = []
        self.environment = _environment(root)

    def project(self, name: str) -> Path:
        """A copy of one example as a git repository with one commit."""
        target = self.root / name
        caches = shutil.ignore_patterns("__pycache__", ".*_cache", ".coverage", ".fixloop")
        shutil.copytree(EXAMPLES / name, target, ignore=caches)
        for words in ("init -q -b main", "add -A", "commit -q -m Start"):
            subprocess.run(["git", *words.split()], cwd=target, env=self.environment, check=True)
        return target

    def run(self, project: Path, *words: str, expected: int = 0) -> None:
        """`fixloop WORDS` in `project`, shown as it runs; its exit code must be `expected`."""
        print(f"\n$ {shlex.join(['fixloop', *words])}", flush=True)
        done = self._fixloop(project, words)
        self.check(f"exit code of `fixloop {words[0]}`", done.returncode, expected)

    def read(self, project: Path, *words: str) -> dict:
        """The output of `fixloop WORDS --json`."""
        done = self._fixloop(project, (*words, "--json"), stdout=subprocess.PIPE, text=True)
        try:
            return json.loads(done.stdout)
        except ValueError:
            self.check(f"`fixloop {' '.join(words)} --json` is JSON", done.stdout, "JSON")
            return {}

    def check(self, what: str, found: object, expected: object) -> None:
        """Print one line, and remember it if wrong."""
        if found == expected:
            print(f"   ok: {what} is {expected!r}", flush=True)
        else:
            print(f"WRONG: {what} is {found!r}, expected {expected!r}", flush=True)
            self.wrong.append(what)

    def _fixloop(self, project: Path, words: tuple[str, ...], **options) -> subprocess.CompletedProcess:
        command = [str(FIXLOOP), *words]
        environment = self.environment
        return subprocess.run(
            command, cwd=project, env=environment, stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS, **options
        )


def _environment(root: Path) -> dict[str, str]:
    """fixloop's virtual environment, activated, without the caller's git, virtual environment or fixloop settings."""
    ours = ("FIXLOOP_", "GIT_", "XDG_", "PYTEST_", "COV_", "COVERAGE_", "VIRTUAL_ENV", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept["PATH"] = f"{FIXLOOP.parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    kept["VIRTUAL_ENV"] = str(FIXLOOP.parent.parent)  # activated: the projects' tools are in it
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        folder = root / name.removeprefix("XDG_").lower()
        folder.mkdir(mode=0o700)
        kept[name] = str(folder)
    for role in ("AUTHOR", "COMMITTER"):
        kept[f"GIT_{role}_NAME"], kept[f"GIT_{role}_EMAIL"] = "Demo", "demo@example.invalid"
    kept |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept


def left_behind(root: Path, wait_seconds: float = 15) -> dict[int, str]:
    """Processes that still have our environment, after time to end by themselves."""
    deadline = time.monotonic() + wait_seconds
    while (found := _carrying(str(root))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def end(processes: dict[int, str]) -> None:
    """Kill what was left behind, each by its pid."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _carrying(mark: str) -> dict[int, str]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and folder.name != str(os.getpid()):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(folder.name)] = words.strip()[:100]
        except OSError:
            continue  # it ended meanwhile, or belongs to another user
    return found
