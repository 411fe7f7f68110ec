"""Submits a feature: creates its workflow from the prepared facts, or joins the live one.

`run`, `enqueue`, the Python call and the Celery task share this code. Repeating a call creates no second workflow.
"""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fixloop.configuration.model import Configuration
from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_in, profile_named
from fixloop.errors import FixloopError, InfrastructureError, RefusedError, UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import Intake, Prepared, Usable, prepare
from fixloop.intake.redaction_scope import redaction_of
from fixloop.profile_table import loaded, registered
from fixloop.repository.git import Git
from fixloop.repository.snapshot import Snapshot, write_ref
from fixloop.statefiles.sync import project
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.keys import shard_of, workflow_id


class Enqueued(NamedTuple):
    """The feature's workflow, new or joined."""

    workflow: str
    created: bool
    state: Any
    """The state, of the feature's profile."""
    configuration: Configuration


def enqueue(
    engine: ProfileEngine[Any],
    feature: Feature,
    *,
    cache: Path,
    known: Usable | None = None,
    projects: Container[str] | None = None,
) -> Enqueued:
    """Create the feature's workflow, or join the live one on the same tree, with the store and callbacks of `engine`.
    Nothing is created after a UsageError: the feature cannot be used, or is none of `projects`; or a RefusedError: it
    is live on another tree."""
    prepared = prepare(engine.store, feature, cache, known)
    if projects is not None and prepared.project.hash8 not in projects:
        raise UsageError(f"{feature.repo} is of project {prepared.project.hash8}, which is not one of yours")
    [submitted] = submit(engine.of(profile_named(feature.profile)), [(feature, prepared)])
    if isinstance(submitted, FixloopError):
        raise submitted
    return submitted


def submit(
    engine: ProfileEngine[Any], handed_in: Sequence[tuple[Feature, Prepared]]
) -> Iterator[Enqueued | FixloopError]:
    """The workflow of each feature, or why there is none. The features are prepared and stored, and share everything
    except their names and tasks. Raises InfrastructureError."""
    hide = redaction_of(handed_in[0][1].configuration).text
    without = [
        (feature.model_copy(update={"name": hide(feature.name), "task": hide(feature.task)}), prepared)
        for feature, prepared in handed_in
    ]
    for (feature, prepared), created in zip(without, _made(engine, without), strict=True):
        try:
            # A live workflow that has ended in the meantime, or has to be cancelled, is followed by a new one.
            while not isinstance(created, Enqueued):
                joined = _joined(engine, created, prepared, feature)
                [created] = [joined] if joined is not None else _made(engine, [(feature, prepared)])
            yield created
        except InfrastructureError:
            raise
        except FixloopError as error:
            yield error


def _joined(engine: ProfileEngine[Any], live: str, prepared: Prepared, feature: Feature) -> Enqueued | None:
    with reading(live):
        found = engine.store.read(live)
        if found is None:
            return None
        profile = profile_in(found.snapshot)
        if feature.restart:
            event = profile.event("cancelled", reason="started again with --restart")
            engine.of(profile).apply(live, event, operation=f"restart/{prepared.snapshot.tree}")
            project(engine.store, live)
            return None
        state = profile.load(found.snapshot)
        how = _difference(engine.store, state, prepared, feature)
        if how:
            began = Snapshot.model_validate_json(state.snapshot) if state.snapshot else None
            if began is not None and began.is_git and not began.is_url:
                # The refused call stored its own snapshot under this ref; restore the live workflow's.
                write_ref(Git(Path(began.source)), f"refs/fixloop/{prepared.issue}/base", began.commit)
            raise RefusedError(
                f"issue {prepared.issue} is live {how} (workflow {live}); `fixloop cancel "
                f"{prepared.issue}` it, or start again with --restart"
            )
        return Enqueued(live, False, state, prepared.configuration)


def _difference(store: Store, state: Any, prepared: Prepared, feature: Feature) -> str:
    """How the live workflow differs from the one that this call would start; empty if it does not."""
    if state.profile != feature.profile:
        return f"as a workflow of profile {state.profile}"
    if not state.snapshot or Snapshot.model_validate_json(state.snapshot).tree != prepared.snapshot.tree:
        return "on another tree"
    # The event that started it, because a person may have changed the gates since.
    [first, *_] = store.history(state.workflow)
    data = store.get_artifact(state.workflow, first.body["event"].get("configuration", ""))
    began = Configuration.model_validate_json(data) if data is not None else prepared.configuration
    if (began.fixer, began.agent) != (prepared.configuration.fixer, prepared.configuration.agent):
        return "with another fixer"
    # Detected tools depend on the caller's shell, and the sandbox is not compared either.
    same = {"unverified": began.unverified, "sandbox": began.sandbox}
    if prepared.configuration.model_copy(update=same) != began:
        return "with other gates"
    if state.push != feature.push:
        return "with --push" if state.push else "without --push"
    return "with another task" if feature.task and feature.task != _intake(feature).task(state) else ""


def _made(engine: ProfileEngine[Any], features: Sequence[tuple[Feature, Prepared]]) -> list[Enqueued | str]:
    """The created workflow of each, or the id of the live workflow of its issue."""
    _, (project, _, snapshot, configuration) = features[0]
    numbers = engine.store.next_numbers(project.hash8, [prepared.issue for _, prepared in features])
    described, data = snapshot.model_dump_json(exclude_defaults=True), configuration.to_json().encode()
    kept: dict[int, str] = {}
    events = []
    for number, (feature, prepared) in zip(numbers, features, strict=True):
        workflow = workflow_id(project.hash8, prepared.issue, number)
        shard = shard_of(workflow)
        if shard not in kept:
            kept[shard] = engine.store.put_artifact(workflow, data, shared=True)
        facts = {
            "workflow": workflow,
            "project": project.name,
            "issue": prepared.issue,
            "name": feature.name or Path(snapshot.source).name.removesuffix(".git"),
            "queue": feature.queue,
            "configuration": kept[shard],
            "snapshot": described,
            "tip": snapshot.commit,
            "push": feature.push,
        }
        events.append(_intake(feature).begun(engine.store, prepared, feature, facts))
    made: list[Enqueued | str] = []
    for event, applied in zip(events, engine.start_all(events), strict=True):
        if applied.status == "exists":
            made.append(applied.other)
            continue
        state = engine.state(event.workflow) if applied.outcome is None else applied.outcome.state
        made.append(Enqueued(event.workflow, applied.status == "ok", state, configuration))
    return made


def _intake(feature: Feature) -> Intake:
    found: Intake = loaded(registered(feature.profile).intake)
    return found
