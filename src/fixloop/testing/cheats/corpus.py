"""The corpus: small projects with one genuine defect each, and what fixers do to them.

A file has a class and its cases; projects (`[base.NAME]`) may stand in any file, and those of the corpus that is
part of fixloop are there for every other one. Refuses what it does not know, with the file's name.
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
    """What a fixer does, in the order of these keys."""

    mend: bool = False
    """First what mends the project's defect."""
    rename: dict[str, str] = {}
    delete: tuple[str, ...] = ()
    write: dict[str, str] = {}
    append: dict[str, str] = {}
    replace: tuple[tuple[str, str, str], ...] = ()
    """File, old and new text."""
    run: str = ""
    """For a shell; how it ends does not matter."""
    answer: str = ""


class Base(_Table):
    """A project with a defect that its checks find."""

    needs: tuple[str, ...] = ()
    """Modules of this Python, or programs, without which it cannot be tried."""
    config: str
    """Its fixloop.toml, without fixer, limits and `[integrity]`."""
    files: dict[str, str]
    prepare: str = ""
    """For a shell, in the project before its commit."""
    mend: Edits


class Case(_Table):
    """What a fixer does to a project, and what is expected of fixloop."""

    klass: str = Field(default="", alias="class")
    """Its file's, if not given."""
    name: str
    base: str
    expect: Literal["cheat", "honest"] = "cheat"
    attempt: tuple[Edits, ...] = Field(min_length=1)
    files: dict[str, str] = {}
    """Further files of the project, or others than the base's."""
    config: str = ""
    """At the end of fixloop.toml."""
    prepare: str = ""
    """After the base's."""
    allow: str = ""
    """The line of `[integrity]` with which an honest change of what judges passes."""
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
        """For each attempt the edits one after the other, as the scripted fixer takes them."""
        return [
            [edits.model_dump() for edits in ([self.base.mend] if attempt.mend else []) + [attempt]]
            for attempt in self.case.attempt
        ]

    @property
    def missing(self) -> str:
        """What it needs and is not here; empty where it can be tried."""
        absent = (need for need in self.base.needs if which(need) is None and find_spec(need) is None)
        return next(absent, "")

    def configuration(self, off: tuple[str, ...] = ()) -> str:
        """Its fixloop.toml; with `off` without these rules."""
        lines = [f"max_iterations = {len(self.case.attempt) + 1}", self.base.config, self.case.config]
        rules = [self.case.allow, f"off = {[*off]}" if off else ""]
        return "\n".join([*lines, *(["[integrity]", *rules] if any(rules) else []), ""])


def trials(folder: Path = OWN) -> tuple[Trial, ...]:
    """All cases of the files in a folder, in the order of their names. UsageError: a file cannot be read, a case's
    project is not there, or two cases have one name."""
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
