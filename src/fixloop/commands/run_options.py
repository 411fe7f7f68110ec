"""The options that `run` and `enqueue` share, and which of them go with which profile."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from fixloop.commands.answer_file import read_given
from fixloop.errors import UsageError
from fixloop.intake.feature import Feature, Kind, Priority
from fixloop.profile_table import names, registered

MOST_BYTES: Final = 256 * 1024
"""Of a task: a request, not its material."""


if TYPE_CHECKING:
    ProfileName = str
else:
    ProfileName = StrEnum("ProfileName", {name.upper(): name for name in names()})
Profiled = Annotated[
    ProfileName,
    typer.Option(
        "--profile",
        help="; ".join(f"{name}: {registered(name).summary}" for name in names()) + ".",
    ),
]
Task = Annotated[str, typer.Option("--task", help="cycle, handoff: what is to be done.")]
TaskFile = Annotated[
    Path | None, typer.Option("--task-file", metavar="FILE", help="The same from a file, - for stdin.")
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help='cycle: who waits for whom, as JSON: {"ra": [], "ep": ["ra"], …}.',
        show_default="as fixloop.toml says",
    ),
]
Type = Annotated[
    Kind | None, typer.Option("--type", help="handoff: what the work is.", show_default=Kind.FEATURE.value)
]
Urgency = Annotated[
    Priority | None,
    typer.Option("--priority", help="handoff: how urgent it is.", show_default=Priority.HIGH.value),
]


Ref = Annotated[
    str | None,
    typer.Option(
        "--ref", help="A branch, tag or commit instead of the working tree (a URL: instead of its HEAD)."
    ),
]
BaseRevision = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="REV",
        help="Failures that are there too are not the feature's; none: all are.",
        show_default="the merge base with the default branch",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Failures that are older than the feature count, too.")]
Push = Annotated[
    bool,
    typer.Option("--push", help="When everything has passed, push the branch fixloop/ISSUE to the git URL."),
]
Name = Annotated[str, typer.Option("--name", help="The feature's name.")]
Only = Annotated[str | None, typer.Option("--only", help="One specialist.")]
Restart = Annotated[bool, typer.Option("--restart", help="Cancel what is live of this issue first.")]


_VALIDATING: Final = ("fixer", "only", "dry", "base", "all")
_SAME: Final = ("issue", "repo", "ref", "base", "push", "name", "fixer", "only", "restart")
"""The parameters that are fields of a Feature as they are."""


class Options(NamedTuple):
    """The options that only some profiles have, as they were given."""

    profile: str
    task: str = ""
    task_file: Path | None = None
    plan: Path | None = None
    type: Kind | None = None
    priority: Priority | None = None
    validating: Mapping[str, object] = MappingProxyType({})
    """The options of the validation loop alone by name; None or False: not given."""


def facts_of(options: Options) -> dict[str, Any]:
    """What they come to, as fields of a Feature; refuses an option of another profile, and an unreadable file."""
    given = {
        "--task": options.task or None,
        "--task-file": options.task_file,
        "--plan": options.plan,
        "--type": options.type,
        "--priority": options.priority,
        **options.validating,
    }
    for name in (name for name, value in given.items() if value not in (None, False)):
        having = [profile for profile in names() if name in registered(profile).options]
        if options.profile not in having:
            if having == ["validation"]:
                raise UsageError(f"{name} goes with validation, not with --profile {options.profile}")
            raise UsageError(f"{name} goes with --profile {' or '.join(having)}, not with {options.profile}")
    if options.task and options.task_file is not None:
        raise UsageError("--task and --task-file exclude each other; use one of them")
    facts: dict[str, Any] = {"profile": str(options.profile), "task": options.task}
    if options.task_file is not None:
        facts["task"] = _text(options.task_file, "the task")
    if options.plan is not None:
        facts["graph"] = graph = {}
        try:
            found = json.loads(_text(options.plan, "the plan"))
        except (ValueError, RecursionError) as error:
            said = " ".join(str(error).split())
            raise UsageError(f"the plan {options.plan} is not valid JSON: {said}") from None
        if not isinstance(found, dict) or not found:
            raise UsageError(
                f'the plan {options.plan} has to be an object such as {{"ra": [], "ep": ["ra"]}}'
            )
        for agent, needed in found.items():
            if not isinstance(needed, list) or not all(isinstance(other, str) for other in needed):
                raise UsageError(
                    f"the plan {options.plan} has {needed!r} for {agent}; it has to be a list of agents"
                )
            graph[agent.lower()] = tuple(map(str.lower, needed))
    if options.type is not None:
        facts["kind"] = options.type
    if options.priority is not None:
        facts["priority"] = options.priority
    return facts


def feature_of(given: Mapping[str, Any], *, own_queue: bool = False) -> Feature:
    """The feature that the parameters of `run` or `enqueue` describe, by their names."""
    chosen = {name: given[name] for name in Options._fields if name in given}
    validating = {f"--{name}": given[name] for name in _VALIDATING if name in given}
    same = {name: given[name] for name in _SAME}
    facts = facts_of(Options(**chosen, validating=validating))
    return Feature(**facts, **same, gates_all=given["all"], own_queue=own_queue)


def _text(file: Path, what: str) -> str:
    raw = read_given(file, what, MOST_BYTES)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UsageError(f"{what} {file} is not UTF-8: byte {byte:#04x} at {error.start}") from None
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{what} {file} has more than {MOST_BYTES} bytes; shorten it")
    return text
