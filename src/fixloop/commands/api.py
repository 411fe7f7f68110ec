"""fixloop from Python: submit a feature, and ask for its state.

Needs a Redis (`FIXLOOP_STATE_URL` or `FIXLOOP_BROKER_URL`), or the embedded one of the project.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fixloop.commands.session import Seen, look, open_session
from fixloop.errors import UsageError
from fixloop.intake.bulk import HandedIn, enqueue_many as _enqueue_many
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import usable
from fixloop.intake.submission import enqueue as _enqueue

__all__ = ["FeatureStatus", "HandedIn", "SpecialistStatus", "enqueue", "enqueue_many", "status"]


class SpecialistStatus(BaseModel, frozen=True, extra="ignore"):
    """One phase of a feature."""

    name: str
    phase: str
    applicable: bool
    status: str
    iteration: int
    max_iterations: int
    failures: tuple[dict[str, Any], ...] = ()
    old: dict[str, int] = {}
    """By check, how many failures of the last run are older than the feature."""
    evidence: tuple[dict[str, Any], ...] = ()


class FeatureStatus(BaseModel, frozen=True, extra="ignore"):
    """The result of `fixloop status ISSUE --json`, typed; cycles and handoffs have no phase or specialists."""

    issue: int
    name: str
    workflow_id: str
    profile: str
    status: str
    paused: bool
    verdict: str | None
    outcome: str | None
    owner: str
    phase: str = ""
    specialist: str = ""
    iteration: int
    max_iterations: int
    deadline: str | None
    operations: tuple[dict[str, Any], ...] = ()
    """What runs: name, specialist, iteration, elapsed_seconds, limit_seconds, reminded."""
    held: dict[str, Any] | None = None
    """A person's pause: by, reason, since, and how many events were kept meanwhile."""
    tree: str = ""
    updated_at: str
    unverified: tuple[dict[str, Any], ...] = ()
    """What was found but does not run: name, specialist, reason, remedy, and whether the verdict is not verified."""
    specialists: tuple[SpecialistStatus, ...] = ()
    agents: tuple[dict[str, Any], ...] = ()
    """In a cycle or handoff: name, status, whether it has a request, and what runs it."""
    escalations: tuple[dict[str, Any], ...] = ()
    """In a cycle or handoff: id, reason, detail, and the possible answers."""


def enqueue(
    *,
    issue: int | None = None,
    repo: str | Path = ".",
    ref: str | None = None,
    name: str = "",
    fixer: str | None = None,
    only: str | None = None,
    base: str | None = None,
    all: bool = False,
    push: bool = False,
    profile: str = "validation",
    task: str = "",
) -> FeatureStatus:
    """
    Submit a feature to the workers. The same call twice creates one workflow.

    Args:
        repo: a path that is the same on every machine with a worker, or a git URL.
        ref: a branch, tag or commit instead of the working tree or the URL's HEAD.
        base: a revision whose failures are not the feature's, or "none"; default: the merge base with the
            default branch.
        all: also count failures that the base has.
        push: with a URL, push the verified branch `fixloop/{issue}` there when everything passes.
        profile: `validation`, `cycle` or `handoff`.
        task: for a cycle or handoff, what to do.

    Raises:
        UsageError: the path, the configuration or the fixer cannot be used; nothing was created.
        InfrastructureError: Redis or git is away.
    """
    given = locals() | {"repo": str(repo)}
    feature = Feature(gates_all=given.pop("all"), **given)
    known = usable(feature)
    with open_session(Path.cwd() if feature.is_url else Path(repo), create=True) as session:
        handed_in = _enqueue(session.engine, feature, cache=session.settings.cache_dir, known=known)
        session.draw(handed_in.workflow)
        return _status(look(session, handed_in.workflow))


def enqueue_many(features: Iterable[Mapping[str, Any]], *, directory: str | Path = ".") -> Iterator[HandedIn]:
    """
    Submit many features, a thousand per second if they share a tree; the same call twice creates the same workflows.

    Args:
        features: the arguments of `enqueue` for each, and `restart`, `type` and `priority` as for the command; read
            as needed.
        directory: the default repository, whose Redis is used if none is named.

    Yields:
        In order, the result of each: its `issue`, its `workflow`, whether it was `created` now, and the `error` if it
        was refused.

    Raises:
        InfrastructureError: Redis or git is away. What was yielded is submitted, and the same call does the rest.
    """
    with open_session(Path(directory), create=True) as session, session.hints.together():
        usual = Feature(repo=str(directory))

        def wanted() -> Iterator[Feature | UsageError]:
            for given in features:
                try:
                    yield usual.with_given(given)
                except UsageError as error:
                    yield error

        yield from _enqueue_many(session.engine, wanted(), cache=session.settings.cache_dir)


def status(issue: int, *, project: str | None = None, directory: str | Path = ".") -> FeatureStatus:
    """
    The current state of an issue's latest workflow.

    Raises:
        UsageError: it is unknown here, or in several projects.
        InfrastructureError: Redis is away.
    """
    with open_session(Path(directory)) as session:
        return _status(look(session, session.workflow_of(issue, project)))


def _status(seen: Seen) -> FeatureStatus:
    return FeatureStatus.model_validate(seen.presenter.document(seen.found, seen.state))
