"""Small projects on disk for the tests of the configuration."""

from collections.abc import Iterable
from pathlib import Path

from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Check, Configuration
from fixloop.machine.interpreters import Interpreter


def written(directory: Path, files: dict[str, str]) -> Path:
    """`directory` with `files` in it, path to content."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return directory


def check_of(configuration: Configuration, specialist: str, name: str) -> Check:
    """The one check of `specialist` called `name`."""
    (found,) = [check for check in configuration.specialist(specialist).checks if check.name == name]
    return found


def commands_of(configuration: Configuration) -> dict[str, dict[str, str]]:
    """Specialist and check to the command as one line."""
    return {
        entry.name: {check.name: " ".join(check.command) for check in entry.checks}
        for entry in configuration.specialists
    }


def unverified_of(configuration: Configuration) -> dict[str, bool]:
    """The name of what does not run, and whether it blocks."""
    return {entry.name: entry.blocks for entry in configuration.unverified}


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    """A program."""
    written(path.parent, {path.name: text}).joinpath(path.name).chmod(0o755)
    return path


def installed(
    directory: Path, *, modules: Iterable[str] = (), programs: Iterable[str] = (), prefix: str = ".venv"
) -> Installed:
    """A machine on which the project's environment has just these."""
    folder = directory / prefix / "bin"
    for name in ("python", *programs):
        executable(folder / name)
    there = frozenset(modules)
    return Installed(
        Interpreter(str(folder / "python"), str(folder.parent), "checkout"),
        directory,
        directory,
        {"PATH": str(folder), "HOME": str(directory / "home")},
        ask=lambda interpreter, place, names: there & frozenset(names),
    )
