"""The Celery tasks, with explicit names (R2): a durable message must remain valid if a module moves."""

import logging
from typing import Annotated, Any, Literal

from celery import Task
from pydantic import AfterValidator

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.hints import START_TASK, task_name
from fixloop.engine.profile import profile_in
from fixloop.errors import Damaged, FixloopError, NewerVersion
from fixloop.intake.feature import Feature
from fixloop.intake.submission import enqueue
from fixloop.protocol.event import NotDue, Unexpected
from fixloop.repository.git import without_userinfo
from fixloop.repository.snapshot import is_url
from fixloop.servers.settings import load_settings
from workers.app import app, taken_for
from workers.celery_fast.following import StepTask
from workers.celery_fast.incoming import DeadlineCall
from workers.log_once import say_once
from workers.process import process
from workers.steps.execution import STEP_HANDLERS, carry_out, on_failure
from workers.steps.hints import FAILURES

log = logging.getLogger("fixloop.tasks")


def run(self: Task, *, ticket: str, issue: int, specialist: str, iteration: int) -> str:
    """Do a step; all arguments besides the ticket are only for display in Flower (R12)."""
    return carry_out(self, ticket)


for _handlers in STEP_HANDLERS.values():
    for _step, _kind in _handlers.steps.items():
        app.task(
            base=StepTask,
            bind=True,
            name=task_name(_handlers.profile.name, _step),
            max_retries=_kind.retries,
            on_failure=on_failure,
            throws=FAILURES,
            Request="workers.celery_fast.request:StepRequest",
        )(run)


@app.task(name="fixloop.validation.deadline", form=DeadlineCall)  # type: ignore[untyped-decorator]
def deadline(*, workflow: str, name: str, due: float, issue: int) -> str:
    """Act on a deadline of a workflow of any profile, after checking the state again (R6)."""
    try:
        here = process()
        engine: ProfileEngine[Any] = here.engine
        # Only for a name that the validation profile does not know is the workflow read.
        if not engine.profile.is_deadline(name) and (found := here.store.read(workflow)) is not None:
            engine = here.engine_of(profile_in(found.snapshot))
        return engine.reach(workflow, name, due).status
    except NotDue:
        return "early"
    except Unexpected:
        return "late"
    except Damaged as damaged:
        say_once(log, str(damaged))
        return "damaged"
    except NewerVersion as newer:
        # The sweeper hands it out again every few seconds, until a newer control process takes it.
        log.info("%s: %s", name, newer)
        return "newer"


def _from_anywhere(repo: str) -> str:
    if not (repo.startswith("/") or is_url(repo)):
        raise ValueError(f"{repo} is neither an absolute path nor a URL")
    return repo


class _Arriving(Feature):
    """A feature sent by any caller: a relative path would be resolved in this worker's directory, and a workflow with a
    queue of its own is not restricted as those of shared workers are."""

    repo: Annotated[str, AfterValidator(_from_anywhere)]
    queue: Literal[""] = ""
    runs_here: Literal[False] = False


@app.task(name="fixloop.validation.prepare", form=_Arriving)  # type: ignore[untyped-decorator]
def prepare(**feature: Any) -> str:
    """Snapshot the repository and create the workflow; returns its id, or why there is none. May be repeated."""
    try:
        cache = load_settings().cache_dir
        return enqueue(process().engine, Feature.model_validate(feature), cache=cache).workflow
    except FixloopError as error:
        log.error("%s was called with %s: %s", START_TASK, without_userinfo(str(feature)), error)
        return str(error)


taken_for(prepare, START_TASK, _Arriving)
