"""Prepares a workflow: determines its project and number, its snapshot and its configuration.

An unusable feature is refused before anything is written.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fixloop.configuration.document import FILE_NAME, PYPROJECT, Document, read_document
from fixloop.configuration.model import Configuration
from fixloop.errors import UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.frozen_configuration import configuration_in, interpreter_at
from fixloop.intake.project import project_at
from fixloop.machine.interpreters import choose_interpreter
from fixloop.profile_table import loaded, registered
from fixloop.protocol.event import Start
from fixloop.repository.feature_base import with_base
from fixloop.repository.identity import Project, project_of_url
from fixloop.repository.snapshot import Snapshot, mirror_of, take_snapshot, take_snapshot_of_url
from fixloop.repository.tree import contents

if TYPE_CHECKING:
    from fixloop.store.contract import Store


class Prepared(NamedTuple):
    project: Project
    issue: int
    """0 if none was given."""
    snapshot: Snapshot
    configuration: Configuration


class Usable(NamedTuple):
    """What a folder's own files say."""

    project: Project
    configuration: Configuration


class Intake(NamedTuple):
    """How workflows of a profile are started."""

    begun: "Callable[[Store, Prepared, Feature, Mapping[str, Any]], Start]"
    """Makes the start event, given the facts that all profiles share."""
    task: Callable[[Any], str] = lambda state: ""
    """The task that a workflow was given."""


def usable(feature: Feature) -> Usable | None:
    """What a folder's own files say, before anything is started or written; None if only the snapshot has them.
    UsageError: its configuration or its fixer cannot be used."""
    if feature.push and not feature.is_url:
        raise UsageError(
            f"{feature.repo} is a path, and --push needs a URL to push to; leave it out: the branch fixloop/ISSUE "
            "is written into the repository itself"
        )
    if feature.graph and (order := registered(feature.profile).order):
        loaded(order).check(feature.graph)
    if feature.is_url or feature.ref:
        return None
    directory = _directory(feature)
    project = project_at(directory)
    return Usable(project, _configuration(directory, feature, project, directory))


def prepare(store: "Store | None", feature: Feature, cache: Path, known: Usable | None = None) -> Prepared:
    """Prepare a feature and take its snapshot; without a store there is no workflow, and no number is allocated.
    `known`: the result of `usable`."""
    _check_issue(feature)
    known = known or usable(feature)
    if feature.is_url:
        project = project_of_url(feature.repo)
        issue = number_of(store, project, feature)
        snapshot = take_snapshot_of_url(feature.repo, feature.ref, issue=issue, cache=cache)
        with exported(snapshot, snapshot.commit, cache) as folder:
            project = project_of_url(feature.repo, read_document(folder).project)
            configuration = _configuration(folder, feature, project, folder)
        return _based(Prepared(project, issue, snapshot, configuration), cache)
    directory = _directory(feature)
    if known is None:
        project = project_at(directory)
        issue = number_of(store, project, feature)
        snapshot = take_snapshot(directory, issue=issue, cache=cache, ref=feature.ref)
        with exported(snapshot, snapshot.commit, cache) as folder:
            configuration = _configuration(folder, feature, project, directory)
    else:
        project, configuration = known
        issue = number_of(store, project, feature)
        globs = configuration.workspace.copy_globs
        snapshot = take_snapshot(directory, issue=issue, cache=cache, copy_globs=globs)
    return _based(Prepared(project, issue, snapshot, configuration), cache)


@contextmanager
def exported(snapshot: Snapshot, commit: str, cache: Path) -> Iterator[Path]:
    """The folder that a workflow's commands see, at `commit`, as plain files in a temporary place."""
    with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
        top, index = Path(folder) / "tree", Path(folder) / "index"
        top.mkdir()
        git = mirror_of(snapshot, cache).over(top).with_index(index)
        git.run("read-tree", commit)
        git.run("checkout-index", "--all", "--force")
        yield top / snapshot.subdirectory


def _directory(feature: Feature) -> Path:
    directory = Path(feature.repo)
    if not directory.is_dir():
        raise UsageError(
            f"{feature.repo} is no folder" if directory.exists() else f"no such path: {feature.repo}"
        )
    return directory


def _based(prepared: Prepared, cache: Path) -> Prepared:
    wanted = prepared.configuration.base
    snapshot = with_base(prepared.snapshot, issue=prepared.issue, cache=cache, wanted=wanted)
    if snapshot.no_base and prepared.configuration.compares:
        note = f"no base to compare with, so every failure counts: {snapshot.no_base}"
        snapshot = snapshot.model_copy(update={"notes": (*snapshot.notes, note)})
    return prepared._replace(snapshot=snapshot)


def with_gates_of_base(prepared: Prepared, feature: Feature, cache: Path) -> Prepared:
    """
    The same, with the base's configuration for fixloop if the checkout's differs.

    Anyone who works on a checkout could change it. If the base has none, the checkout's is used.
    """
    snapshot, directory = prepared.snapshot, _directory(feature)
    if snapshot.base in ("", snapshot.commit):
        return prepared
    place = f"{snapshot.base}:{snapshot.subdirectory}/".replace(":/", ":")
    found = contents(mirror_of(snapshot, cache).git, (f"{place}{name}" for name in (FILE_NAME, PYPROJECT)))
    here = read_document(directory)
    with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
        for path, content in found.items():
            (Path(folder) / path.removeprefix(place)).write_bytes(content)
        there = read_document(Path(folder))
    if not there.is_written or there.table == here.table:
        return prepared
    document = there._replace(pyproject=here.pyproject)
    configuration = _configuration(directory, feature, prepared.project, directory, document)
    which = f"{snapshot.base_name or 'the base'} ({snapshot.base[:7]})"
    note = f"judged by {there.place.file} of {which}, from which this one differs; `--base none` goes by this one"
    noted = snapshot.model_copy(update={"notes": (*snapshot.notes, note)})
    return prepared._replace(snapshot=noted, configuration=configuration)


def _configuration(
    directory: Path, feature: Feature, project: Project, home: Path, document: Document | None = None
) -> Configuration:
    """The configuration of `directory`, with the feature's settings; `home` is its place in the user's checkout."""
    loaded = configuration_in(
        directory,
        home=home,
        fixer=feature.fixer,
        only=feature.only,
        project=project.name,
        profile=feature.profile,
        runs_here=feature.runs_here,
        document=document,
    )
    given = {"base": feature.base, "gates_all": feature.gates_all or None}
    update = {name: value for name, value in given.items() if value is not None}
    configuration = loaded.model_copy(update=update)
    # Refuse a missing command before anything runs; one that is installed elsewhere is only looked for there.
    # The command's user, the section that names it, and its words.
    commands: list[tuple[str, str, tuple[str, ...]]] = []
    settings, fixer = getattr(configuration, feature.profile, None), configuration.fixer
    if feature.profile == "validation" and fixer is not None and not fixer.is_handoffs:
        commands.append(("the fixer's", "[fixer]", fixer.command))
    for name, role in settings.agent.items() if settings is not None else ():
        if role.command and not role.is_validation_loop:
            commands.append((f"{name}'s", f"[{feature.profile}.agent.{name}]", role.command))
    for whose, place, (program, *_) in commands:
        if "/" in program:
            found = os.access(directory / program, os.X_OK) and (directory / program).is_file()
        else:
            elsewhere = not feature.runs_here or bool(configuration.workspace.setup)
            found = elsewhere or _is_installed(program, feature)
        if not found:
            raise UsageError(
                f"{whose} command {program!r} is not found or not executable; install it or mend `{place} command`"
            )
    return configuration


def _check_issue(feature: Feature) -> None:
    if feature.issue is not None and not 0 < feature.issue < 10**15:
        raise UsageError(f"issue {feature.issue} is no issue number; use a positive whole number")


def number_of(store: "Store | None", project: Project, feature: Feature) -> int:
    """The issue's number, given or newly allocated; 0 without a store. UsageError: it is no number."""
    if store is None:
        return 0
    _check_issue(feature)
    return store.allocate_issue(project.hash8) if feature.issue is None else feature.issue


def _is_installed(program: str, feature: Feature) -> bool:
    # Next to the project's interpreter, which is `python` under any name, and on the PATH.
    if feature.is_url:
        chosen = choose_interpreter(made=None, source=None, subdirectory="", variables=os.environ)
    else:
        chosen = interpreter_at(Path(feature.repo))
    places = [str(Path(chosen.path).parent), os.environ.get("PATH", os.defpath)]
    is_its_python = bool(chosen.path) and program == "python"
    return is_its_python or shutil.which(program, path=os.pathsep.join(places)) is not None
