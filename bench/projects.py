"""Tries fixloop on public projects: is every verdict true, and how much slower is it than the project's own commands?

For each project of `projects.toml`: its own commands, `fixloop run --dry`, `fixloop run`, `fixloop init` + `run` and
`fixloop check` without a bug, then its own commands, both runs and the check with each of three bugs. A verdict is true
if it is green exactly when the project's own commands are, and names failures otherwise. Seconds are medians.

Requires the clients of the registries (pip, npm, apt-get with deb-src entries), git, node and go. The latest trial of
each project is stored in the folder, from which `--page` makes `docs/projects.md`. Exit code 0 if everything was true.
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
# The page, with places for what differs.
_PAGE_TEMPLATE = Path(__file__).with_name("page.md").read_text("utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="only these projects")
    parser.add_argument("--runs", type=int, default=3, help="runs without a bug; the median counts")
    parser.add_argument(
        "--folder", type=Path, help="where projects are prepared (default: in fixloop's cache)"
    )
    parser.add_argument("--prepare", action="store_true", help="only prepare them")
    parser.add_argument(
        "--page", action="store_true", help="only write docs/projects.md from the latest trials"
    )
    options = parser.parse_args()
    names = {each.name for each in public_projects()}
    if unknown := set(options.name) - names:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(names))}")
    if options.runs < 1:
        parser.error("--runs: at least 1")
    options.folder = (options.folder or load_settings().cache_dir.parent / "fixloop-projects").resolve()
    if options.page:
        files = [(each, options.folder / each.name / "trial.json") for each in public_projects()]
        trials = (Trial.model_validate_json(file.read_text()) if file.exists() else None for _, file in files)
        PAGE.write_text(page([(each, trial) for (each, _), trial in zip(files, trials, strict=True)]))
        return
    chosen = [each for each in public_projects() if not options.name or each.name in options.name]
    describe = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    stamp = commit, f"{date.today():%d %B %Y}"
    all_true = [_is_true(project, options, stamp) for project in chosen]
    sys.exit(0 if all(all_true) else 1)


def _is_true(project: Project, options: argparse.Namespace, stamp: tuple[str, str]) -> bool:
    """Prepare one project and try it; reports errors and returns False, so that the others are still tried."""
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


def page(projects: Sequence[tuple[Project, Trial | None]]) -> str:
    tried = [(project, trial) for project, trial in projects if trial]
    untried = ", ".join(project.name for project, trial in projects if not trial)
    changed = [f"- {project.name}: {project.change}" for project, _ in projects if project.change]
    return _PAGE_TEMPLATE.format(
        true=sum(trial.true for _, trial in tried),
        count=len(tried),
        rows="\n".join(starmap(row, tried)),
        untried=f"\nNot tried yet: {untried}.\n" if untried else "",
        releases="\n".join(release_row(project) for project, _ in projects),
        changes="\n".join(changed),
    )


def row(project: Project, trial: Trial) -> str:
    cells = [
        project.name,
        f"{project.language}: {project.shape}",
        f"{trial.raw_seconds:.1f}",
        *_cells(trial.unconfigured, trial.raw_seconds),
        *_cells(trial.configured, trial.raw_seconds),
        *_cells(trial.checked, trial.raw_seconds),
        f"{_bugs_found(trial.unconfigured)}, {_bugs_found(trial.configured)}, {_bugs_found(trial.checked)}",
        "yes" if trial.true else _reason(trial),
        f"{trial.commit}, {trial.day}",
    ]
    return _row(cells)


def release_row(project: Project) -> str:
    commands = "; ".join(f"`{command}`" for command in project.commands)
    release = f"{project.package} {project.version}"
    return _row([project.name, project.registry, release, project.sha256, commands])


def _cells(configured: Configured, raw_seconds: float) -> tuple[str, str]:
    wrong = [each for each in configured.answers if not each.green]
    seconds = configured.seconds
    verdict = (wrong or configured.answers)[0].verdict
    return verdict, f"{seconds:.1f} ({seconds - raw_seconds:+.1f}, {seconds / raw_seconds:.1f} ×)"


def _bugs_found(configured: Configured) -> str:
    """The number of bugs found, and whether a run with one was green."""
    found = sum(each.found_failures for each in configured.bugs)
    green = sum(each.green for each in configured.bugs)
    return f"{found}/{len(configured.bugs)}" + (f" ({green} green)" if green else "")


def _reason(trial: Trial) -> str:
    if not trial.fair:
        return "no: the project's own commands"
    wrong = {name: run.verdict for name, run in (("--dry", trial.dry), ("init", trial.init)) if not run.green}
    return "no" + "".join(f"; {name}: {verdict}" for name, verdict in wrong.items())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
