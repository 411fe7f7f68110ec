"""The calls of the product in one check's tests, and whether a fix changed more than the answers to these calls.

Calls are recorded while the check is rerun for another rule in a separate workspace, and replayed there with the fix
and without it. For Python, and in `node_calls` for JavaScript and Go; calls that write files, start processes or open
connections are skipped.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import NEW_BY_DEFAULT, Check
from fixloop.integrity import perturbed, watched
from fixloop.integrity.paths import Kind, kind_of
from fixloop.integrity.source import Source
from fixloop.integrity.tool_call import call_of
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import Finding
from fixloop.repository.tree import GITLINK, SYMLINK, Delta, texts, tracked_in_tree
from workers.commands.call_recorders import PYTEST, UNITTEST, Calls, GoCalls, NodeCalls, PythonCalls, Replay
from workers.commands.claim import MOST_BYTES, Claim
from workers.workspaces.ground import Ground

MOST_FILES: Final = 50
MOST_PRODUCT_FILES: Final = 1000
SECONDS: Final = 3.0
"""Processor time for each of the two sides; twice as much wall-clock time."""
_RECORDERS: Final[tuple[type[Calls], ...]] = (PythonCalls, NodeCalls, GoCalls)
_BY_UNITTEST: Final = dict.fromkeys(("unittest", "manage.py", "django-admin", "nose2", "trial", "green"))
_VARIANTS: Final = {
    "any": "other values",
    "literal": "others in place of values that the fix names",
    "shape": "more or fewer parts",
}
_CARRIED: Final = {
    "order": "calls before it",
    "value": "what a value carries beside itself",
    "test": "whether a test runs",
}


class Decisions:
    """A fix's changes to the product's code; true if they add decisions or may contain an answer."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    @cached_property
    def changed(self) -> Sequence[Delta]:
        """The changed product files; empty if there is nothing to replay."""
        claim = self._claim
        off, specialist = claim.configuration.integrity.off, claim.work.holding.ticket.specialist
        if {perturbed.RULE, perturbed.REMEMBERED}.issubset(off) or specialist in NEW_BY_DEFAULT:
            return ()
        product = claim.changed_of(Kind.PRODUCT)
        found = [each for each in product if {GITLINK, SYMLINK}.isdisjoint((each.old.mode, each.new.mode))]
        return found if any(map(_is_code, found)) and len(found) <= MOST_FILES else ()

    @cached_property
    def sources(self) -> tuple[list[Source], list[Source]]:
        """The changed files with code, before and after."""
        code = [(os.fsdecode(one.path), one.old.blob, one.new.blob) for one in filter(_is_code, self.changed)]
        found = texts(self._claim.git, [blob for _, *blobs in code for blob in blobs], MOST_BYTES)
        before = [Source(path, found[old]) for path, old, _ in code if old in found]
        return before, [Source(path, found[new]) for path, _, new in code if new in found]

    def added_row(self, place: str) -> str:
        """The text of a line, as `src/file.py:12`, that no changed file had before; empty if one had it."""
        before, after = self.sources
        rows = [row for each in after for at, row in enumerate(each.lines, 1) if f"{each.path}:{at}" == place]
        return "".join(row for row in rows if not any(row in each.lines for each in before))

    @cached_property
    def values(self) -> perturbed.Values:
        return perturbed.values_of(*self.sources)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words of the product before the fix: within longer texts they may be keywords of a language."""
        git, trust = self._claim.git, self._claim.trust
        tree = tracked_in_tree(git, self._claim.trusted)
        tracked = [(os.fsdecode(path), entry.blob) for path, entry in tree.items()]
        code = [(path, blob) for path, blob in tracked if any(kind.reads(path) for kind in _RECORDERS)]
        product = [blob for path, blob in code if kind_of(path, trust) is Kind.PRODUCT]
        return perturbed.vocabulary(texts(git, product[:MOST_PRODUCT_FILES], MOST_BYTES).values())

    def __bool__(self) -> bool:
        return bool(self.changed) and (self.values.may_answer or perturbed.decides_more(*self.sources))


def _is_code(delta: Delta) -> bool:
    return any(kind.reads(os.fsdecode(delta.path)) for kind in _RECORDERS)


class Recording:
    """The calls that a check makes on a separate ground."""

    def __init__(self, claim: Claim, check: Check, ground: Ground, decisions: Decisions | None) -> None:
        self._claim, self._check, self._ground, self._decisions = claim, check, ground, decisions
        self._recorders: list[Calls] = []
        if not decisions:
            return
        top, tracked = ground.workspace.path.resolve(), tracked_in_tree(claim.git, claim.tip)
        paths = [os.fsdecode(path) for path in tracked]
        files = [str(top / path) for path in paths if kind_of(path, claim.trust) is Kind.PRODUCT]
        changed = [str(top / os.fsdecode(delta.path)) for delta in decisions.changed]
        for kind in _RECORDERS:
            if any(map(kind.reads, changed)):
                folder = Path(tempfile.mkdtemp(prefix="calls-", dir=ground.workspace.scratch))
                self._recorders.append(kind(folder, [*filter(kind.reads, files)], changed))

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        """Run a command under guard, like `Claim.run`, and record its calls of the product."""
        for recorder in self._recorders:
            if recorder.preparation:
                self._claim.run(recorder.preparation, cwd, env)
            env = {**env, **recorder.variables(env)}
        return self._claim.run(argv, cwd, env)

    def findings(self) -> Iterator[Finding]:
        """The functions whose answers changed only for the tests' calls. Afterwards, the changed files on the ground
        have their content before the fix."""
        if not self._decisions:
            return
        workspace, environment = self._ground.workspace, self._ground.check_environment(self._check.env)

        def run(argv: Sequence[str]) -> bool:
            return self._claim.run(argv, workspace.directory, environment) is not None

        for recorder in self._recorders:
            if not any(recorder.calls.iterdir()):
                continue
            values = self._decisions.values._replace(vocabulary=self._decisions.vocabulary)
            # New: what ran so far can have left links in any other folder that it could write.
            own = Path(tempfile.mkdtemp(prefix="replay-", dir=workspace.scratch))
            before, after = (self._texts(own, name) for name in ("old", "new"))
            runner = UNITTEST if call_of(self._check.command, _BY_UNITTEST) else PYTEST
            sides = recorder.replayed(own, Replay(run, values, before, after, SECONDS, runner))
            if all(sides):
                yield from self._told(*sides)

    def _told(self, old: Sequence[str], new: Sequence[str]) -> Iterator[Finding]:
        assert self._decisions is not None
        values, sources, lines = self._decisions.values, self._decisions.sources, (old, new)
        top, root = self._ground.workspace.directory.resolve(), self._ground.workspace.path.resolve()

        def _finding(rule: str, place: str, text: str, **sides: Any) -> Finding:
            file = os.path.relpath(place or top, top)
            return Finding(rule=rule, text=text, check=self._check.name, file=file, **sides)

        for left in perturbed.carried(*lines, has_state=perturbed.keeps_state(sources[0])):
            name, file, alone = left["name"], left["file"], left["alone"]
            if left["by"] != "line":
                by = _CARRIED.get(left["by"], _CARRIED["value"])
                text = f"`{name}` answers by {by}: `{left['shown'][:200]}` alone is answered otherwise"
                if left["by"] == "test":
                    yield _finding(watched.RULE, file, text, old=alone, new=left["answer"])
                else:
                    yield _finding(perturbed.REMEMBERED, file, text, old=alone, new=left["answer"])
            elif row := self._decisions.added_row(alone.removeprefix(f"{root}/")):
                text = f"`{name}` cannot be called again: it now writes a file, starts a process or opens a connection"
                yield _finding(perturbed.RULE, file, text, new=row)
        for place, line in perturbed.newly_opened(*lines).items():
            path = place.removeprefix(f"{root}/")
            if path != place and kind_of(path, self._claim.trust) is Kind.TEST:
                text = f"`{line['name']}` reads `{path}`, which belongs to the tests"
                yield _finding(watched.RULE, line["file"], text)
        found = list(perturbed.constant(*lines)) if values.may_answer else []
        found += perturbed.special(*lines) if perturbed.decides_more(*sources) else ()
        for each in {each.name: each for each in reversed(found)}.values():
            calls = f"{each.others} calls like `{each.shown[:200]}` with"
            if each.kind == "same":
                text = f"gives the answer to a call of the tests to {calls} other values, too; each had one of its own"
            else:
                text = f"answers otherwise than before only for the tests' own values: of {calls} "
                text += f"{_VARIANTS[each.kind]}, {each.otherwise or 'none'} does"
            yield _finding(perturbed.RULE, each.file, f"`{each.name}` {text}", old=each.old, new=each.new)

    def _texts(self, own: Path, side: str) -> dict[str, str | None]:
        """For each changed file, a file in `own` with its text on this side; None if it does not exist there."""
        assert self._decisions is not None
        git, found = self._ground.workspace.mirror.git, dict[str, str | None]()
        for number, delta in enumerate(self._decisions.changed):
            path = str(self._ground.workspace.path / os.fsdecode(delta.path))
            blob = delta.old.blob if side == "old" else delta.new.blob
            found[path] = None
            if not (delta.is_addition if side == "old" else delta.is_deletion):
                kept = own / f"{side}{number}"
                kept.write_bytes(git.output("cat-file", "blob", blob))
                found[path] = str(kept)
        return found
