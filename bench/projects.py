"""Try fixloop on public projects: is every verdict true, and what does it cost over the project's own commands?

For each project of `projects.toml`: its own commands, `fixloop run --dry`, `fixloop run`, `fixloop init` + `run` and
`fixloop check` without a bug, then its own commands, both runs and the check with each of three bugs. A verdict is true
where it is green exactly when the project's own commands are, and where it names failures otherwise. Seconds are
medians.

Needs the clients of the registries (pip, npm, apt-get with deb-src entries), git, node and go. The last trial of each
project is kept in the folder, from which `--page` makes `docs/projects.md`. Exit code 0 when everything was true.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import starmap
from pathlib import Path

from bench.checkout import Project, prepared, public_projects
from bench.trial import Configured, Trial, tried
from fixloop.servers.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "projects.md"
_HEAD = """\
# Public projects

fixloop is tried on released versions of public projects, each prepared as its developers would.
This page is written by `python -m bench.projects`, then `--page`; what each project is, where it comes from and which
bugs are put into it stands in `bench/projects.toml`.

A verdict is true where a run is green exactly when the project's own commands are. Three bugs are put into each
project, one at a time, and its own commands turn red with each: the run then has to find failures.
"run" is `fixloop run` without a configuration, "init + run" is `fixloop init`, then `fixloop run`; "check" is
`fixloop check --again --base none` without a configuration. Bugs are those that each of the three found.
Seconds are medians, on a machine that did other work, too: only ratios above 2 mean anything.

{true} of {count} projects that were tried have true verdicts everywhere.

| project | what it is | own commands, s | run | s | init + run | s | check | s | bugs found | true \
| commit, day |
|---|---|---|---|---|---|---|---|---|---|---|---|
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="only these projects")
    parser.add_argument("--runs", type=int, default=3, help="runs without a bug, of which the median counts")
    parser.add_argument(
        "--folder", type=Path, help="where projects are prepared (default: in fixloop's cache)"
    )
    parser.add_argument("--prepare", action="store_true", help="only prepare them")
    parser.add_argument(
        "--page", action="store_true", help="only write docs/projects.md, from what was tried last"
    )
    options = parser.parse_args()
    names = {each.name for each in public_projects()}
    if unknown := set(options.name) - names:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(names))}")
    if options.runs < 1:
        parser.error("--runs: at least 1")
    options.folder = (options.folder or load_settings().cache_dir.parent / "fixloop-projects").resolve()
    if options.page:
        PAGE.write_text(page(_kept(options.folder)))
        return
    chosen = [each for each in public_projects() if not options.name or each.name in options.name]
    describe = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    stamp = commit, f"{date.today():%d %B %Y}"
    all_true = [_is_true(project, options, stamp) for project in chosen]
    sys.exit(0 if all(all_true) else 1)


def _is_true(project: Project, options: argparse.Namespace, stamp: tuple[str, str]) -> bool:
    """Prepare one project and try it; one that cannot be prepared is told, and the others are tried."""
    folder = options.folder / project.name

    def tell(what: str) -> None:
        print(f"{project.name}: {what}", file=sys.stderr, flush=True)

    tell("prepare")
    try:
        checkout = prepared(project, folder)
        if options.prepare:
            return True
        trial = tried(project, checkout, runs=options.runs, stamp=stamp, tell=tell)
    except (ValueError, subprocess.SubprocessError) as error:
        print(f"{project.name}: {error}", flush=True)
        return False
    (folder / "trial.json").write_text(trial.model_dump_json(indent=1))
    print(row(project, trial), flush=True)
    return trial.true


def _kept(folder: Path) -> list[tuple[Project, Trial | None]]:
    files = [(each, folder / each.name / "trial.json") for each in public_projects()]
    return [
        (project, Trial.model_validate_json(file.read_text()) if file.exists() else None)
        for project, file in files
    ]


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
        *_told(trial.checked, trial.raw_seconds),
        f"{_found(trial.unconfigured)}, {_found(trial.configured)}, {_found(trial.checked)}",
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


if __name__ == "__main__":
    main()
