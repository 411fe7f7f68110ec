"""Submits many features in one call: shared parts are prepared once, and stored for all by one call of git.

A usable feature becomes a workflow as if submitted alone; an unusable one is reported with a reason. Nothing is undone.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_named
from fixloop.errors import UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import Prepared, number_of, prepare
from fixloop.intake.submission import submit
from fixloop.profile_table import registered
from fixloop.repository.snapshot import keep_for
from fixloop.statefiles.sync import project

BATCH: Final = 500
"""How many features' snapshots are stored before the first of these features becomes a workflow."""
_OWN: Final = {"issue", "name", "task", "restart", "kind", "priority"}
"""The fields specific to a feature: features that agree in all others share the snapshot and configuration."""


class HandedIn(NamedTuple):
    """The result for one feature."""

    number: int
    """Its position in the input, from 1."""
    issue: int
    """0 if it was refused before it had one."""
    workflow: str
    """Empty if it was refused."""
    created: bool
    """False: it was refused, or is already live."""
    error: str
    """Why it was refused, in one sentence."""


class _Ready(NamedTuple):
    """A feature with its position and issue."""

    number: int
    feature: Feature
    prepared: Prepared


class _Batch(NamedTuple):
    """Features whose snapshots are being stored."""

    refused: list[HandedIn]
    groups: list[tuple[list[_Ready], "Future[None]"]]


def enqueue_many(
    engine: ProfileEngine[Any], features: Iterable[Feature | UsageError], *, cache: Path
) -> Iterator[HandedIn]:
    """
    Create or join a workflow for each feature, in order; repeating the call creates no others.

    Args:
        features: read lazily; an error in place of a feature that cannot be read is reported.

    Raises:
        InfrastructureError: Redis or git is away; yielded features are submitted, and repeating the call does the rest.
    """
    alike: dict[str, Prepared | UsageError] = {}
    numbered, waiting = enumerate(features, 1), deque[_Batch]()
    # While one batch becomes workflows, git stores the snapshots of the next.
    with ThreadPoolExecutor(1) as keeping:
        while batch := list(islice(numbered, BATCH)):
            waiting.append(_store_snapshots(engine, batch, alike, cache, keeping))
            if len(waiting) > 1:
                yield from _submitted(engine, waiting.popleft())
        while waiting:
            yield from _submitted(engine, waiting.popleft())


def _store_snapshots(
    engine: ProfileEngine[Any],
    batch: Sequence[tuple[int, Feature | UsageError]],
    alike: dict[str, Prepared | UsageError],
    cache: Path,
    keeping: Executor,
) -> _Batch:
    """`alike`: preparations by key for features with the same shared fields; it is extended."""
    refused: list[HandedIn] = []
    groups: defaultdict[str, list[_Ready]] = defaultdict(list)
    for number, feature in batch:
        try:
            if isinstance(feature, UsageError):
                raise feature
            key = feature.model_dump_json(exclude=_OWN)
            if key not in alike:
                try:
                    alike[key] = prepare(None, feature.model_copy(update={"issue": None}), cache)
                except UsageError as error:
                    alike[key] = error
            prepared = alike[key]
            if isinstance(prepared, UsageError):
                raise prepared
            issue = number_of(engine.store, prepared.project, feature)
        except UsageError as error:
            named = 0 if isinstance(feature, UsageError) else feature.issue or 0
            refused.append(HandedIn(number, named, "", False, str(error)))
            continue
        groups[key].append(_Ready(number, feature, prepared._replace(issue=issue)))
    kept = []
    for ready in groups.values():
        issues = {each.prepared.issue for each in ready}
        kept.append((ready, keeping.submit(keep_for, ready[0].prepared.snapshot, issues, cache)))
    return _Batch(refused, kept)


def _submitted(engine: ProfileEngine[Any], batch: _Batch) -> list[HandedIn]:
    found = batch.refused
    for ready, kept in batch.groups:
        own = engine.of(profile_named(ready[0].feature.profile))
        refused = kept.exception()
        if refused is not None and not isinstance(refused, UsageError):
            raise refused
        made = submit(own, [(r.feature, r.prepared) for r in ready]) if refused is None else repeat(refused)
        for each, became in zip(ready, made, strict=False):
            if isinstance(became, Exception):
                found.append(HandedIn(each.number, each.prepared.issue, "", False, str(became)))
                continue
            found.append(HandedIn(each.number, each.prepared.issue, became.workflow, became.created, ""))
            if registered(each.feature.profile).files:
                project(own.store, became.workflow)
    return sorted(found)
