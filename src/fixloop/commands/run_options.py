"""The options that `run` and `enqueue` share, and the profiles each belongs to."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from fixloop.errors import UsageError
from fixloop.intake.feature import Feature, Kind, Priority
from fixloop.profile_table import names, registered

MOST_BYTES: Final = 256 * 1024
"""Of a task, which is a request and not its material."""


if TYPE_CHECKING:
    ProfileName = str
else:
    ProfileName = StrEnum("ProfileName", {name.upper(): name for name in names()})
Profiled = Annotated[
    ProfileName,
    Option("--profile", help="; ".join(f"{name}: {registered(name).summary}" for name in names()) + "."),
]
Task = Annotated[str, Option("--task", help="cycle, handoff: what to do.")]
TaskFile = Annotated[
    Path | None, Option("--task-file", metavar="FILE", help="Read the task from FILE, - for stdin.")
]
PlanFile = Annotated[
    Path | None,
    Option(
        "--plan",
        metavar="FILE",
        help='cycle: who waits for whom, as JSON: {"ra": [], "ep": ["ra"], …}.',
        show_default="from fixloop.toml",
    ),
]
Type = Annotated[
    Kind | None, Option("--type", help="handoff: the kind of work.", show_default=Kind.FEATURE.value)
]
Urgency = Annotated[
    Priority | None, Option("--priority", help="handoff: how urgent it is.", show_default=Priority.HIGH.value)
]
Ref = Annotated[
    str | None,
    Option("--ref", help="A branch, tag or commit instead of the working tree (for a URL, of its HEAD)."),
]
BaseRevision = Annotated[
    str | None,
    Option(
        "--base",
        metavar="REV",
        help="Ignore failures that REV has too; `none` ignores nothing.",
        show_default="the merge base with the default branch",
    ),
]
All = Annotated[bool, Option("--all", help="Also count failures older than the feature.")]
Push = Annotated[
    bool, Option("--push", help="When everything passes, push the branch fixloop/ISSUE to the git URL.")
]
Name = Annotated[str, Option("--name", help="The feature's name.")]
Only = Annotated[str | None, Option("--only", help="Run only this specialist.")]
Restart = Annotated[bool, Option("--restart", help="First cancel the issue's live workflow.")]
_OF_SOME_PROFILES: Final = (
    *("task", "task_file", "plan", "type", "priority"),
    *("fixer", "only", "dry", "base", "all"),
)
_SAME: Final = ("issue", "repo", "ref", "base", "push", "name", "fixer", "only", "restart")
"""Parameters that are fields of a Feature unchanged."""


def facts_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The profile-specific options as fields of a Feature. Refuses an option of another profile and an unreadable
    file."""
    profile, task, task_file, plan = (given.get(name) for name in ("profile", "task", "task_file", "plan"))
    chosen = dict(given, task=task or None)
    for name in _OF_SOME_PROFILES:
        option = f"--{name.replace('_', '-')}"
        having = [each for each in names() if option in registered(each).options]
        if chosen.get(name) not in (None, False) and profile not in having:
            if having == ["validation"]:
                raise UsageError(f"{option} goes with validation, not with --profile {profile}")
            raise UsageError(f"{option} goes with --profile {' or '.join(having)}, not with {profile}")
    if task and task_file is not None:
        raise UsageError("--task and --task-file exclude each other; use one of them")
    facts: dict[str, Any] = {"profile": str(profile), "task": task or ""}
    if task_file is not None:
        facts["task"] = _text(task_file, "the task")
    if plan is not None:
        facts["graph"] = graph = {}
        try:
            found = json.loads(_text(plan, "the plan"))
        except (ValueError, RecursionError) as error:
            said = " ".join(str(error).split())
            raise UsageError(f"the plan {plan} is not valid JSON: {said}") from None
        if not isinstance(found, dict) or not found:
            raise UsageError(f'the plan {plan} must be an object such as {{"ra": [], "ep": ["ra"]}}')
        for agent, needed in found.items():
            if not isinstance(needed, list) or not all(isinstance(other, str) for other in needed):
                raise UsageError(f"the plan {plan} has {needed!r} for {agent}; it must be a list of agents")
            graph[agent.lower()] = tuple(map(str.lower, needed))
    fields = {"kind": given.get("type"), "priority": given.get("priority")}
    return facts | {name: value for name, value in fields.items() if value is not None}


def feature_of(given: Mapping[str, Any], *, queue: str = "") -> Feature:
    """The feature described by the parameters of `run` or `enqueue`, given by name."""
    same = {name: given[name] for name in _SAME}
    return Feature(**facts_of(given), **same, gates_all=given["all"], queue=queue, runs_here=bool(queue))


def _text(file: Path, what: str) -> str:
    # It loads the Redis client, which `check` does not need.
    from fixloop.commands.answer_file import read_given, text_in

    raw = read_given(file, what, MOST_BYTES)
    text = text_in(raw, f"{what} {file}")
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{what} {file} has more than {MOST_BYTES} bytes; shorten it")
    return text
