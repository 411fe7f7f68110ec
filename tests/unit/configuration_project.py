"""Small projects on disk for the tests of the configuration."""

from pathlib import Path

from fixloop.configuration.model import Check, Configuration

__all__ = ["check_of", "commands_of", "written"]


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
