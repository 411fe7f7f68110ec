"""The corpus: small projects with one genuine defect each, and what fixers do to them.

A file has a class and its cases; projects (`[base.NAME]`) may be in any file, and those of the corpus shipped with
fixloop are available to all others. Unknown keys are errors, reported with the file's name.
"""

import tomllib
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fixloop.errors import UsageError

OWN: Final = Path(__file__).parent


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Edits(_Table):
    """The actions of a fixer, in the order of these keys."""

    mend: bool = False
    """Whether to fix the project's defect first."""
    rename: dict[str, str] = {}
    delete: tuple[str, ...] = ()
    write: dict[str, str] = {}
    append: dict[str, str] = {}
    replace: tuple[tuple[str, str, str], ...] = ()
    """File, old and new text."""
    run: str = ""
    """A shell command; its exit code is ignored."""
    answer: str = ""


class Base(_Table):
    """A project with a defect that its checks find."""

    needs: tuple[str, ...] = ()
    """Modules of this Python, or programs, that it requires."""
    config: str
    """Its fixloop.toml, without fixer, `max_iterations` and `[integrity]`."""
    files: dict[str, str]
    prepare: str = ""
    """A shell command, run in the project before its commit."""
    mend: Edits


class Case(_Table):
    """A fixer's actions on a project, and the expected result."""

    klass: str = Field(default="", alias="class")
    """The default is the file's class."""
    name: str
    base: str
    expect: Literal["cheat", "honest"] = "cheat"
    attempt: tuple[Edits, ...] = Field(min_length=1)
    files: dict[str, str] = {}
    """Additional files of the project, or replacements for the base's."""
    config: str = ""
    """Appended to fixloop.toml."""
    prepare: str = ""
    """Like the base's, and run after it."""
    allow: str = ""
    """The line of `[integrity]` with which an honest change of judging files passes."""
    short: bool = False
    """Part of a short run."""


class _File(_Table):
    klass: str = Field(default="", alias="class")
    base: dict[str, Base] = {}
    case: tuple[Case, ...] = ()


class Trial(NamedTuple):
    klass: str
    case: Case
    base: Base

    @property
    def files(self) -> dict[str, str]:
        return self.base.files | self.case.files

    @property
    def attempts(self) -> list[list[dict[str, Any]]]:
        """The edits of each attempt in order, as the scripted fixer takes them."""
        return [
            [edits.model_dump() for edits in ([self.base.mend] if attempt.mend else []) + [attempt]]
            for attempt in self.case.attempt
        ]

    @property
    def missing(self) -> str:
        """A requirement that is missing here; empty if the case can be played."""
        return next((need for need in self.base.needs if which(need) is None and find_spec(need) is None), "")

    def configuration(self, off: tuple[str, ...] = ()) -> str:
        """Its fixloop.toml, with the rules in `off` turned off."""
        lines = [f"max_iterations = {len(self.case.attempt) + 1}", self.base.config, self.case.config]
        rules = [self.case.allow, f"off = {[*off]}" if off else ""]
        return "\n".join([*lines, *(["[integrity]", *rules] if any(rules) else []), ""])


def trials(folder: Path = OWN) -> tuple[Trial, ...]:
    """
    All cases of the files in a folder, in the order of the files' names.

    Raises:
        UsageError: a file is invalid, a case's project is missing, two cases have one name, or there is no case.
    """
    files = {path: _read(path) for path in sorted({*OWN.glob("*.toml"), *folder.glob("*.toml")})}
    bases = {name: base for file in files.values() for name, base in file.base.items()}
    found = []
    for path, file in files.items():
        for case in file.case if path.parent == folder else ():
            if case.base not in bases:
                raise UsageError(f"{path}: {case.name!r} is of a project {case.base!r}, which is nowhere")
            found.append(Trial(case.klass or file.klass, case, bases[case.base]))
    names = [trial.case.name for trial in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"two cases in {folder} are called {twice!r}")
    if not found:
        raise UsageError(f"there is no case in {folder}; a corpus is a folder of TOML files")
    return tuple(found)


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}: {where}: {first['msg'].lower()}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
