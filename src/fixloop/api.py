"""fixloop from Python: hand a feature in, and ask what became of it.

Needs a Redis to be named (`FIXLOOP_STATE_URL` or `FIXLOOP_BROKER_URL`), or the embedded one of the project.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from fixloop.commands.session import open_session
from fixloop.commands.status import status_document
from fixloop.enqueueing import Feature, refuse_unusable
from fixloop.enqueueing import enqueue as _enqueue
from fixloop.repository.snapshot import is_url
from fixloop.snapshots import load_state

__all__ = ["FeatureStatus", "SpecialistStatus", "enqueue", "status"]


class SpecialistStatus(BaseModel):
    """One phase of a feature."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    phase: str
    applicable: bool
    status: str
    iteration: int
    max_iterations: int
    failures: tuple[dict[str, Any], ...] = ()
    evidence: tuple[dict[str, Any], ...] = ()


class FeatureStatus(BaseModel):
    """What `fixloop status ISSUE --json` says, typed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    issue: int
    name: str
    workflow_id: str
    profile: str
    status: str
    paused: bool
    verdict: str | None
    outcome: str | None
    owner: str
    phase: str
    specialist: str
    iteration: int
    max_iterations: int
    deadline: str | None
    operations: tuple[dict[str, Any], ...] = ()
    """What runs: name, specialist, iteration, elapsed_seconds, limit_seconds, reminded."""
    held: dict[str, Any] | None = None
    """A person's own pause: by, reason, since, and how many events were kept meanwhile."""
    tree: str
    updated_at: str
    specialists: tuple[SpecialistStatus, ...]


def enqueue(
    *,
    issue: int | None = None,
    repo: str | Path = ".",
    ref: str | None = None,
    name: str = "",
    fixer: str | None = None,
    only: str | None = None,
    push: bool = False,
) -> FeatureStatus:
    """
    Hand a feature to the workers; the same call twice is one workflow.

    Args:
        repo: a path that is the same on every machine whose worker takes it, or a git URL.
        ref: a branch, tag or commit instead of the working tree or the URL's HEAD.
        push: with a URL, push the verified branch `fixloop/{issue}` there when everything has passed.

    Raises:
        UsageError: the path, the configuration or the fixer cannot be used; nothing was created.
        InfrastructureError: Redis or git is away.
    """
    text = str(repo)
    directory = Path.cwd() if is_url(text) else Path(text)
    feature = Feature(issue=issue, repo=text, ref=ref, name=name, fixer=fixer, only=only, push=push)
    refuse_unusable(feature)
    with open_session(directory, create=True) as session:
        handed_in = _enqueue(session.engine, feature, cache=session.settings.cache_dir)
        return _status(session.store.read(handed_in.workflow))


def status(issue: int, *, project: str | None = None, directory: str | Path = ".") -> FeatureStatus:
    """
    The present state of an issue's latest workflow.

    Raises:
        UsageError: it is unknown here, or in several projects.
        InfrastructureError: Redis is away.
    """
    with open_session(Path(directory)) as session:
        return _status(session.store.read(session.workflow_of(issue, project)))


def _status(found: Any) -> FeatureStatus:
    return FeatureStatus.model_validate(status_document(found, load_state(found.snapshot)))
