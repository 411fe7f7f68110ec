"""What records calls of the product in a check, and replays them before and after a fix: for Python, Node.js and Go.

Everything is loaded into, or started with, the project's own interpreter, and writes into folders that the check can
write to.
"""

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.integrity import node_calls
from fixloop.integrity.perturbed import Values, changed, only_in_tests
from fixloop.integrity.tokens import LANGUAGES
from fixloop.reports.document import bytes_if_any

_SIDES: Final = ("old", "new")
_TEST: Final = """from call_replay import main as test_replay

def load_tests(*_):
    from unittest import FunctionTestCase  # pytest would take it for one of its tests
    return FunctionTestCase(test_replay)
"""
PYTEST: Final = ("-m", "pytest")
UNITTEST: Final = ("-m", "unittest", "discover", "-s")
# Copied: they run in the project's interpreter.
_INTEGRITY: Final = resources.files("fixloop.integrity")

Texts = Mapping[str, str | None]
Sides = Sequence[Sequence[str]]
"""The lines before the fix, and with it."""


class Replay(NamedTuple):
    """How calls are replayed on a ground."""

    run: Callable[[Sequence[str]], bool]
    """Runs a command under guard; False if its result is no longer wanted."""
    values: Values
    before: Texts
    """Each changed file's path, with a file that has its text before the fix; None if it did not exist."""
    after: Texts
    seconds: float
    """Processor time for each side."""
    runner: Sequence[str] = PYTEST
    """Python's options that run the tests of a folder."""


class Calls(ABC):
    """The calls of the functions of one language's files."""

    preparation: Sequence[str] = ()
    """A command to run before the check."""

    def __init__(self, folder: Path, files: Sequence[str], changed: Sequence[str]) -> None:
        """Prepare to record, in this folder, the calls of functions in product `files`."""
        self._folder, self.calls, self._files = folder, folder / "calls", frozenset(files)
        self.calls.mkdir()
        told = {"files": files, "changed": changed, "calls": str(self.calls)}
        (folder / "told").write_text(json.dumps(told))

    @staticmethod
    @abstractmethod
    def reads(path: str) -> bool:
        """Whether the file is in this language."""

    @abstractmethod
    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables with which a check's processes record their calls."""

    def replayed(self, own: Path, replay: Replay) -> Sides:
        """The lines of each side, empty if it did not answer: first of all calls, then of those that are answered
        differently, also with other values; `own`: a folder that is empty but for the texts."""
        # In a test: code that asks whether one runs answers as it did there.
        in_test = self._answered(own, replay, [], in_test=True)
        plain = in_test if any(in_test) else self._answered(own, replay, [])
        varied = [line["call"] for line, *_ in changed(*plain)]
        more = self._answered(own, replay, varied) if varied else ([], [])
        # After the same calls: an answer may depend on them.
        alone = self._answered(own, replay, []) if any(only_in_tests(*plain, *more)) else ([], [])
        asking = map(json.dumps, only_in_tests(*plain, *alone))
        return [[*plain[0], *more[0]], [*plain[1], *more[1], *asking]]

    @abstractmethod
    def _answered(self, own: Path, replay: Replay, varied: Sequence[int], *, in_test: bool = False) -> Sides:
        """The lines of each side for all calls, or for the `varied` ones, also with other values."""


class PythonCalls(Calls):
    """The calls of Python functions, see `call_recorder` and `call_replay`."""

    def __init__(self, folder: Path, files: Sequence[str], changed: Sequence[str]) -> None:
        super().__init__(folder, files, changed)
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_bytes((_INTEGRITY / "call_recorder.py").read_bytes())

    @staticmethod
    def reads(path: str) -> bool:
        return path.endswith(".py")

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        path = f"{self._folder / 'site'}:{env.get('PYTHONPATH', '')}"
        return {"FIXLOOP_CALLS": str(self._folder / "told"), "PYTHONPATH": path}

    def _answered(self, own: Path, replay: Replay, varied: Sequence[int], *, in_test: bool = False) -> Sides:
        # New, as what ran before could write to any other.
        folder = Path(tempfile.mkdtemp(dir=own))
        job = {"calls": str(self.calls), "seconds": replay.seconds, "varied": varied, **replay.values.kept}
        job |= {side: str(folder / side) for side in _SIDES}
        job |= {"before": replay.before, "after": replay.after}
        (folder / "replay").write_text(json.dumps(job))
        for name in ("call_replay.py", "replay_variants.py"):
            (folder / name).write_bytes((_INTEGRITY / name).read_bytes())
        (folder / "test_replay.py").write_text(_TEST)
        (folder / "pytest.ini").write_text("[pytest]\n")
        program = [*replay.runner, str(folder)] if in_test else [str(folder / "call_replay.py")]
        if not replay.run(["python", *program]):
            return [[], []]
        return [_lines(folder / side) for side in _SIDES]


class NodeCalls(Calls):
    """The calls of JavaScript functions, see `integrity/node`; Node.js from 20 on. The test is one of `node:test`."""

    _programs = "node"
    _preparing: Sequence[str] = ()
    _replaying: Sequence[str] = ("node", "{0}/replay.cjs")

    def __init__(self, folder: Path, files: Sequence[str], changed: Sequence[str]) -> None:
        super().__init__(folder, files, changed)
        self.preparation = [part.format(folder) for part in self._preparing]
        self._write_programs(folder)

    @staticmethod
    def reads(path: str) -> bool:
        return LANGUAGES.get(path.rpartition(".")[2].lower()) == "javascript"

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        options = f'{env.get("NODE_OPTIONS", "")} --require "{self._folder / "recorder.cjs"}"'
        return {"FIXLOOP_NODE_CALLS": str(self._folder / "told"), "NODE_OPTIONS": options}

    def _answered(self, own: Path, replay: Replay, varied: Sequence[int], *, in_test: bool = False) -> Sides:
        self._write_programs(own)
        recorded = [line for path in sorted(self.calls.iterdir()) for line in _lines(path)]
        calls, values = node_calls.calls_of(recorded, self._files), replay.values
        asked = {number: [node_calls.itself(call)] for number, call in enumerate(calls)}
        if varied:
            asked = node_calls.variants({number: calls[number] for number in varied}, values.kept)
        folder = Path(tempfile.mkdtemp(dir=own))
        (folder / "calls").write_text(node_calls.job_of(calls, asked))
        sides = [("new", replay.after), ("old", replay.before)]
        told = [{"place": texts, "out": str(folder / side)} for side, texts in sides]
        job = {"sides": told, "calls": str(folder / "calls"), "files": sorted(self._files)}
        test = str(self.calls) if in_test else ""
        (folder / "job").write_text(json.dumps({**job, "seconds": replay.seconds, "test": test}))
        if not replay.run([*(part.format(own) for part in self._replaying), str(folder / "job")]):
            return [[], []]
        known, numbers = values.settled - values.literals, [*asked]
        answers = [node_calls.answers_of(_lines(folder / side), numbers, replay.after) for side in _SIDES]
        return [[*node_calls.lines_of(calls, asked, one, known)] for one in answers]

    def _write_programs(self, folder: Path) -> None:
        for program in (_INTEGRITY / self._programs).iterdir():
            (folder / program.name).write_bytes(program.read_bytes())


class GoCalls(NodeCalls):
    """The calls of Go functions, see `integrity/go`."""

    _programs = "go"
    _preparing = ("go", "run", "{0}/calls.go", "record", "{0}/told")
    _replaying = ("go", "run", "{0}/calls.go", "replay")

    @staticmethod
    def reads(path: str) -> bool:
        return path.endswith(".go")

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        # `go vet`, a part of `go test`, does not find the file that the overlay adds.
        return {"GOFLAGS": f"{env.get('GOFLAGS', '')} -overlay={self._folder}/overlay.json -vet=off"}


def _lines(path: Path) -> list[str]:
    # Not `splitlines`: JSON of JavaScript can contain other ends of lines.
    return [*filter(None, bytes_if_any(path).decode("utf-8", "replace").split("\n"))]
