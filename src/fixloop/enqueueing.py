"""Handing a feature in: snapshot, frozen configuration, identity, and the workflow that is created from them.

The same code serves `run`, `enqueue`, the Python call and the Celery task. The same call twice is one workflow.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from fixloop.configuration.document import read_document
from fixloop.configuration.loading import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.project import project_at
from fixloop.engine import Engine
from fixloop.errors import InfrastructureError, RefusedError, UsageError
from fixloop.interpreters import Interpreter, choose_interpreter, importable_with
from fixloop.protocol.events import Cancelled, WorkflowStarted
from fixloop.protocol.state import Limits, State
from fixloop.repository.git import Git
from fixloop.repository.identity import Project, project_of_url, top_of
from fixloop.repository.snapshot import (
    Snapshot,
    is_url,
    mirror_of,
    take_snapshot,
    take_snapshot_of_url,
    write_ref,
)
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id

__all__ = [
    "Enqueued",
    "Feature",
    "configuration_in",
    "enqueue",
    "exported",
    "frozen_configuration",
    "limits_of",
    "refuse_unusable",
]


class Feature(BaseModel):
    """What is handed in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issue: int | None = None
    """None: the lowest number this project has never used."""
    repo: str = "."
    """A folder in a checkout, a plain folder, or a git URL."""
    ref: str | None = None
    """A branch, a tag or a commit: what was committed there, instead of the working tree or the remote's HEAD."""
    push: bool = False
    """When everything has passed, push the branch with the fixes to the URL that `repo` is."""
    name: str = ""
    fixer: str | None = None
    only: str | None = None
    max_iterations: int | None = None
    restart: bool = False
    """Cancel the live workflow of the same feature instead of refusing."""
    may_join: bool = True
    """Take the live workflow of the same feature, if it is the same in all; a dry run may not decide for one."""
    own_queue: bool = False
    """A queue of its own, for a `run` that brings its own worker."""


class Enqueued(NamedTuple):
    """The feature's workflow, new or joined."""

    workflow: str
    created: bool
    state: State
    configuration: Configuration


class _Prepared(NamedTuple):
    project: Project
    issue: int
    snapshot: Snapshot
    configuration: Configuration


def refuse_unusable(feature: Feature) -> None:
    """
    Look at a folder's configuration and fixer before anything is started or written.

    Raises:
        UsageError: the path, the configuration or the fixer cannot be used.
    """
    _refuse_push(feature)
    if not is_url(feature.repo) and not feature.ref:
        directory = _directory(feature)
        _check_fixer(_configuration(directory, feature, project_at(directory), directory), directory, feature)


def enqueue(engine: Engine, feature: Feature, *, cache: Path) -> Enqueued:
    """
    Create the feature's workflow, or join the live one on the same tree.

    Raises:
        UsageError: the path, the configuration or the fixer cannot be used; nothing was created.
        RefusedError: the feature is live on another tree.
    """
    prepared = _prepare(engine, feature, cache)
    live = engine.store.live(prepared.project.hash8, prepared.issue)
    if live is not None:
        joined = _join(engine, live, prepared, feature)
        if joined is not None:
            return joined
    return _create(engine, prepared, feature)


def limits_of(configuration: Configuration) -> Limits:
    """The protocol's limits from the configured ones: seconds, and None for what is switched off."""
    told = configuration.limits
    specialists = {
        entry.name: _seconds(entry.timeout_minutes)
        for entry in configuration.specialists
        if entry.timeout_minutes is not None
    }
    fixer = configuration.fixer or configuration.agent
    own = fixer.timeout_minutes if fixer is not None else None
    limits = Limits(
        validation_seconds=_seconds(told.validation_minutes),
        revalidation_seconds=_seconds(told.revalidation_minutes),
        specialist_seconds=specialists,
        fix_seconds=_seconds(told.fix_minutes if own is None else own),
        reminder_seconds=_seconds(told.reminder_minutes),
        reminder_window_seconds=_seconds(told.reminder_window_minutes),
        deadlock_window=told.deadlock_window or None,
        specialist_attempts=told.specialist_attempts,
        fix_attempts=told.fix_attempts,
        delivery_attempts=told.delivery_attempts,
        receipt_seconds=_seconds(told.receipt_minutes),
        answer_attempts=told.answer_attempts,
        confirm_rounds=told.confirm_rounds,
        extra_iterations=told.extend_iterations,
        extend_minutes=told.extend_minutes,
    )
    cap = told.iteration_minutes
    return limits.model_copy(
        update={"iteration_seconds": _no_shorter_cap(limits) if cap is None else _seconds(cap)}
    )


def _no_shorter_cap(limits: Limits) -> float | None:
    """The cap on an iteration that nobody set never undercuts a step's own limit, nor limits one without."""
    steps = (limits.revalidation_seconds, limits.fix_seconds, *limits.specialist_seconds.values())
    known = [seconds for seconds in steps if seconds is not None]
    return max([Limits().iteration_seconds or 0.0, *known]) if len(known) == len(steps) else None


def _seconds(minutes: float | None) -> float | None:
    return minutes * 60 if minutes else None


def frozen_configuration(store: Store, state: State) -> Configuration:
    """
    The configuration a workflow goes by.

    Raises:
        InfrastructureError: the store has lost it.
    """
    data = store.get_artifact(state.workflow, state.configuration)
    if data is None:
        raise InfrastructureError(
            f"the configuration {state.configuration[:12]} of {state.workflow} is missing from the store"
        )
    return Configuration.model_validate_json(data)


@contextmanager
def exported(snapshot: Snapshot, commit: str, cache: Path) -> Iterator[Path]:
    """The folder a workflow's commands see, at `commit`, as plain files in a temporary place."""
    with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
        top, index = Path(folder) / "tree", Path(folder) / "index"
        top.mkdir()
        git = mirror_of(snapshot, cache).over(top).with_index(index)
        git.run("read-tree", commit)
        git.run("checkout-index", "--all", "--force")
        yield top / snapshot.subdirectory


def _prepare(engine: Engine, feature: Feature, cache: Path) -> _Prepared:
    if feature.issue is not None and not 0 < feature.issue < 10**15:
        raise UsageError(f"issue {feature.issue} is no issue number; use a positive whole number")
    _refuse_push(feature)
    if is_url(feature.repo):
        return _from_url(engine, feature, cache)
    directory = _directory(feature)
    project = project_at(directory)
    if feature.ref:
        return _from_ref(engine, feature, cache, directory)
    configuration = _configuration(directory, feature, project, directory)
    _check_fixer(configuration, directory, feature)
    issue = _number(engine, project, feature)
    globs = configuration.workspace.copy_globs
    snapshot = take_snapshot(directory, issue=issue, cache=cache, copy_globs=globs)
    return _Prepared(project, issue, snapshot, configuration)


def _refuse_push(feature: Feature) -> None:
    if feature.push and not is_url(feature.repo):
        raise UsageError(
            f"{feature.repo} is a path, and --push needs a URL to push to; leave it out: the branch fixloop/ISSUE "
            "is written into the repository itself"
        )


def _directory(feature: Feature) -> Path:
    directory = Path(feature.repo)
    if not directory.is_dir():
        raise UsageError(
            f"{feature.repo} is no folder" if directory.exists() else f"no such path: {feature.repo}"
        )
    return directory


def _from_ref(engine: Engine, feature: Feature, cache: Path, directory: Path) -> _Prepared:
    project = project_at(directory)
    issue = _number(engine, project, feature)
    snapshot = take_snapshot(directory, issue=issue, cache=cache, ref=feature.ref)
    with exported(snapshot, snapshot.commit, cache) as folder:
        configuration = _configuration(folder, feature, project, directory)
        _check_fixer(configuration, folder, feature)
    return _Prepared(project, issue, snapshot, configuration)


def _from_url(engine: Engine, feature: Feature, cache: Path) -> _Prepared:
    project = project_of_url(feature.repo)
    issue = _number(engine, project, feature)
    snapshot = take_snapshot_of_url(feature.repo, feature.ref, issue=issue, cache=cache)
    with exported(snapshot, snapshot.commit, cache) as folder:
        configured = read_document(folder).table.get("project", "")
        if configured and isinstance(configured, str):
            project = project_of_url(feature.repo, configured)
        configuration = _configuration(folder, feature, project, folder)
        _check_fixer(configuration, folder, feature)
    return _Prepared(project, issue, snapshot, configuration)


def _configuration(directory: Path, feature: Feature, project: Project, home: Path) -> Configuration:
    loaded = configuration_in(
        directory, home=home, fixer=feature.fixer, only=feature.only, project=project.name
    )
    if feature.max_iterations is None:
        return loaded
    return loaded.model_copy(update={"max_iterations": feature.max_iterations})


def configuration_in(
    directory: Path, *, home: Path, fixer: str | None = None, only: str | None = None, project: str
) -> Configuration:
    """
    The configuration of a folder, with the presets of the tools that its interpreter has.

    Args:
        directory: what is configured.
        home: the folder's place in the user's checkout, whose interpreter will be used; itself where there is none.

    Raises:
        UsageError: the configuration is wrong, or nothing applies.
    """
    importable = importable_with(interpreter_at(home))
    loaded = load_configuration(directory, fixer=fixer, only=only, project=project, importable=importable)
    return loaded.model_copy(update={"only": only or ""})


def interpreter_at(home: Path) -> Interpreter:
    """The interpreter that a folder in the user's checkout will be checked with, before any setup."""
    top, subdirectory = top_of(home)
    return choose_interpreter(made=None, source=top, subdirectory=subdirectory, variables=os.environ)


def _number(engine: Engine, project: Project, feature: Feature) -> int:
    if feature.issue is None:
        return engine.store.allocate_issue(project.hash8)
    engine.store.use_issue(project.hash8, feature.issue)
    return feature.issue


def _check_fixer(configuration: Configuration, directory: Path, feature: Feature) -> None:
    """A fixer that cannot be found is refused before anything runs; what is installed elsewhere, only there."""
    if configuration.fixer is None:
        return
    program = configuration.fixer.command[0]
    if "/" in program:
        found = os.access(directory / program, os.X_OK) and (directory / program).is_file()
    else:
        found = (
            not feature.own_queue or bool(configuration.workspace.setup) or _is_installed(program, feature)
        )
    if not found:
        raise UsageError(
            f"the fixer's command {program!r} is not found or not executable; "
            "install it or mend `[fixer] command`"
        )


def _is_installed(program: str, feature: Feature) -> bool:
    """Where a fixer is looked for: beside the project's interpreter, which is `python` by any name, and on the PATH."""
    if is_url(feature.repo):
        chosen = choose_interpreter(made=None, source=None, subdirectory="", variables=os.environ)
    else:
        chosen = interpreter_at(Path(feature.repo))
    places = [str(Path(chosen.path).parent), os.environ.get("PATH", os.defpath)]
    return bool(chosen.path and program == "python") or bool(
        shutil.which(program, path=os.pathsep.join(places))
    )


def _join(engine: Engine, live: str, prepared: _Prepared, feature: Feature) -> Enqueued | None:
    state = engine.state(live)
    if feature.restart:
        event = Cancelled(reason="started again with --restart")
        engine.apply(live, event, operation=f"restart/{prepared.snapshot.tree}")
        return None
    began = Snapshot.model_validate_json(state.snapshot)
    how = _difference(engine, live, prepared) if began.tree == prepared.snapshot.tree else "on another tree"
    if not how and state.push != feature.push:
        how = "with --push" if state.push else "without --push"
    if how or not feature.may_join:
        if began.is_git and not began.is_url:
            # The refused call has taken its own snapshot; the live one's is what this ref stands for.
            write_ref(Git(Path(began.source)), f"refs/fixloop/{prepared.issue}/base", began.commit)
        raise RefusedError(
            f"issue {prepared.issue} is live{' ' * bool(how)}{how} (workflow {live}); `fixloop cancel "
            f"{prepared.issue}` it, or start again with --restart"
        )
    return Enqueued(live, False, state, prepared.configuration)


def _difference(engine: Engine, live: str, prepared: _Prepared) -> str:
    """How the call differs from the one that began the live workflow, whose gates a person may have changed since."""
    [first, *_] = engine.store.history(live)
    data = engine.store.get_artifact(live, first.body["event"].get("configuration", ""))
    began = Configuration.model_validate_json(data) if data is not None else prepared.configuration
    if (began.fixer, began.agent) != (prepared.configuration.fixer, prepared.configuration.agent):
        return "with another fixer"
    # What is merely detected depends on the caller's shell.
    same = {"detected_not_configured": began.detected_not_configured}
    return "" if prepared.configuration.model_copy(update=same) == began else "with other gates"


def _create(engine: Engine, prepared: _Prepared, feature: Feature) -> Enqueued:
    project, configuration, snapshot = prepared.project.hash8, prepared.configuration, prepared.snapshot
    number = engine.store.next_number(project, prepared.issue)
    workflow = workflow_id(project, prepared.issue, number)
    event = WorkflowStarted(
        workflow=workflow,
        project=prepared.project.name,
        issue=prepared.issue,
        name=feature.name or Path(snapshot.source).name.removesuffix(".git"),
        specialists=tuple(entry.name for entry in configuration.specialists),
        max_iterations=configuration.max_iterations,
        limits=limits_of(configuration),
        fixer="command" if configuration.fixer is not None else "outside",
        agent=configuration.agent.name if configuration.agent is not None else "",
        acks=configuration.agent is not None and configuration.agent.acks,
        notify=bool(configuration.notify),
        bundle_fix_request=configuration.bundle_fix_request,
        queue=f"run-{workflow}" if feature.own_queue else "",
        push=feature.push,
        configuration=engine.store.put_artifact(workflow, configuration.to_json().encode(), shared=True),
        snapshot=snapshot.model_dump_json(exclude_defaults=True),
        tip=snapshot.commit,
        tree=snapshot.tree,
    )
    applied = engine.start(event)
    if applied.status == "exists":
        joined = _join(engine, applied.other, prepared, feature)
        return joined if joined is not None else _create(engine, prepared, feature)
    return Enqueued(workflow, applied.status == "ok", engine.state(workflow), configuration)
