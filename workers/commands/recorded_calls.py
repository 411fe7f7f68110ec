"""Calls of the product that the tests of one check make, and whether a fix mended more than the answers to these.

They are recorded while the check runs again for another rule, in a workspace beside; there they are asked again, as
the fix left the product and as it was. Only of Python; calls that write, start or connect say nothing.
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
from fixloop.repository.tree import GITLINK, SYMLINK, Delta, texts, tracked_in_tree
from workers.commands.claim import Claim
from workers.commands.sides import MOST_BYTES, changed_of
from workers.workspaces.ground import Ground

MOST_FILES: Final = 50
SECONDS: Final = 3.0
"""Of processor time for each of the two sides, and twice as long by the clock."""
_INTEGRITY: Final = resources.files("fixloop.integrity")
# Read and never imported: the interpreter is the project's, not ours.
_RECORDER: Final = _INTEGRITY / "call_recorder.py"
_REPLAY: Final = _INTEGRITY / "call_replay.py"


_OTHERS: Final = {
    "any": "other values",
    "literal": "others in place of values that the fix names",
    "shape": "more or fewer parts",
}


class Decisions:
    """What a fix changed in the Python of the product, if that tells more apart than before, or may hold an answer."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    @cached_property
    def changed(self) -> Sequence[Delta]:
        """The changed files of the product; none where there is nothing to ask."""
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
        """The Python among them, before and after."""
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
    """The calls that a check makes on a ground beside the claim's own."""

    def __init__(self, claim: Claim, check: Check, ground: Ground, decisions: Decisions | None) -> None:
        self._claim, self._check, self._ground, self._decisions = claim, check, ground, decisions
        if not decisions:
            return
        self._own = Path(tempfile.mkdtemp(prefix="calls-", dir=ground.workspace.scratch))
        for name in ("calls", "site", "old"):
            (self._own / name).mkdir()
        (self._own / "site" / "sitecustomize.py").write_bytes(_RECORDER.read_bytes())
        top, tracked = ground.workspace.path.resolve(), tracked_in_tree(claim.git, claim.tip)
        paths = [path for path in map(os.fsdecode, tracked) if path.endswith(".py")]
        files = [str(top / path) for path in paths if kind_of(path, claim.trust) is Kind.PRODUCT]
        changed = [str(top / os.fsdecode(delta.path)) for delta in decisions.changed]
        told = {"files": files, "changed": changed, "calls": str(self._own / "calls")}
        (self._own / "told").write_text(json.dumps(told))

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        """Run a command under guard, as `Claim.run` does, and record what the Python in it asks of the product."""
        if not self._decisions:
            return self._claim.run(argv, cwd, env)
        path = f"{self._own / 'site'}:{env.get('PYTHONPATH', '')}"
        told = {"FIXLOOP_CALLS": str(self._own / "told"), "PYTHONPATH": path}
        return self._claim.run(argv, cwd, {**env, **told})

    def findings(self) -> Iterator[Finding]:
        """The functions that answer otherwise only where they are asked what the tests ask. The files of the fix on
        the ground are afterwards as they were before."""
        if not self._decisions or not any((self._own / "calls").iterdir()):
            return
        values = self._decisions.values
        sides = {side: self._own / f"{side}.jsonl" for side in ("old", "new")}
        told = {
            "calls": str(self._own / "calls"),
            "before": self._old(self._decisions.changed),
            "settled": sorted(values.settled),
            "literals": sorted(values.literals),
            "seconds": SECONDS,
        } | {side: str(path) for side, path in sides.items()}
        (self._own / "replay").write_text(json.dumps(told))
        (self._own / "replay.py").write_bytes(_REPLAY.read_bytes())
        workspace, environment = self._ground.workspace, self._ground.check_environment(self._check.env)
        argv = ["python", str(self._own / "replay.py"), str(self._own / "replay")]
        if self._claim.run(argv, workspace.directory, environment) is None:
            return
        lines = [path.read_text(errors="replace").splitlines() for path in sides.values() if path.exists()]
        if len(lines) < len(sides):
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
                text += f"{_OTHERS[each.kind]}, {each.otherwise or 'none'} does"
            text, file = f"`{each.name}` {text}", os.path.relpath(each.file, top)
            yield Finding(rule=RULE, text=text, check=check, file=file, old=each.old, new=each.new)

    def _old(self, changed: Sequence[Delta]) -> dict[str, str | None]:
        """Each changed file with another that has its text before the fix; None where there was none."""
        git, found = self._ground.workspace.mirror.git, dict[str, str | None]()
        for number, delta in enumerate(changed):
            path = str(self._ground.workspace.path / os.fsdecode(delta.path))
            found[path] = None
            if not delta.is_addition:
                kept = self._own / "old" / str(number)
                kept.write_bytes(git.output("cat-file", "blob", delta.old.blob))
                found[path] = str(kept)
        return found
