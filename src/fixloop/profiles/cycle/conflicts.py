"""Records conflicts: kind, reporter, the steps taken and the resolution (C52-C55).

A step is recorded only once it has been taken.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.records import Conflict, ConflictKind, Document
from fixloop.profiles.cycle.state import Cycle

_STEPS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("conflicts.toml").read_text(encoding="utf-8")
)


def opened(draft: Draft, conflict: Conflict, *steps: str, **facts: str) -> None:
    """Record a conflict with the steps taken when it was reported."""
    draft.append(conflicts=conflict)
    add_steps(draft, conflict.id, *steps, **facts)


def add_steps(draft: Draft, identity: str, *steps: str, resolution: str = "", **facts: str) -> None:
    """Add steps that a conflict has gone through, and how it ended; steps that its kind does not have are left out."""
    for conflict in draft.state.conflicts:
        if conflict.id != identity:
            continue
        texts = _STEPS[conflict.kind]
        filled = (texts[step].format(reporter=conflict.reporter, **facts) for step in steps if step in texts)
        after = conflict.with_(steps=(*conflict.steps, *filled), resolution=resolution or conflict.resolution)
        draft.replace("conflicts", after)


def resumed(draft: Draft, key: str) -> None:
    """The reporter works again after a clarification (C49)."""
    for conflict in draft.state.conflicts:
        clarified = _STEPS[conflict.kind].get("clarified", "").format(reporter=key)
        if conflict.reporter == key and clarified and conflict.steps[-1:] == (clarified,):
            add_steps(draft, conflict.id, "resumed")


def fixed(draft: Draft, key: str) -> None:
    """An agent that had to fix failed tests has reported (C53)."""
    for conflict in _open_failures(draft.state):
        if _STEPS[conflict.kind]["sent"].format(resolver=key) in conflict.steps:
            add_steps(draft, conflict.id, "fixed", resolver=key)


def retried(draft: Draft) -> None:
    """A further validation was requested (C53)."""
    for conflict in _open_failures(draft.state):
        if _STEPS[conflict.kind]["retried"] not in conflict.steps:
            add_steps(draft, conflict.id, "retried")


def validated_again(draft: Draft, resolution: str) -> None:
    """The validation after a fix has a result, which closes the earlier conflicts (C53)."""
    for conflict in _open_failures(draft.state):
        if _STEPS[conflict.kind]["retried"] in conflict.steps:
            add_steps(draft, conflict.id, "validated", resolution=resolution)


def content_of(state: Cycle, key: str) -> tuple[str, ...]:
    """The content of an agent's documents and plan without their versions: digests, and `TASK-002 after TASK-001`."""
    tasks = state.plan if key == "ep" else ()
    return (
        *(document.digest for document in state.documents_of(key)),
        *(task.id for task in tasks),
        *(f"{task.id} after {needed}" for task in tasks for needed in task.depends_on),
    )


def listed(documents: Iterable[Document]) -> str:
    """Documents in the form of a step: `ra/requirements.md v1.1.0, ra/edge-cases.md v1.0.0`."""
    return ", ".join(f"{each.agent}/{each.name} v{each.version}" for each in documents)


def _open_failures(state: Cycle) -> tuple[Conflict, ...]:
    return tuple(
        conflict
        for conflict in state.conflicts
        if conflict.kind is ConflictKind.TEST_FAILURE and not conflict.resolution
    )
