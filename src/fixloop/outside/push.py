"""Pushing the branch of a workflow that went well to the URL its repository was given by."""

from contextlib import suppress
from pathlib import Path

from fixloop.engine.profile import AnyState, profile_in
from fixloop.errors import ProtocolError, RefusedError
from fixloop.outside.transfer import bring_work, snapshot_in
from fixloop.repository.publication import push
from fixloop.store.contract import Store
from fixloop.store.keys import number_of


def push_branch(store: Store, state: AnyState, cache: Path) -> str:
    """Push `fixloop/{issue}` and tell its name, empty where no fix was needed; the same call again changes nothing.
    RefusedError where the repository was given by path, or its server does not take the branch."""
    snapshot = snapshot_in(state)
    if not snapshot.is_url:
        raise RefusedError(
            f"issue {state.issue} was given by path; the branch fixloop/{state.issue} is in {snapshot.source}, "
            "push it from there"
        )
    if state.tip == snapshot.commit:
        return ""
    mirror = bring_work(store, state, cache)
    # What earlier workflows of the same issue may have pushed, as far as the store still knows them.
    feature, ours = state.workflow.rpartition("-")[0], set()
    for number in range(1, number_of(state.workflow)):
        with suppress(ProtocolError):
            found = store.read(f"{feature}-{number}")
            earlier = profile_in(found.snapshot).load(found.snapshot) if found is not None else None
            if earlier is not None and earlier.pushed:
                ours.add(earlier.tip)
    return push(mirror, issue=state.issue, tip=state.tip, ours=ours)
