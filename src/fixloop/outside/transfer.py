"""Moves work between machines: the base from its repository, each fix as a git bundle from the store.

A thin bundle of a fix's commit is stored before a workflow names the commit, so that any other machine can continue.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fixloop.engine.profile import AnyState, profile_in
from fixloop.errors import InfrastructureError, ProtocolError, RefusedError, UsageError
from fixloop.protocol.limits import clean
from fixloop.repository.change import Change, diff_between
from fixloop.repository.git import Git, shown
from fixloop.repository.mirror import Mirror
from fixloop.repository.publication import push
from fixloop.repository.snapshot import Snapshot, bring, mirror_of
from fixloop.repository.tree import Delta, deltas
from fixloop.secrets.redaction import Redaction
from fixloop.secrets.variables import worker_secrets
from fixloop.store.contract import Store
from fixloop.store.entries import ARTIFACT_LIMIT_BYTES
from fixloop.store.keys import number_of

DIFF_CHARACTERS: Final = 3000
"""How much of a fix's diff a state and the next request hold; all of it is an artifact."""
_MB = 1024 * 1024


class NotKept(UsageError):
    """A fix that cannot be stored."""


def snapshot_in(state: AnyState) -> Snapshot:
    return Snapshot.model_validate_json(state.snapshot)


def keep_bundle(
    store: Store, state: AnyState, mirror: Mirror, commit: str, *, limit_bytes: int = ARTIFACT_LIMIT_BYTES
) -> str:
    """Store a bundle of `commit` for other machines before `commit` is recorded; its digest, or empty if `commit` is
    the work so far. NotKept if it holds a secret of this environment or is larger than `limit_bytes`."""
    if commit == state.tip:
        return ""
    exposed = exposure(mirror.git, state.tip, commit, os.environ)
    if exposed:
        raise NotKept(exposed)
    with mirror.bundled(commit, since=state.tip) as file:
        size = file.stat().st_size
        if size > limit_bytes:
            raise NotKept(
                f"the fix is {size / _MB:.3g} MB as a git bundle, the limit is {limit_bytes / _MB:g} MB: "
                "large files do not belong into it; remove or ignore them"
            )
        return store.put_artifact(state.workflow, file.read_bytes())


def facts_of_change(
    store: Store, state: AnyState, mirror: Mirror, change: Change, *, hide: Callable[[str], str]
) -> dict[str, Any]:
    """The facts about a completed fix's change, with the beginning of its diff and the digest of the whole, which is
    stored; both are empty if nothing was changed. Secrets are removed before anything is shortened."""
    facts = {"files": change.files, "tip": change.commit, "tree": change.tree, "marks": change.marks}
    if change.commit == state.tip:
        return facts | {"diff": "", "diff_artifact": ""}
    whole = shown = hide(clean(diff_between(mirror.git, state.tip, change.commit)))
    if len(whole) > DIFF_CHARACTERS:
        beginning = whole[: DIFF_CHARACTERS - 40]
        lines = beginning.rpartition("\n")[0] or beginning
        shown = f"{lines}\n… {whole.count(chr(10), len(lines)) or 1} more lines"
    return facts | {"diff": shown, "diff_artifact": store.put_artifact(state.workflow, whole.encode())}


def bring_work(store: Store, state: AnyState, cache: Path) -> Mirror:
    """This machine's mirror, with the workflow's base and the work so far."""
    snapshot = snapshot_in(state)
    mirror = mirror_of(snapshot, cache)
    if not mirror.has(state.tip) or (snapshot.copied and not mirror.has(snapshot.copied)):
        bring(snapshot, issue=state.issue, cache=cache)
        # All bundles in the history, oldest first, because each needs the earlier ones.
        named = (entry.body["event"].get("bundle", "") for entry in store.history(state.workflow))
        for digest in filter(None, named):
            found = store.get_artifact(state.workflow, digest)
            if found is None:
                bundle = f"the bundle {digest[:12]} of {state.workflow}"
                raise InfrastructureError(f"{bundle} is missing from the store, and with it a fix")
            mirror.unbundle(found)
        if not mirror.has(state.tip):
            raise InfrastructureError(
                f"commit {state.tip[:12]} of {state.workflow} is neither in {mirror.path} nor among the bundles in the "
                "store; an older version made it, on another machine"
            )
    mirror.use(state.workflow, snapshot.commit, state.tip, snapshot.copied, snapshot.base)
    return mirror


def push_branch(store: Store, state: AnyState, cache: Path) -> str:
    """Push `fixloop/{issue}` and return its name, empty if no fix was needed; repeating the call changes nothing.
    RefusedError if the repository was given by path, or its server rejects the branch."""
    snapshot = snapshot_in(state)
    if not snapshot.is_url:
        raise RefusedError(
            f"issue {state.issue} was given by path; the branch fixloop/{state.issue} is in {snapshot.source}, "
            "push it from there"
        )
    if state.tip == snapshot.commit:
        return ""
    mirror = bring_work(store, state, cache)
    # The commits that earlier workflows of the same issue may have pushed, as far as the store has them.
    feature, ours = state.workflow.rpartition("-")[0], set()
    for number in range(1, number_of(state.workflow)):
        with suppress(ProtocolError):
            found = store.read(f"{feature}-{number}")
            earlier = profile_in(found.snapshot).load(found.snapshot) if found is not None else None
            if earlier is not None and earlier.pushed:
                ours.add(earlier.tip)
    return push(mirror, issue=state.issue, tip=state.tip, ours=ours)


def exposure(git: Git, old: str, new: str, variables: Mapping[str, str]) -> str:
    """
    Why a change from one commit to another is refused, in a sentence; empty if it adds no secret.

    Text in any file of the old commit is no secret: everyone with the repository knows it.
    """
    redaction = Redaction.of((), variables)
    for delta in deltas(git, old, new):
        if delta.is_deletion or delta.is_submodule:
            continue
        written = {
            "the name of a file": delta.path,
            redaction.text(shown(delta.path)): git.output("cat-file", "blob", delta.new.blob),
        }
        for where, data in written.items():
            if redaction.holds(data) and (name := _exposed_variable(git, delta, data, old, variables)):
                return (
                    f"the change puts the value of {name} into {where}; have it read from the environment, or take "
                    f"{name} out of the environment if it is no secret"
                )
    return ""


def _exposed_variable(git: Git, delta: Delta, data: bytes, old: str, variables: Mapping[str, str]) -> str:
    before = b"" if delta.is_addition else git.output("cat-file", "blob", delta.old.blob)
    for name, value in variables.items():
        own = Redaction.of((), {name: value})
        if own.holds(data) and not own.holds(before):
            values = "\n".join(sorted(set(worker_secrets((), {name: value}))))
            found = git.run("grep", "-q", "-F", "-f", "/dev/stdin", old, stdin=values.encode(), accept=(0, 1))
            if found.returncode != 0:
                return name
    return ""
