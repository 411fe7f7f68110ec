"""A submitted feature: one value for all callers and all profiles."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from fixloop.errors import UsageError
from fixloop.profile_table import names, registered
from fixloop.protocol.ticket import Priority as Priority
from fixloop.repository.snapshot import is_url

GIVEN: Final = frozenset(
    ("issue", "repo", "ref", "name", "fixer", "only", "base", "all", "push", "profile", "task", "restart")
) | {"type", "priority"}
"""The fields that callers give for one of several features."""


class Kind(StrEnum):
    """What a workflow is for (D3); the seed has one chain of agents for all three (U16)."""

    FEATURE = "feature"
    BUGFIX = "bugfix"
    REFACTOR = "refactor"


def _known(profile: str) -> str:
    if profile not in names():
        *others, last = map(repr, names())
        raise PydanticCustomError(
            "literal_error", "Input should be {expected}", {"expected": f"{', '.join(others)} or {last}"}
        )
    return profile


class Feature(BaseModel):
    """A submitted feature."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: Annotated[str, AfterValidator(_known)] = "validation"
    issue: int | None = None
    """None: the lowest number that this project has never used."""
    repo: str = "."
    """A folder in a checkout, a plain folder, or a git URL."""
    ref: str | None = None
    """A branch, a tag or a commit, which is used instead of the working tree or the remote's HEAD."""
    base: str | None = None
    """The revision whose failures are not the feature's, or `none`; None: as configured, see
    `fixloop.repository.feature_base`."""
    gates_all: bool = False
    """Every failure counts, even if it is older than the feature."""
    push: bool = False
    """When everything has passed, push the branch with the fixes to the URL that `repo` is."""
    name: str = ""
    task: str = ""
    """Of a cycle or of handoffs: the task in full."""
    graph: dict[str, tuple[str, ...]] = {}
    """Of a cycle: the dependencies of the agents; empty: as configured."""
    kind: Kind = Kind.FEATURE
    """Of handoffs: their purpose."""
    priority: Priority = Priority.HIGH
    """Of handoffs."""
    fixer: str | None = None
    only: str | None = None
    restart: bool = False
    """Cancel the live workflow of the same feature instead of refusing."""
    runs_here: bool = False
    """Its checks run on this machine, so that installed tools can be detected here."""
    queue: str = ""
    """The queue of this workflow alone, for a `run` with its own worker; empty: the shared queues."""

    @property
    def is_url(self) -> bool:
        return is_url(self.repo)

    def with_given(self, given: Mapping[str, Any]) -> "Feature":
        """A copy with other values, by their names in `fixloop.enqueue`. UsageError: a name is unknown or a value
        cannot be used."""
        if unknown := sorted(given.keys() - GIVEN):
            told = f"{unknown[0]!r} is nothing that a feature has; there are {', '.join(sorted(GIVEN))}"
            raise UsageError(told)
        words = {"all": "gates_all", "type": "kind"}
        named = {words.get(name, name): value for name, value in given.items()}
        try:
            made = Feature.model_validate(self.model_dump() | named)
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        for name in given:
            having = [each for each in names() if f"--{name}" in registered(each).options]
            if having and made.profile not in having:
                raise UsageError(f"{name!r} goes with profile {' or '.join(having)}, not with {made.profile}")
        return made
