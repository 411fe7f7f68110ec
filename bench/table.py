"""docs/projects.md, as the trials say."""

from collections.abc import Iterable, Sequence
from itertools import starmap

from bench.public import Project
from bench.trial import Configured, Trial

_HEAD = """\
# Public projects

fixloop is tried on released versions of public projects, each prepared as its developers would.
This page is written by `python -m bench.projects`, then `--page`; what each project is, where it comes from and which
bugs are put into it stands in `bench/projects.toml`.

A verdict is true where a run is green exactly when the project's own commands are. Three bugs are put into each
project, one at a time, and its own commands turn red with each: the run then has to find failures.
"run" is `fixloop run` without a configuration, "init + run" is `fixloop init`, then `fixloop run`.
Seconds are medians, on a machine that did other work, too: only ratios above 2 mean anything.

{true} of {count} projects that were tried have true verdicts everywhere.

| project | what it is | own commands, s | run | s | init + run | s | bugs found: run, init + run | true | commit, day |
|---|---|---|---|---|---|---|---|---|---|
"""
_RELEASES = """
## Releases

| project | from | release | sha256 | own commands |
|---|---|---|---|---|
"""
_CHANGES = """
## What was changed to make a checkout of a release

Files that a release carries and the repository does not (`PKG-INFO`, a generated `_version.py`) are removed or ignored.
Further changes:

"""
_MISSING = """
## Not here

defu and tomli publish no tests with their releases, so they cannot be prepared from a registry.
"""


def page(projects: Sequence[tuple[Project, Trial | None]]) -> str:
    tried = [(project, trial) for project, trial in projects if trial]
    head = _HEAD.format(true=sum(trial.true for _, trial in tried), count=len(tried))
    untried = ", ".join(project.name for project, trial in projects if not trial)
    not_tried = f"\nNot tried yet: {untried}.\n" if untried else ""
    parts = [head, *_lines(starmap(row, tried)), not_tried]
    parts += [_RELEASES, *_lines(release_row(project) for project, _ in projects)]
    changed = [f"- {project.name}: {project.change}" for project, _ in projects if project.change]
    return "".join([*parts, _CHANGES, *_lines(changed), _MISSING])


def row(project: Project, trial: Trial) -> str:
    cells = [
        project.name,
        f"{project.language}: {project.shape}",
        f"{trial.raw_seconds:.1f}",
        *_told(trial.unconfigured, trial.raw_seconds),
        *_told(trial.configured, trial.raw_seconds),
        f"{_found(trial.unconfigured)}, {_found(trial.configured)}",
        "yes" if trial.true else _blame(trial),
        f"{trial.commit}, {trial.day}",
    ]
    return _row(cells)


def release_row(project: Project) -> str:
    commands = "; ".join(f"`{command}`" for command in project.commands)
    release = f"{project.package} {project.version}"
    return _row([project.name, project.registry, release, project.sha256, commands])


def _told(configured: Configured, raw_seconds: float) -> tuple[str, str]:
    wrong = [each for each in configured.answers if not each.green]
    seconds = configured.seconds
    said = (wrong or configured.answers)[0].verdict
    return said, f"{seconds:.1f} ({seconds - raw_seconds:+.1f}, {seconds / raw_seconds:.1f} ×)"


def _found(configured: Configured) -> str:
    """How many bugs were found, and whether a run with one was green."""
    found = sum(each.found_failures for each in configured.bugs)
    green = sum(each.green for each in configured.bugs)
    return f"{found}/{len(configured.bugs)}" + (f" ({green} green)" if green else "")


def _blame(trial: Trial) -> str:
    if not trial.fair:
        return "no: the project's own commands"
    wrong = {
        name: said.verdict for name, said in (("--dry", trial.dry), ("init", trial.init)) if not said.green
    }
    return "no" + "".join(f"; {name}: {verdict}" for name, verdict in wrong.items())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _lines(rows: Iterable[str]) -> list[str]:
    return [f"{each}\n" for each in rows]
