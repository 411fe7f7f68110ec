"""Handing in many features by one call: what they have in common is prepared once, and kept for all by one call of git.

What can be used becomes a workflow as if it had come alone, and what cannot is told with its reason; nothing is undone.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_named
from fixloop.errors import FixloopError, InfrastructureError, UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import Prepared, number_of, prepare
from fixloop.intake.submission import submit
from fixloop.profile_table import registered
from fixloop.repository.snapshot import keep_for
from fixloop.statefiles.sync import project

T = TypeVar("T")

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
    alike: dict[str, Prepared | FixloopError] = {}
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
    alike: dict[str, Prepared | FixloopError],
    cache: Path,
    keeping: Executor,
) -> _Batch:
    """`alike`: what was prepared for features of the same key, to which this is added."""
    refused: list[HandedIn] = []
    groups: defaultdict[str, list[_Ready]] = defaultdict(list)
    for number, feature in batch:
        if isinstance(feature, UsageError):
            refused.append(HandedIn(number, 0, "", False, str(feature)))
            continue
        key = feature.model_dump_json(exclude=_OWN)
        if key not in alike:
            alike[key] = _explained(lambda: prepare(None, feature.model_copy(update={"issue": None}), cache))  # noqa: B023
        prepared = alike[key]
        issue = (
            prepared
            if isinstance(prepared, FixloopError)
            else _explained(lambda: number_of(engine.store, prepared.project, feature))  # noqa: B023
        )
        if isinstance(prepared, FixloopError) or isinstance(issue, FixloopError):
            refused.append(HandedIn(number, feature.issue or 0, "", False, str(issue)))
        else:
            groups[key].append(_Ready(number, feature, prepared._replace(issue=issue)))
    kept = [
        (
            group,
            keeping.submit(keep_for, group[0].prepared.snapshot, [r.prepared.issue for r in group], cache),
        )
        for group in groups.values()
    ]
    return _Batch(refused, kept)


def _submitted(engine: ProfileEngine[Any], batch: _Batch) -> list[HandedIn]:
    found = batch.refused
    for ready, kept in batch.groups:
        kept.result()
        own = engine.of(profile_named(ready[0].feature.profile))
        for each, made in zip(ready, submit(own, [(r.feature, r.prepared) for r in ready]), strict=True):
            if isinstance(made, FixloopError):
                found.append(HandedIn(each.number, each.prepared.issue, "", False, str(made)))
            else:
                found.append(HandedIn(each.number, each.prepared.issue, made.workflow, made.created, ""))
                if registered(each.feature.profile).files:
                    project(own.store, made.workflow)
    return sorted(found)


def _explained(call: Callable[[], T]) -> T | FixloopError:
    """What a call returns, or why the caller cannot have it."""
    try:
        return call()
    except InfrastructureError:
        raise
    except FixloopError as error:
        return error
