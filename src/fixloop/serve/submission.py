"""The input of outside callers: the base class of request bodies, and submitted features."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from fixloop.intake.feature import Feature, Kind, Priority

LONGEST_TASK: Final = 256 * 1024
_Word = Annotated[str, Field(pattern=r"^[^\s-][^\s]*$", max_length=300)]


class Body(BaseModel):
    """What a request may bring, and nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewWorkflow(Body):
    """What is handed in. Which commands check and fix it, the repository's own configuration says, and no caller."""

    repo: str = Field(min_length=1, max_length=2000)
    """A git URL, or an absolute path that is the same on every machine."""
    issue: int = Field(ge=1, lt=10**15)
    ref: _Word | None = None
    base: _Word | None = None
    name: str = Field("", max_length=300)
    profile: str = Field("validation", max_length=40)
    task: str = Field("", max_length=LONGEST_TASK)
    kind: Kind = Kind.FEATURE
    priority: Priority = Priority.HIGH

    def feature(self) -> Feature:
        return Feature(**self.model_dump())
