"""The secrets to remove from a workflow's records: those its project names, and all in this environment."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from fixloop.configuration.model import Configuration
from fixloop.intake.frozen_configuration import frozen_configuration
from fixloop.secrets.redaction import Redaction

if TYPE_CHECKING:
    from fixloop.engine.profile import AnyState
    from fixloop.store.contract import Store

T = TypeVar("T")


def redaction_of(configuration: Configuration) -> Redaction:
    """Covers the variables visible to any command: one command's output may reach the next one's."""
    names = {*configuration.fixer.env} if configuration.fixer is not None else set()
    for settings in (configuration.cycle, configuration.handoff):
        for role in settings.agent.values() if settings is not None else ():
            names.update(role.env)
    for entry in configuration.specialists:
        for check in entry.checks:
            names.update(check.env)
    return Redaction.of(frozenset(names), os.environ)


def redaction_for(store: "Store", state: "AnyState") -> Redaction:
    """The same for a workflow, on this machine."""
    if not state.configuration:
        return Redaction.of((), os.environ)
    return redaction_of(frozen_configuration(store, state))


def without_secrets(value: T, hide: Callable[[str], str]) -> T:
    """An event or another record with every text passed through `hide`; enumeration values stay."""
    if not isinstance(value, BaseModel):
        return value
    fields = {name: _hidden(getattr(value, name), hide) for name in type(value).model_fields}
    return value.model_copy(update=fields)


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    if type(value) is str:
        return hide(value)
    if type(value) in (tuple, list):
        return type(value)(_hidden(each, hide) for each in value)
    if isinstance(value, dict):
        return {name: _hidden(each, hide) for name, each in value.items()}
    return without_secrets(value, hide)
