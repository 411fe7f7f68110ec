"""The envelope of everything that can happen to a workflow of any profile."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """The only input of decisions, in the past tense; what a newer version says more is left aside."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sender: str = ""
    """Whom it is from, as a handle; empty: the usual sender of such events."""


class Value(BaseModel):
    """A part of a state; what a newer version says more is left aside."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def with_(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return self.model_copy(update=changes)
