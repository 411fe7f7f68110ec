"""The tests that a change can affect, which `fixloop check --changed` runs first.

pytest-testmon selects them if the project has it; otherwise they are the changed tests and those named after a changed
module.
"""

import os
import posixpath
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from fixloop.configuration import layout
from fixloop.configuration.declarations import declarations_of, text_of, toml_of
from fixloop.configuration.model import Check
from fixloop.configuration.python_project import pytest_settings
from fixloop.intake.trial import CHANGED
from fixloop.integrity.runner_canaries import PYTEST_VALUED, PYTHON_TEST
from fixloop.integrity.tool_call import Project, ToolCall, call_of
from fixloop.machine.interpreter_answers import importable_modules
from fixloop.repository.tree import deltas, tracked_in_tree
from workers.workspaces.ground import Ground, Site
from workers.workspaces.interpreter import import_roots

TESTMON: Final = ".testmondata"
_DROPPED: Final = (
    "--junitxml= --junit-xml= --cov= --cov-report= --cov-config= --cov-fail-under= --cov-branch --cov-append "
    "--cov-context= --no-cov-on-fail --lf --last-failed --ff --failed-first --sw --stepwise"
)
_NOT_SOURCE: Final = re.compile(rf"(^|/)({'|'.join(layout.NOT_SOURCES)})/")
_TEST_AFFIX: Final = re.compile(r"^test_|_test$")
_MEASURES: Final = re.compile(r"(?<!\S)--cov\b")


def affected(check: Check, ground: Ground, site: Site) -> Check | None:
    """The check restricted to the affected tests, without its gates; None if the check does not run pytest, there is no
    base, or no selection is possible."""
    snapshot, call = site.snapshot, call_of(check.command, {"pytest": None, "py.test": None})
    if call is None or not snapshot.base:
        return None
    since = deltas(ground.workspace.mirror.git, snapshot.base, snapshot.commit)
    project = project_on(ground, snapshot.subdirectory, (os.fsdecode(delta.path) for delta in since))
    if not (chosen := _by_testmon(ground, site) or _by_name(call, project)):
        return None
    without_coverage = ("--no-cov",) if _MEASURES.search(" ".join((*call.rest, project.addopts))) else ()
    options = call.kept(_DROPPED, PYTEST_VALUED, project.holds)
    command = (*call.head, *options, *without_coverage, "--junitxml={junit}", *chosen)
    what = {"name": f"{check.name}{CHANGED}", "command": command, "coverage_percent": None, "paths": ()}
    return check.model_copy(update=what)


def _by_testmon(ground: Ground, site: Site) -> tuple[str, ...]:
    """The options for pytest-testmon, using its data file from the checkout; empty without it."""
    directory, snapshot = ground.workspace.directory, site.snapshot
    with suppress(OSError):
        shutil.copyfile(Path(snapshot.source, snapshot.subdirectory, TESTMON), directory / TESTMON)
        if importable_modules(ground.interpreter, directory, ["testmon"]):
            return ("--testmon", "--testmon-nocollect")
    return ()


def _by_name(call: ToolCall, project: Project) -> tuple[str, ...]:
    """The affected test files; empty if all may be affected, such as by a conftest."""
    if any(PurePosixPath(path).name == "conftest.py" for path in project.changed):
        return ()
    tests = list(project.siblings(PYTHON_TEST, call.targets(f"{_DROPPED} {PYTEST_VALUED}", project.holds)))
    # An `__init__` has the name of its package.
    paths = (re.sub(r"/__init__\.py$", ".py", path) for path in project.changed if path.endswith(".py"))
    names = {posixpath.basename(path).removesuffix(".py") for path in paths}
    near = (path for path in tests if _TEST_AFFIX.sub("", PurePosixPath(path).stem) in names)
    chosen = tuple(dict.fromkeys((*(path for path in tests if path in project.changed), *near)))
    return chosen if len(chosen) < len(tests) else ()


def project_on(ground: Ground, top: str, changed: Iterable[str], passed: tuple[str, ...] = ()) -> Project:
    """The project on a ground, relative to `top`, the folder where checks run; `changed`: paths from the root."""
    directory, workspace, prefix = ground.workspace.directory, ground.workspace, f"{top}/".lstrip("/")
    tree = tracked_in_tree(workspace.mirror.git, workspace.commit)
    tracked = (path.decode(errors="replace") for path in tree)
    files = frozenset(path.removeprefix(prefix) for path in tracked if path.startswith(prefix))
    touched = {path.removeprefix(prefix) for path in changed if path.startswith(prefix)}
    declared = declarations_of(directory, toml_of(directory / "pyproject.toml"))
    roots = import_roots(ground.interpreter, directory, workspace.path)
    inside = (root.relative_to(directory).as_posix() for root in roots if root.is_relative_to(directory))
    return Project(
        files=files,
        # Tests and documentation last: tools often exclude them.
        changed=tuple(sorted(files & touched, key=lambda path: (_NOT_SOURCE.search(path) is not None, path))),
        passed=passed,
        roots=tuple(root for root in inside if root != "."),
        addopts=pytest_settings(declared).addopts,
        read=lambda path: text_of(directory / path),
    )
