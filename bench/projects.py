"""Try fixloop on public projects: is every verdict true, and what does it cost over the project's own commands?

For each project of `projects.toml`: its own commands, `fixloop run --dry`, `fixloop run`, and `fixloop init` + `run`
without a bug, then its own commands and both runs with each of three bugs. A verdict is true where a run is green
exactly when the project's own commands are, and where it found the failures otherwise. Seconds are medians.

Needs the clients of the registries (pip, npm, apt-get with deb-src entries), git, node and go. The last trial of each
project is kept in the folder, from which `--page` makes `docs/projects.md`. Exit code 0 when everything was true.
"""

import argparse
import subprocess
import sys
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.checkout import prepared
from bench.public import Project, public_projects
from bench.table import page, row
from bench.trial import Trial, tried
from fixloop.servers.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "projects.md"


def main() -> None:
    options = _options()
    if options.page:
        PAGE.write_text(page(_kept(options.folder)))
        return
    chosen = [each for each in public_projects() if not options.name or each.name in options.name]
    describe = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    stamp = commit, f"{date.today():%d %B %Y}"
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # On a terminal what is done now; elsewhere nothing.
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        all_true = [_is_true(project, options, stamp, progress) for project in chosen]
    sys.exit(0 if all(all_true) else 1)


def _is_true(
    project: Project, options: argparse.Namespace, stamp: tuple[str, str], progress: Progress
) -> bool:
    """Prepare one project and try it; one that cannot be prepared is told, and the others are tried."""
    doing = progress.add_task(f"{project.name}: prepare", total=None)
    folder = options.folder / project.name
    try:
        checkout = prepared(project, folder)
        if options.prepare:
            return True
        trial = tried(
            project,
            checkout,
            runs=options.runs,
            stamp=stamp,
            tell=lambda what: progress.update(doing, description=f"{project.name}: {what}"),
        )
    except (ValueError, subprocess.SubprocessError) as error:
        progress.console.print(f"{project.name}: {error}", markup=False, highlight=False, soft_wrap=True)
        return False
    finally:
        progress.remove_task(doing)
    (folder / "trial.json").write_text(trial.model_dump_json(indent=1))
    progress.console.print(row(project, trial), markup=False, highlight=False, soft_wrap=True)
    return trial.true


def _kept(folder: Path) -> list[tuple[Project, Trial | None]]:
    files = [(each, folder / each.name / "trial.json") for each in public_projects()]
    return [
        (project, Trial.model_validate_json(file.read_text()) if file.exists() else None)
        for project, file in files
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    options.folder = (options.folder or Settings().cache_dir.parent / "fixloop-projects").resolve()
    return options


if __name__ == "__main__":
    main()
