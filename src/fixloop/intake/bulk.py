"""Handing in many features by one call: what they have in common is prepared once, and kept for all by one call of git.

What can be used becomes a workflow as if it had come alone, and what cannot is told with its reason; nothing is undone.
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
"""Features whose snapshots are kept at once, before the first of them is a workflow."""
_OWN: Final = {"issue", "name", "task", "restart", "kind", "priority"}
"""What a feature has for itself: all others of the same rest have the same snapshot and configuration."""


class HandedIn(NamedTuple):
    """What became of one feature."""

    number: int
    """Its place among those that were handed in, from 1."""
    issue: int
    """0 where it was refused before it had one."""
    workflow: str
    """Empty where it was refused."""
    created: bool
    """False: it was refused, or live already."""
    error: str
    """Why it was refused, in one sentence."""


class _Ready(NamedTuple):
    """A feature with its place and issue."""

    number: int
    feature: Feature
    prepared: Prepared


class _Batch(NamedTuple):
    """Features of which the snapshots are being kept."""

    refused: list[HandedIn]
    groups: list[tuple[list[_Ready], "Future[None]"]]


def enqueue_many(
    engine: ProfileEngine[Any], features: Iterable[Feature | UsageError], *, cache: Path
) -> Iterator[HandedIn]:
    """
    Create or join a workflow for each feature, in their order; the same call twice makes the same workflows.

    Args:
        features: read as they are needed; an error stands for one that cannot be read, and is told.

    Raises:
        InfrastructureError: Redis or git is away; what was yielded is handed in, and the same call again does the rest.
    """
    alike: dict[str, Prepared | UsageError] = {}
    numbered, waiting = enumerate(features, 1), deque[_Batch]()
    # While one batch becomes workflows, git keeps the snapshots of the next.
    with ThreadPoolExecutor(1) as keeping:
        while batch := list(islice(numbered, BATCH)):
            waiting.append(_kept(engine, batch, alike, cache, keeping))
            if len(waiting) > 1:
                yield from _submitted(engine, waiting.popleft())
        while waiting:
            yield from _submitted(engine, waiting.popleft())


def _kept(
    engine: ProfileEngine[Any],
    batch: Sequence[tuple[int, Feature | UsageError]],
    alike: dict[str, Prepared | UsageError],
    cache: Path,
    keeping: Executor,
) -> _Batch:
    """`alike`: what was prepared for features of the same key, to which this is added."""
    refused: list[HandedIn] = []
    groups: defaultdict[str, list[_Ready]] = defaultdict(list)
    for number, feature in batch:
        try:
            if isinstance(feature, UsageError):
                raise feature
            key = feature.model_dump_json(exclude=_OWN)
            if key not in alike:
                alike[key] = _prepared(feature, cache)
            prepared = alike[key]
            if isinstance(prepared, UsageError):
                raise prepared
            issue = number_of(engine.store, prepared.project, feature)
        except UsageError as error:
            named = 0 if isinstance(feature, UsageError) else feature.issue or 0
            refused.append(HandedIn(number, named, "", False, str(error)))
            continue
        groups[key].append(_Ready(number, feature, prepared._replace(issue=issue)))
    kept = [
        (
            ready,
            keeping.submit(keep_for, ready[0].prepared.snapshot, {r.prepared.issue for r in ready}, cache),
        )
        for ready in groups.values()
    ]
    return _Batch(refused, kept)


def _prepared(feature: Feature, cache: Path) -> Prepared | UsageError:
    try:
        return prepare(None, feature.model_copy(update={"issue": None}), cache)
    except UsageError as error:
        return error


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
