"""Reads fixloop.toml, or [tool.fixloop] of pyproject.toml, from a checkout.

Refuses both at once, anything but a regular file inside the checkout, and invalid TOML. Never falls back to detection
because a file could not be read: that would silently change the gates.
"""

import os
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration.place import Place, shown_path
from fixloop.errors import UsageError

FILE_NAME: Final = "fixloop.toml"
PYPROJECT: Final = "pyproject.toml"
TABLE: Final = "tool.fixloop"
# A thousand times any handwritten file; also stops a link to an endless device.
LIMIT_BYTES: Final = 4_000_000


class Document(NamedTuple):
    """The user's configuration, and the project's pyproject.toml."""

    place: Place
    table: dict[str, Any]
    is_written: bool
    """False if neither file configures fixloop."""
    pyproject: dict[str, Any]

    @property
    def project(self) -> str:
        """The project's identity as written; empty if it is missing or not text."""
        project = self.table.get("project", "")
        return project if isinstance(project, str) else ""


def read_document(directory: Path) -> Document:
    """Read the configuration at the top of `directory`."""
    if not directory.is_dir():
        raise UsageError(
            f"{shown_path(directory)} is not a folder; name the folder of the project to validate"
        )
    pyproject = _read_toml(directory, PYPROJECT) or {}
    own = _read_toml(directory, FILE_NAME)
    tools = pyproject.get("tool")
    inside = tools.get("fixloop") if isinstance(tools, dict) else None
    if inside is not None and not isinstance(inside, dict):
        raise Place(PYPROJECT).at(TABLE).wrong("a table", inside)
    if own is not None and inside is not None:
        raise UsageError(f"both {FILE_NAME} and [{TABLE}] of {PYPROJECT} configure fixloop; keep one of them")
    if inside is not None:
        return Document(Place(PYPROJECT, TABLE), inside, True, pyproject)
    return Document(Place(FILE_NAME), own or {}, own is not None, pyproject)


def _read_toml(directory: Path, name: str) -> dict[str, Any] | None:
    path = directory / name
    if not os.path.lexists(path):
        return None
    if not path.is_file() or not path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"{name} is not a file inside the project; replace it by a regular file")
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    if len(content) > LIMIT_BYTES:
        raise UsageError(f"{name} is larger than {LIMIT_BYTES} bytes; that cannot be a configuration")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is not UTF-8 text (at line {line})") from None
    except RecursionError:
        raise UsageError(f"{name} is not valid TOML: it is nested too deep") from None
    except ValueError as error:  # TOMLDecodeError, and Python's own limit on the digits of a number
        raise UsageError(f"{name} is not valid TOML: {' '.join(str(error).split())}") from None
