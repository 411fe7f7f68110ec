"""The configuration of a workflow: read once from a folder, stored with the workflow, and loaded from there."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fixloop.configuration.document import Document
from fixloop.configuration.installed import Installed
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.preflight import Preflight, preflight_of
from fixloop.errors import InfrastructureError
from fixloop.machine.interpreters import Interpreter, choose_interpreter
from fixloop.repository.identity import top_of

if TYPE_CHECKING:
    from fixloop.engine.profile import AnyState
    from fixloop.store.contract import Store


def configuration_in(
    directory: Path,
    *,
    home: Path,
    fixer: str | None = None,
    only: str | None = None,
    project: str,
    profile: str = "validation",
    runs_here: bool = True,
    document: Document | None = None,
) -> Configuration:
    """The configuration of a folder: as written, else as detected, as far as its tools can be started. `home` is the
    folder's place in the user's checkout, whose interpreter is used. Without `runs_here`, only a worker can detect what
    is installed. `document` replaces the folder's file. NotVerifiedError if nothing can be started."""
    loaded = load_configuration(
        directory,
        fixer=fixer,
        only=only,
        project=project,
        installed=installed_at(directory, home) if runs_here else None,
        profile=profile,
        document=document,
    )
    return loaded.model_copy(update={"only": only or ""})


def installed_at(directory: Path, home: Path | None = None) -> Installed:
    """The tools on this machine for the checks of `directory`; `home`: its place in the user's checkout, if another."""
    return Installed(interpreter_at(home or directory), directory, home or directory)


def preflight_at(directory: Path) -> Preflight:
    """What would run in a folder now, and what would not; NotVerifiedError if nothing can be started."""
    configuration = configuration_in(directory, home=directory, project="")
    return preflight_of(configuration, directory, installed_at(directory))


def interpreter_at(home: Path) -> Interpreter:
    """The interpreter for the checks of a folder in the user's checkout, before any setup."""
    top, subdirectory = top_of(home)
    return choose_interpreter(made=None, source=top, subdirectory=subdirectory, variables=os.environ)


def frozen_configuration(store: "Store", state: "AnyState") -> Configuration:
    """A workflow's configuration; InfrastructureError if the store has lost it."""
    data = store.get_artifact(state.workflow, state.configuration)
    if data is None:
        told = f"the configuration {state.configuration[:12]} of {state.workflow} is missing from the store"
        raise InfrastructureError(told)
    return Configuration.model_validate_json(data)
