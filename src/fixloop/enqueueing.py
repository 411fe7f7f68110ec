"""Handing a feature in: snapshot, frozen configuration, identity, and the workflow that is created from them.

The same code serves `run`, `enqueue`, the Python call and the Celery task. The same call twice is one workflow.
"""

import os
import secrets
import shutil
import string
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from fixloop.configuration.document import read_document
from fixloop.configuration.loading import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.project import project_at
from fixloop.configuration.roles import CycleSettings
from fixloop.engine import ProfileEngine
from fixloop.errors import InfrastructureError, RefusedError, UsageError
from fixloop.interpreters import Interpreter, choose_interpreter, importable_with
from fixloop.profiles.beginning import cycle_started, handoffs_started
from fixloop.profiles.profile import AnyStart
from fixloop.profiles.table import PROFILES, profile_in
from fixloop.projecting import project
from fixloop.protocol.cycle.graph import check_graph
from fixloop.protocol.events import WorkflowStarted
from fixloop.protocol.handoff.routes import Kind, Priority
from fixloop.protocol.state import Limits
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
    "validation_started",
]


class Feature(BaseModel):
    """What is handed in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: Literal["validation", "cycle", "handoff"] = "validation"
    issue: int | None = None
    """None: the lowest number this project has never used."""
    repo: str = "."
    """A folder in a checkout, a plain folder, or a git URL."""
    ref: str | None = None
    """A branch, a tag or a commit: what was committed there, instead of the working tree or the remote's HEAD."""
    push: bool = False
    """When everything has passed, push the branch with the fixes to the URL that `repo` is."""
    name: str = ""
    task: str = ""
    """Of a cycle or of handoffs: what is to be done, in as many words as it takes."""
    graph: dict[str, tuple[str, ...]] = {}
    """Of a cycle: which agent waits for which; empty: as its configuration says."""
    kind: Kind = Kind.FEATURE
    """Of handoffs: what they are for."""
    priority: Priority = Priority.HIGH
    """Of handoffs."""
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
    state: Any
    """Of the feature's profile."""
    configuration: Configuration


class _Configured(Protocol):
    """A workflow of any profile, as far as its configuration is concerned."""

    @property
    def workflow(self) -> str: ...

    @property
    def configuration(self) -> str: ...


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
    if feature.graph:
        check_graph(feature.graph)
    if not is_url(feature.repo) and not feature.ref:
        directory = _directory(feature)
        configuration = _configuration(directory, feature, project_at(directory), directory)
        _check_commands(configuration, directory, feature)


def enqueue(engine: ProfileEngine[Any], feature: Feature, *, cache: Path) -> Enqueued:
    """
    Create the feature's workflow, or join the live one on the same tree.

    Args:
        engine: of any profile; its store and listeners are taken.

    Raises:
        UsageError: the path, the configuration or the fixer cannot be used; nothing was created.
        RefusedError: the feature is live on another tree.
    """
    engine = engine.of(PROFILES[feature.profile])
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


def frozen_configuration(store: Store, state: _Configured) -> Configuration:
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


def _prepare(engine: ProfileEngine[Any], feature: Feature, cache: Path) -> _Prepared:
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
    _check_commands(configuration, directory, feature)
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


def _from_ref(engine: ProfileEngine[Any], feature: Feature, cache: Path, directory: Path) -> _Prepared:
    project = project_at(directory)
    issue = _number(engine, project, feature)
    snapshot = take_snapshot(directory, issue=issue, cache=cache, ref=feature.ref)
    with exported(snapshot, snapshot.commit, cache) as folder:
        configuration = _configuration(folder, feature, project, directory)
        _check_commands(configuration, folder, feature)
    return _Prepared(project, issue, snapshot, configuration)


def _from_url(engine: ProfileEngine[Any], feature: Feature, cache: Path) -> _Prepared:
    project = project_of_url(feature.repo)
    issue = _number(engine, project, feature)
    snapshot = take_snapshot_of_url(feature.repo, feature.ref, issue=issue, cache=cache)
    with exported(snapshot, snapshot.commit, cache) as folder:
        configured = read_document(folder).table.get("project", "")
        if configured and isinstance(configured, str):
            project = project_of_url(feature.repo, configured)
        configuration = _configuration(folder, feature, project, folder)
        _check_commands(configuration, folder, feature)
    return _Prepared(project, issue, snapshot, configuration)


def _configuration(directory: Path, feature: Feature, project: Project, home: Path) -> Configuration:
    loaded = configuration_in(
        directory,
        home=home,
        fixer=feature.fixer,
        only=feature.only,
        project=project.name,
        profile=feature.profile,
    )
    if feature.max_iterations is None:
        return loaded
    return loaded.model_copy(update={"max_iterations": feature.max_iterations})


def configuration_in(
    directory: Path,
    *,
    home: Path,
    fixer: str | None = None,
    only: str | None = None,
    project: str,
    profile: str = "validation",
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
    loaded = load_configuration(
        directory, fixer=fixer, only=only, project=project, importable=importable, profile=profile
    )
    return loaded.model_copy(update={"only": only or ""})


def interpreter_at(home: Path) -> Interpreter:
    """The interpreter that a folder in the user's checkout will be checked with, before any setup."""
    top, subdirectory = top_of(home)
    return choose_interpreter(made=None, source=top, subdirectory=subdirectory, variables=os.environ)


def _number(engine: ProfileEngine[Any], project: Project, feature: Feature) -> int:
    if feature.issue is None:
        return engine.store.allocate_issue(project.hash8)
    engine.store.use_issue(project.hash8, feature.issue)
    return feature.issue


def _check_commands(configuration: Configuration, directory: Path, feature: Feature) -> None:
    """A command that cannot be found is refused before anything runs; what is installed elsewhere, only there."""
    for whose, place, command in _commands(configuration, feature.profile):
        program = command[0]
        if "/" in program:
            found = os.access(directory / program, os.X_OK) and (directory / program).is_file()
        else:
            found = (
                not feature.own_queue
                or bool(configuration.workspace.setup)
                or _is_installed(program, feature)
            )
        if not found:
            raise UsageError(
                f"{whose} command {program!r} is not found or not executable; install it or mend `{place} command`"
            )


def _commands(configuration: Configuration, profile: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Whose command it is, the section that names it, and its words."""
    settings = {"cycle": configuration.cycle, "handoff": configuration.handoff}.get(profile)
    fixer = configuration.fixer
    if profile == "validation" and fixer is not None and not fixer.is_handoffs:
        yield "the fixer's", "[fixer]", fixer.command
    for name, role in settings.agent.items() if settings is not None else ():
        if role.command and not role.is_validation_loop:
            yield f"{name}'s", f"[{profile}.agent.{name}]", role.command


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


def validation_started(configuration: Configuration, /, **facts: Any) -> WorkflowStarted:
    """The beginning of a validation loop; `facts` are the event's other fields: workflow, issue, name, tip …"""
    written: dict[str, Any] = {
        "specialists": tuple(entry.name for entry in configuration.specialists),
        "max_iterations": configuration.max_iterations,
        "limits": limits_of(configuration),
        "fixer": "command" if configuration.fixer is not None else "outside",
        "agent": configuration.agent.name if configuration.agent is not None else "",
        "acks": configuration.agent is not None and configuration.agent.acks,
        "notify": bool(configuration.notify),
        "bundle_fix_request": configuration.bundle_fix_request,
    }
    return WorkflowStarted(**written | facts)


def _join(engine: ProfileEngine[Any], live: str, prepared: _Prepared, feature: Feature) -> Enqueued | None:
    found = engine.store.read(live)
    if found is None:
        return None
    profile = profile_in(found.snapshot)
    if feature.restart:
        event = profile.cancelled(reason="started again with --restart")
        engine.of(profile).apply(live, event, operation=f"restart/{prepared.snapshot.tree}")
        project(engine.store, live)
        return None
    state = profile.load(found.snapshot)
    how = _other(engine.store, state, prepared, feature)
    if how or not feature.may_join:
        began = Snapshot.model_validate_json(state.snapshot) if state.snapshot else None
        if began is not None and began.is_git and not began.is_url:
            # The refused call has taken its own snapshot; the live one's is what this ref stands for.
            write_ref(Git(Path(began.source)), f"refs/fixloop/{prepared.issue}/base", began.commit)
        raise RefusedError(
            f"issue {prepared.issue} is live{' ' * bool(how)}{how} (workflow {live}); `fixloop cancel "
            f"{prepared.issue}` it, or start again with --restart"
        )
    return Enqueued(live, False, state, prepared.configuration)


def _other(store: Store, state: Any, prepared: _Prepared, feature: Feature) -> str:
    """How the live workflow is another one than this call would begin; empty where it is the same."""
    if state.profile != feature.profile:
        return f"as a workflow of profile {state.profile}"
    if not state.snapshot or Snapshot.model_validate_json(state.snapshot).tree != prepared.snapshot.tree:
        return "on another tree"
    how = _difference(store, state.workflow, prepared)
    if not how and feature.profile == "validation" and state.push != feature.push:
        return "with --push" if state.push else "without --push"
    if not how and feature.task and feature.task != _TASKS[feature.profile](state):
        return "with another task"
    return how


def _difference(store: Store, live: str, prepared: _Prepared) -> str:
    """How the call differs from the one that began the live workflow, whose gates a person may have changed since."""
    [first, *_] = store.history(live)
    data = store.get_artifact(live, first.body["event"].get("configuration", ""))
    began = Configuration.model_validate_json(data) if data is not None else prepared.configuration
    if (began.fixer, began.agent) != (prepared.configuration.fixer, prepared.configuration.agent):
        return "with another fixer"
    # What is merely detected depends on the caller's shell.
    same = {"detected_not_configured": began.detected_not_configured}
    return "" if prepared.configuration.model_copy(update=same) == began else "with other gates"


def _create(engine: ProfileEngine[Any], prepared: _Prepared, feature: Feature) -> Enqueued:
    project, configuration, snapshot = prepared.project.hash8, prepared.configuration, prepared.snapshot
    number = engine.store.next_number(project, prepared.issue)
    workflow = workflow_id(project, prepared.issue, number)
    facts = {
        "workflow": workflow,
        "project": prepared.project.name,
        "issue": prepared.issue,
        "name": feature.name or Path(snapshot.source).name.removesuffix(".git"),
        "queue": f"run-{workflow}" if feature.own_queue else "",
        "configuration": engine.store.put_artifact(workflow, configuration.to_json().encode(), shared=True),
        "snapshot": snapshot.model_dump_json(exclude_defaults=True),
        "tip": snapshot.commit,
    }
    applied = engine.start(_BEGINNINGS[feature.profile](engine.store, prepared, feature, facts))
    if applied.status == "exists":
        joined = _join(engine, applied.other, prepared, feature)
        return joined if joined is not None else _create(engine, prepared, feature)
    return Enqueued(workflow, applied.status == "ok", engine.state(workflow), configuration)


def _validation(store: Store, prepared: _Prepared, feature: Feature, facts: Mapping[str, Any]) -> AnyStart:
    return validation_started(prepared.configuration, **facts, push=feature.push, tree=prepared.snapshot.tree)


def _cycle(store: Store, prepared: _Prepared, feature: Feature, facts: Mapping[str, Any]) -> AnyStart:
    settings = prepared.configuration.cycle or CycleSettings()
    zone = timezone(timedelta(minutes=settings.utc_offset_minutes))
    own = {"graph": feature.graph} if feature.graph else {}
    return cycle_started(
        prepared.configuration,
        **facts,
        cycle_id=_cycle_id(store.now(facts["workflow"]).at.astimezone(zone)),
        description=feature.task,
        **own,
    )


def _cycle_id(at: datetime) -> str:
    """`cycle-v1-{YYYYMMDDTHHMMSS}-{eight characters}` (U10)."""
    return f"cycle-v1-{at:%Y%m%dT%H%M%S}-{''.join(secrets.choice(_BASE_36) for _ in range(8))}"


def _handoff(store: Store, prepared: _Prepared, feature: Feature, facts: Mapping[str, Any]) -> AnyStart:
    return handoffs_started(
        prepared.configuration,
        **facts,
        request=feature.task,
        type=feature.kind,
        priority=feature.priority,
    )


_BASE_36: Final = string.digits + string.ascii_lowercase
_BEGINNINGS: Final[dict[str, Callable[[Store, _Prepared, Feature, Mapping[str, Any]], AnyStart]]] = {
    "validation": _validation,
    "cycle": _cycle,
    "handoff": _handoff,
}
"""The event that begins a workflow of each profile, given what all have in common."""
_TASKS: Final[dict[str, Callable[[Any], str]]] = {
    "validation": lambda state: "",
    "cycle": lambda state: str(state.description),
    "handoff": lambda state: str(state.request),
}
"""What a workflow was asked to do."""
