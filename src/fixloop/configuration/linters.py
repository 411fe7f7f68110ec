"""Proposes a Python project's checks apart from its tests: linter, formatter, types, and bandit.

The project's own commands give the scope; its hooks, tables and dependencies show that a tool is used at all.
"""

from collections.abc import Iterator
from math import inf
from pathlib import PurePosixPath
from typing import Final

from fixloop.configuration import layout
from fixloop.configuration.declarations import SIGNS, Signs, toml_of
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.pre_commit import Hook
from fixloop.configuration.python_project import PythonProject
from fixloop.configuration.scopes import (
    BLACK,
    MYPY,
    RUFF_CHECK,
    RUFF_FORMAT,
    Grammar,
    Scope,
    scope_of,
    scopes_of,
)

SPECIALIST: Final = "code-quality"
# SARIF is an extra of bandit and may be absent; this format always works, and also names file and line.
LINES: Final = ("--format", "custom", "--msg-template", "{relpath}:{line}: {test_id} {severity}: {msg}")
MYPY_TARGETS: Final = frozenset({"-p", "-m", "--package", "--module"})


def linters(project: PythonProject) -> Iterator[Proposal]:
    """The proposals in the order in which they run."""
    if layout.has_python(project.directory):
        if (scope := _scope(project, RUFF_CHECK, ("ruff", "ruff-check"), SIGNS["ruff"])) is not None:
            report = ("--output-format", "sarif", "--output-file", "{sarif}")
            yield _checked(project, scope, "ruff", ("ruff", "check", "--no-fix", *report))
        # Only one formatter: two never agree. A project that configures ruff as a linter has not chosen its formatter.
        if (ruff := _scope(project, RUFF_FORMAT, ("ruff-format",), Signs())) is None:
            tables = {"pyproject.toml: [tool.ruff.format]": project.declared.table("ruff")}
            tables |= {f"{name}: [format]": toml_of(project.directory / name) for name in SIGNS["ruff"].files}
            ruff = next((Scope((), (), place) for place, table in tables.items() if "format" in table), None)
        black = None
        if ruff is not None or not project.declared.place(SIGNS["yapf"]):
            signs = Signs() if ruff is not None else SIGNS["black"]
            black = _scope(project, BLACK, ("black", "black-jupyter"), signs)
        if black is not None:
            yield _checked(project, black, "black", ("black", "--check"))
        elif ruff is not None:
            yield _checked(project, ruff, "format", ("ruff", "format", "--check"), tool="ruff format")
    yield from _mypy(project)


def _checked(
    project: PythonProject, scope: Scope, name: str, command: tuple[str, ...], *, tool: str = ""
) -> Proposal:
    paths, need = scope.paths or (".",), project.program(command[0])
    words = (*command, *scope.options, *paths)
    return proposal(SPECIALIST, name, words, scope.why, need, tool=tool, paths=paths)


def _mypy(project: PythonProject) -> Iterator[Proposal]:
    """Run by the project's interpreter, which has its dependencies; else by its hook, if that is installed."""
    if (scope := _scope(project, MYPY, ("mypy",), SIGNS["mypy"])) is None:
        return
    declared = project.declared
    files = (*SIGNS["mypy"].files, "setup.cfg")
    tables = [declared.table("mypy"), *(dict(declared.section(file, "mypy") or {}) for file in files)]
    named = (table.get(key) for table in tables for key in ("files", "packages", "modules"))
    names_targets = not MYPY_TARGETS.isdisjoint(scope.options) or any(named)
    paths = scope.paths or (() if names_targets else layout.sources_of(project.directory))
    if not paths and not names_targets:
        return
    command = ("python", "-m", "mypy", "--no-pretty", *scope.options, *paths)
    yield proposal(SPECIALIST, "mypy", command, scope.why, project.module("mypy"), paths=paths)
    hook = _hook(project, ("mypy",))
    environment = hook.environment(project.installed.variables) if hook and project.installed else None
    if hook is not None and environment is not None:
        command = ("pre-commit", "run", hook.id, "--all-files")
        needs = (project.program("pre-commit"), Need("file", str(environment), "pre-commit install-hooks"))
        yield proposal(SPECIALIST, "mypy", command, hook.why, *needs)


def _scope(project: PythonProject, grammar: Grammar, hooks: tuple[str, ...], signs: Signs) -> Scope | None:
    """The tool's scope in the project: its widest command, else its hook, else all; None if it is not used."""
    if found := scopes_of(grammar, project.commands, project.directory):
        # Without a path, the tool's own settings decide how much of the project it checks.
        return max(found, key=lambda one: len(one.paths) if one.paths and "." not in one.paths else inf)
    if (hook := _hook(project, hooks)) is not None:
        args = (*grammar.command, *hook.args)
        known = scope_of(grammar, args, project.directory, hook.why) or Scope((), (), hook.why)
        return known._replace(options=(*known.options, *_left_out(grammar, hook, project)))
    place = project.declared.place(signs)
    return Scope((), (), place) if place else None


def _hook(project: PythonProject, names: tuple[str, ...]) -> Hook | None:
    return next((hook for hook in project.hooks if hook.id in names), None)


def _left_out(grammar: Grammar, hook: Hook, project: PythonProject) -> tuple[str, ...]:
    if grammar is MYPY or not (hook.files or hook.exclude):
        return ()
    folder = project.directory
    code = (path for path in layout.files_below(folder) if path.suffix in {".py", ".pyi", ".ipynb"})
    files = [path.relative_to(folder).as_posix() for path in code]
    left_out = [path for path in files if hook.leaves_out(path)]
    # A folder is named instead of its files if all of them are left out.
    others = {str(parent) for path in set(files) - set(left_out) for parent in PurePosixPath(path).parents}
    places: dict[str, None] = {}
    for path in left_out:
        parents = [str(parent) for parent in reversed(PurePosixPath(path).parents)]
        places[next((parent for parent in parents if parent not in others and parent != "."), path)] = None
    if not places:
        return ()
    if grammar is BLACK:
        return ("--extend-exclude", "|".join(f"^/{place}" for place in places))
    return ("--extend-exclude", ",".join(places))


def scanners(project: PythonProject) -> Iterator[Proposal]:
    """bandit from medium up, its search for passwords, and a parser for files that bandit skips."""
    declared = project.declared
    hook = _hook(project, ("bandit",))
    why = declared.place(SIGNS["bandit"]) or (hook.why if hook is not None else "")
    sources = layout.sources_of(project.directory)
    if not why or not sources:
        return
    # bandit does not find the project's settings by itself.
    places = [("-c", "pyproject.toml")] if "bandit" in declared.tools else []
    places += [("--ini", ".bandit")] if declared.section(".bandit", "bandit") is not None else []
    places += [("-c", name) for name in SIGNS["bandit"].files if (declared.directory / name).is_file()]
    options: tuple[str, ...] = next(iter(places), ())
    bandit = ("bandit", "-q", "-r", *options)
    need = project.program("bandit")

    def checked(name: str, *command: str) -> Proposal:
        return proposal("security", name, (*command, *sources), why, need, tool="bandit", paths=sources)

    # From medium up: stricter than the gate's "high", because bandit has no "critical" and rates injection and
    # weak cryptography medium. Its low findings are hints (an assert, an import of subprocess) that are common in sound
    # code, so "any finding loops" would never end.
    yield checked("bandit", *bandit, "--severity-level", "medium", *LINES)
    keys = {*declared.table("bandit"), *(declared.section(".bandit", "bandit") or {})}
    # A YAML file may hold such keys. Wrongly assuming them costs one check; wrongly assuming none is an error.
    is_yaml = options[:1] == ("-c",) and options[1] != "pyproject.toml"
    if not is_yaml and keys.isdisjoint({"tests", "skips"}):
        # bandit rates hard-coded passwords low. A project that selects its own tests has decided about these too, and
        # bandit refuses a test that is both selected and skipped.
        yield checked("secrets", *bandit, "--tests", "B105,B106,B107", *LINES)
    # bandit skips files it cannot parse and still exits 0.
    yield checked("parse", "python", "-m", "compileall", "-q")
