"""What a repository still knows of workflows that its Redis lost: the refs they were handed in by, and their files."""

from pathlib import Path
from typing import Final

from fixloop.repository.identity import top_of
from fixloop.statefiles.named_files import records_below

SHOWN_ISSUES: Final = 10
"""So many are named in a sentence."""


def lost_by(where: str, issues: list[int], directory: Path) -> str:
    """One sentence where the repository tells of workflows that its Redis does not know; else nothing."""
    if not issues:
        return ""
    first, names = issues[0], listed([str(number) for number in issues])
    live = [record.issue for record in records_below(files_root(directory)) if not record.ended]
    kept = next((number for number in issues if number in live), 0)
    way_out = f"rebuild it from its files with `fixloop files {kept} --rebuild`, or " if kept else ""
    return (
        f"{where} knows no workflow of issue {names}, although refs/fixloop/{first}/base shows that it was handed in: "
        f"the data was lost, or this is another Redis; restore its backup, {way_out or 'or '}begin again with "
        f"`fixloop run --issue {first}`"
    )


def files_root(directory: Path) -> Path:
    """The folder below which the named files of a directory's project are: itself, else the project's top."""
    return directory if (directory / ".fixloop" / "files").is_dir() else top_of(directory)[0]


def listed(issues: list[str]) -> str:
    """The first of them, each once."""
    return ", ".join(dict.fromkeys(issues[:SHOWN_ISSUES]))
