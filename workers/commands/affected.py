"""The tests that a change can affect, which `fixloop check --changed` runs first.

pytest-testmon says which these are, where the project has it; else they are the changed tests, and those that are named
after a changed module.
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
from fixloop.machine.interpreters import importable_modules
from fixloop.repository.tree import deltas, tracked_in_tree
from workers.workspaces.ground import Ground, Site
from workers.workspaces.interpreter import source_roots

TESTMON: Final = ".testmondata"
_DROPPED: Final = (
    "--junitxml= --junit-xml= --cov= --cov-report= --cov-config= --cov-fail-under= --cov-branch --cov-append "
    "--cov-context= --no-cov-on-fail --lf --last-failed --ff --failed-first --sw --stepwise"
)
_BESIDE: Final = re.compile(rf"(^|/)({'|'.join(layout.NOT_SOURCES)})/")
_OF_TESTS: Final = re.compile(r"^test_|_test$")
_MEASURES: Final = re.compile(r"(?<!\S)--cov\b")


def affected(check: Check, ground: Ground, site: Site) -> Check | None:
    """The check for these tests alone, without its gates; None for what is not pytest's, or where no test is named
    after what has changed."""
    snapshot, call = site.snapshot, call_of(check.command, {"pytest": None, "py.test": None})
    if call is None or not snapshot.base:
        return None
    since = deltas(ground.workspace.mirror.git, snapshot.base, snapshot.commit)
    project = project_on(ground, snapshot.subdirectory, (os.fsdecode(delta.path) for delta in since))
    chosen = _by_testmon(ground, site) or _near(call, project)
    if not chosen:
        return None
    unmeasured = ("--no-cov",) if _MEASURES.search(" ".join((*call.rest, project.addopts))) else ()
    options = call.kept(_DROPPED, PYTEST_VALUED, project.holds)
    command = (*call.head, *options, *unmeasured, "--junitxml={junit}", *chosen)
    what = {"name": f"{check.name}{CHANGED}", "command": command, "coverage_percent": None, "paths": ()}
    return check.model_copy(update=what)


def _by_testmon(ground: Ground, site: Site) -> tuple[str, ...]:
    """The options that have it choose, by what it wrote in the checkout."""
    directory, snapshot = ground.workspace.directory, site.snapshot
    with suppress(OSError):
        shutil.copyfile(Path(snapshot.source, snapshot.subdirectory, TESTMON), directory / TESTMON)
        if importable_modules(ground.interpreter, directory, ["testmon"]):
            return ("--testmon", "--testmon-nocollect")
    return ()


def _near(call: ToolCall, project: Project) -> tuple[str, ...]:
    """The files of tests; none where all may be affected, as by a conftest."""
    if any(PurePosixPath(path).name == "conftest.py" for path in project.changed):
        return ()
    tests = list(project.siblings(PYTHON_TEST, call.targets(f"{_DROPPED} {PYTEST_VALUED}", project.holds)))
    # A package is what its `__init__` is named after.
    paths = (re.sub(r"/__init__\.py$", ".py", path) for path in project.changed if path.endswith(".py"))
    names = {posixpath.basename(path).removesuffix(".py") for path in paths}
    near = (path for path in tests if _OF_TESTS.sub("", PurePosixPath(path).stem) in names)
    chosen = tuple(dict.fromkeys((*(path for path in tests if path in project.changed), *near)))
    return chosen if len(chosen) < len(tests) else ()


def project_on(ground: Ground, top: str, changed: Iterable[str], passed: tuple[str, ...] = ()) -> Project:
    """What lies on a ground, seen from where checks run, which is the folder `top`; `changed`: paths from the top."""
    directory, workspace, above = ground.workspace.directory, ground.workspace, f"{top}/".lstrip("/")
    tree = tracked_in_tree(workspace.mirror.git, workspace.commit)
    tracked = (path.decode(errors="replace") for path in tree)
    files = frozenset(path.removeprefix(above) for path in tracked if path.startswith(above))
    inside = {path.removeprefix(above) for path in changed if path.startswith(above)}
    declared = declarations_of(directory, toml_of(directory / "pyproject.toml"))
    roots = (root.relative_to(directory).as_posix() for root in source_roots(directory))
    return Project(
        files=files,
        # Tests and pages last: tools are often told to leave them alone.
        changed=tuple(sorted(files & inside, key=lambda path: (_BESIDE.search(path) is not None, path))),
        passed=passed,
        roots=tuple(root for root in roots if root != "."),
        addopts=pytest_settings(declared).addopts,
        read=lambda path: text_of(directory / path),
    )
