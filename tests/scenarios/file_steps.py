"""The named files of a workflow after each of its events, as one readable account: what each step changed, exactly."""

import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Any

from fixloop.statefiles.named_files import NamedFiles, Stamp
from fixloop.statefiles.rendering import drawn


def artifacts_of(*texts: str) -> dict[str, bytes]:
    """Documents by digest, as a store would keep them."""
    return {sha256(text.encode()).hexdigest(): text.encode() for text in texts}


def on_disk(root: Path) -> dict[str, bytes]:
    """The files below a folder, by path."""
    found = (Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names)
    paths = ((path, path.relative_to(root).as_posix()) for path in found)
    hidden = (".fixloop/", ".claude/.", ".workflow/.cycle/.gitignore")
    return {name: path.read_bytes() for path, name in sorted(paths) if not name.startswith(hidden)}


def steps_on_disk(
    root: Path, outcomes: Iterable[Any], artifacts: Mapping[str, bytes]
) -> Iterator[tuple[Any, dict[str, bytes]]]:
    """Each state of a run, and the files on disk once they are written."""
    files = NamedFiles(root, "place")
    for version, outcome in enumerate(outcomes, start=1):
        snapshot = outcome.state.model_dump_json(exclude_defaults=True).encode()
        stamp = Stamp(workflow=outcome.state.workflow, version=version)
        assert files.write(stamp, drawn(snapshot, artifacts.get)).done
        yield outcome.state, on_disk(root)


def account(steps: Iterable[tuple[Any, Mapping[str, bytes]]]) -> str:
    """Step by step the lines that went and came; two runs with one account wrote the same bytes at every step."""
    told: list[str] = []
    before: Mapping[str, bytes] = {}
    for number, (state, now) in enumerate(steps, start=1):
        told.append(f"######## step {number}, {state.last_at:%H:%M:%S} UTC, {len(now)} files\n")
        for path in sorted(before.keys() | now.keys()):
            told += _changed(path, before.get(path), now.get(path))
        before = now
    return "".join(told)


def _changed(path: str, before: bytes | None, now: bytes | None) -> Iterator[str]:
    if before == now:
        return
    if now is None:
        yield f"==== {path}: gone\n"
        return
    yield f"==== {path}{'' if before is not None else ': new'}\n"
    lines = unified_diff(_lines(before or b""), _lines(now), n=0)
    yield from (line for number, line in enumerate(lines) if number > 1)


def _lines(content: bytes) -> list[str]:
    found = content.decode().splitlines(keepends=True)
    return [line if line.endswith("\n") else f"{line}(no line end)\n" for line in found]
