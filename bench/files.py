"""What the named files of a workflow cost: each projection after a commit, and the one that finds nothing to do.

    python -m bench.files [--iterations N]

A cycle of N iterations with its documents, in memory, so that it is the files alone; exit code 1 when looking after
files that are there takes over a millisecond.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from fixloop.engine.engine import ProfileEngine
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.events import CycleStarted, PhaseReported, Written
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.records import ResultStatus
from fixloop.profiles.cycle.workers import WORKERS
from fixloop.statefiles.sync import project
from tests.fixtures.memory_store import MemoryStore

WORKFLOW: Final = "0a1b2c3d-7-1"
LIMIT_MS: Final = 1.0
DOCUMENT_BYTES: Final = 4096


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=5)
    iterations = parser.parse_args().iterations
    store = MemoryStore(lambda: datetime.now(UTC))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        drawn = [_timed(lambda: project(store, WORKFLOW, root=root)) for _ in _versions(store, iterations)]
        nothing = [_timed(lambda: project(store, WORKFLOW, root=root)) for _ in range(200)]
        looked = [_timed(lambda: project(store, WORKFLOW, root=root, again=True)) for _ in range(20)]
        files = sum(path.is_file() for path in root.rglob("*"))
    print(f"{len(drawn)} versions, {files} files at the end of {iterations} iterations")
    print(f"drawn: {median(drawn):.1f} ms (median), {max(drawn):.1f} ms (worst)")
    print(f"nothing to do: {median(nothing):.2f} ms; looked at every file for edits: {median(looked):.1f} ms")
    return 0 if median(nothing) <= LIMIT_MS else 1


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def _versions(store: MemoryStore, iterations: int) -> Iterator[int]:
    """A cycle, commit by commit: validation fails in each iteration but the last."""
    engine = ProfileEngine(store, CYCLE)
    begin = CycleStarted(
        workflow=WORKFLOW, issue=7, name="files", cycle_id="c", max_iterations=iterations + 1
    )
    engine.start(begin)
    yield 0
    runs = ["ra", "ep", *(key for _ in range(iterations) for key in ("cd", "vas"))]
    for number, key in enumerate(runs, 1):
        failed = key == "vas" and number < len(runs)
        engine.apply(WORKFLOW, _report(store, key, number, failed=failed), operation=f"{number}")
        yield number


def _report(store: MemoryStore, key: str, number: int, *, failed: bool) -> PhaseReported:
    names = WORKERS[key].documents
    text = {name: f"{name} {number} ".encode() * (DOCUMENT_BYTES // 20) for name in names}
    written = (Written(name=name, digest=store.put_artifact(WORKFLOW, text[name])) for name in names)
    result = PhaseResult(
        phase=key,
        status=ResultStatus.FAILED if failed else ResultStatus.SUCCESS,
        files_written=names,
        summary="done",
        issues=("login fails",) if failed else (),
    )
    return PhaseReported(sender=key, result=result, documents=tuple(written))


if __name__ == "__main__":
    sys.exit(main())
