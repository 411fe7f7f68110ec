"""The tasks of `plan.json`: which are ready, and what a revised plan changes (C43, C54, U11)."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from fixloop.errors import UsageError
from fixloop.profiles.cycle.records import TaskStatus
from fixloop.profiles.cycle.workers import check_order
from fixloop.protocol.event import Value


class PlanTask(Value):
    """One task (U11)."""

    id: Annotated[str, Field(pattern=r"^TASK-\d{3,}$")]
    description: str = ""
    effort: Literal["small", "medium", "large"] = "medium"
    depends_on: tuple[str, ...] = ()
    status: TaskStatus = TaskStatus.PENDING
    files: tuple[str, ...] = ()


Plan = Sequence[PlanTask]


def check_plan(plan: Plan) -> None:
    """Refuse (UsageError) a plan with a duplicate id, a dependency on a missing task, or a cycle."""
    ids = [task.id for task in plan]
    if twice := [task_id for task_id in ids if ids.count(task_id) > 1]:
        raise UsageError(f"plan.json has {twice[0]} twice; a task's id is its own")
    for task in plan:
        for other in task.depends_on:
            if other not in ids:
                raise UsageError(f"plan.json: {task.id} depends on {other}, which the plan does not have")
    check_order({task.id: task.depends_on for task in plan}, "tasks of plan.json")


def revised(before: Plan, after: Plan) -> tuple[PlanTask, ...]:
    """The revised plan; completed tasks stay so (S19). UsageError: a task is missing (C9), or the plan is invalid."""
    check_plan(after)
    if gone := sorted({task.id for task in before} - {task.id for task in after}):
        raise UsageError(f"the revised plan.json has no {', '.join(gone)}; tasks are added, never taken out")
    done = {task.id for task in before if task.status is TaskStatus.COMPLETED}
    return tuple(task.with_(status=TaskStatus.COMPLETED) if task.id in done else task for task in after)


def completed(plan: Plan, ids: Iterable[str]) -> tuple[PlanTask, ...]:
    """The plan with these tasks completed. UsageError: one of them is not in the plan."""
    wanted = set(ids)
    if unknown := sorted(wanted - {task.id for task in plan}):
        raise UsageError(f"tasks_completed names {', '.join(unknown)}, which plan.json does not have")
    return tuple(task.with_(status=TaskStatus.COMPLETED) if task.id in wanted else task for task in plan)


def ready_tasks(plan: Plan) -> tuple[PlanTask, ...]:
    """The tasks that can be worked on now, in any order (C43)."""
    done = {task.id for task in plan if task.status is TaskStatus.COMPLETED}
    return tuple(
        task for task in plan if task.status is not TaskStatus.COMPLETED and done.issuperset(task.depends_on)
    )
