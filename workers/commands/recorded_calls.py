"""The calls of the product in one check's tests, and whether a fix changed more than the answers to these calls.

Calls are recorded while the check is rerun for another rule in a separate workspace, and replayed there with the fix
and without it. Only for Python; calls that write files, start processes or open connections are skipped.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Final

from fixloop.configuration.model import NEW_BY_DEFAULT, Check
from fixloop.integrity.carried import REMEMBERED, carried, keeps_state
from fixloop.integrity.paths import Kind, kind_of
from fixloop.integrity.perturbed import RULE, Values, constant, decides_more, special, values_of
from fixloop.integrity.source import Source
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import Finding
from fixloop.reports.document import bytes_if_any
from fixloop.repository.tree import GITLINK, SYMLINK, Delta, texts, tracked_in_tree
from workers.commands.claim import Claim
from workers.commands.sides import MOST_BYTES, changed_of
from workers.workspaces.ground import Ground

MOST_FILES: Final = 50
SECONDS: Final = 3.0
"""Processor time for each of the two sides; twice as much wall-clock time."""
_INTEGRITY: Final = resources.files("fixloop.integrity")
# Read, never imported: they run in the project's interpreter.
_RECORDER: Final = _INTEGRITY / "call_recorder.py"
_REPLAY: Final = _INTEGRITY / "call_replay.py"


_VARIANTS: Final = {
    "any": "other values",
    "literal": "others in place of values that the fix names",
    "shape": "more or fewer parts",
}


class Decisions:
    """A fix's changes to the product's Python code; true if they add decisions or may contain an answer."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    @cached_property
    def changed(self) -> Sequence[Delta]:
        """The changed product files; empty if there is nothing to replay."""
        claim = self._claim
        off, specialist = claim.configuration.integrity.off, claim.work.holding.ticket.specialist
        has_python = any(delta.path.endswith(b".py") for delta in claim.changed)
        if {RULE, REMEMBERED}.issubset(off) or specialist in NEW_BY_DEFAULT or not has_python:
            return ()
        product = changed_of(claim, Kind.PRODUCT)
        found = [each for each in product if {GITLINK, SYMLINK}.isdisjoint((each.old.mode, each.new.mode))]
        return found if len(found) <= MOST_FILES else ()

    @cached_property
    def sources(self) -> tuple[list[Source], list[Source]]:
        """The changed Python files, before and after."""
        python = [delta for delta in self.changed if delta.path.endswith(b".py")]
        blobs = [side.blob for delta in python for side in (delta.old, delta.new)]
        found = texts(self._claim.git, blobs, MOST_BYTES)

        def sources(blob: Callable[[Delta], str]) -> list[Source]:
            known = [delta for delta in python if blob(delta) in found]
            return [Source(os.fsdecode(delta.path), found[blob(delta)]) for delta in known]

        return sources(lambda delta: delta.old.blob), sources(lambda delta: delta.new.blob)

    @cached_property
    def values(self) -> Values:
        return values_of(*self.sources)

    def __bool__(self) -> bool:
        return bool(self.changed) and (self.values.may_answer or decides_more(*self.sources))


class Recording:
    """The calls that a check makes on a separate ground."""

    def __init__(self, claim: Claim, check: Check, ground: Ground, decisions: Decisions | None) -> None:
        self._claim, self._check, self._ground, self._decisions = claim, check, ground, decisions
        if not decisions:
            return
        self._folder = Path(tempfile.mkdtemp(prefix="calls-", dir=ground.workspace.scratch))
        for name in ("calls", "site"):
            (self._folder / name).mkdir()
        (self._folder / "site" / "sitecustomize.py").write_bytes(_RECORDER.read_bytes())
        top, tracked = ground.workspace.path.resolve(), tracked_in_tree(claim.git, claim.tip)
        paths = [path for path in map(os.fsdecode, tracked) if path.endswith(".py")]
        files = [str(top / path) for path in paths if kind_of(path, claim.trust) is Kind.PRODUCT]
        changed = [str(top / os.fsdecode(delta.path)) for delta in decisions.changed]
        settings = {"files": files, "changed": changed, "calls": str(self._folder / "calls")}
        (self._folder / "told").write_text(json.dumps(settings))

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        """Run a command under guard, like `Claim.run`, and record its Python calls of the product."""
        if not self._decisions:
            return self._claim.run(argv, cwd, env)
        path = f"{self._folder / 'site'}:{env.get('PYTHONPATH', '')}"
        variables = {"FIXLOOP_CALLS": str(self._folder / "told"), "PYTHONPATH": path}
        return self._claim.run(argv, cwd, {**env, **variables})

    def findings(self) -> Iterator[Finding]:
        """The functions whose answers changed only for the tests' calls. Afterwards, the changed files on the ground
        have their content before the fix."""
        if not self._decisions or not any((self._folder / "calls").iterdir()):
            return
        # New: what ran so far can have left links in any other folder that it could write.
        own = Path(tempfile.mkdtemp(prefix="replay-", dir=self._ground.workspace.scratch))
        values = self._decisions.values
        sides = {side: own / f"{side}.jsonl" for side in ("old", "new")}
        settings = {
            "calls": str(self._folder / "calls"),
            "before": self._old(self._decisions.changed, own),
            "settled": sorted(values.settled),
            "literals": sorted(values.literals),
            "seconds": SECONDS,
        } | {side: str(path) for side, path in sides.items()}
        (own / "replay").write_text(json.dumps(settings))
        (own / "replay.py").write_bytes(_REPLAY.read_bytes())
        workspace, environment = self._ground.workspace, self._ground.check_environment(self._check.env)
        argv = ["python", str(own / "replay.py"), str(own / "replay")]
        if self._claim.run(argv, workspace.directory, environment) is None:
            return
        lines = [bytes_if_any(path).decode("utf-8", "replace").splitlines() for path in sides.values()]
        if not all(lines):
            return
        top, check = workspace.directory.resolve(), self._check.name
        for left in carried(*lines, has_state=keeps_state(self._decisions.sources[0])):
            by = "calls before it" if left["by"] == "order" else "what a value carries beside itself"
            text = f"`{left['name']}` answers by {by}: `{left['shown'][:200]}` alone is answered otherwise"
            file, alone = os.path.relpath(left["file"], top), left["alone"]
            yield Finding(rule=REMEMBERED, text=text, check=check, file=file, old=alone, new=left["answer"])
        found = list(constant(*lines)) if values.may_answer else []
        if decides_more(*self._decisions.sources):
            found += special(*lines)
        for each in {each.name: each for each in reversed(found)}.values():
            calls = f"{each.others} calls like `{each.shown[:200]}` with"
            if each.kind == "same":
                text = f"gives the answer to a call of the tests to {calls} other values, too; each had one of its own"
            else:
                text = f"answers otherwise than before only for the tests' own values: of {calls} "
                text += f"{_VARIANTS[each.kind]}, {each.otherwise or 'none'} does"
            text, file = f"`{each.name}` {text}", os.path.relpath(each.file, top)
            yield Finding(rule=RULE, text=text, check=check, file=file, old=each.old, new=each.new)

    def _old(self, changed: Sequence[Delta], own: Path) -> dict[str, str | None]:
        """For each changed file, a file in `own` with its text before the fix; None if it did not exist."""
        git, found = self._ground.workspace.mirror.git, dict[str, str | None]()
        for number, delta in enumerate(changed):
            path = str(self._ground.workspace.path / os.fsdecode(delta.path))
            found[path] = None
            if not delta.is_addition:
                kept = own / str(number)
                kept.write_bytes(git.output("cat-file", "blob", delta.old.blob))
                found[path] = str(kept)
        return found
