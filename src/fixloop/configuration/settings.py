"""The contents of `fixloop.toml`: each key once, with its type, default, limits and effect.

The parser, the settings page and the JSON Schema are made from these models, and a workflow's frozen configuration
contains them. How keys interact is in `selection`, `loader` and `roles`.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from fixloop.configuration import values
from fixloop.protocol.specialists import NAMES

VALIDATION_LOOP: Final = "fixloop:validation"
"""As a command: the agent's work is a separate validation workflow."""
HANDOFFS: Final = "fixloop:handoff"
"""As a validation loop's fixer: each fix is a separate workflow of handoffs."""


class Unset(NamedTuple):
    """What an unset key means, if its default does not say so; for the settings page."""

    text: str


class Before(NamedTuple):
    """In the file, a key comes before this one; fields are in the order in which they are stored."""

    key: str


def _key(default: Any, description: str, **more: Any) -> Any:
    """A key with its default and its description on the settings page."""
    return Field(default=default, description=description, **more)


class Section(BaseModel):
    """A table of the file. `model_fields_set` holds the keys that are set."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class WorkspaceSettings(Section):
    """`[workspace]`: how a workspace is prepared."""

    setup: Annotated[values.Command, Unset("none")] = _key((), "command that sets up a new workspace")
    copy_globs: values.Globs = _key(
        (),
        "patterns of other git-ignored files that the checks need ([copied automatically](#what-goes-along))",
        alias="copy",
    )
    home: values.Truth = _key(
        False,
        "whether checks see the real home folder, with all its settings and Python's user packages "
        "([what they see otherwise](#what-checks-see))",
    )


class FixerSettings(Section):
    """`[fixer]`: the main agent."""

    command: Annotated[values.Command, Unset("none: waits for a person or an outside agent")] = _key(
        (), "the main agent's command; a string is split as in a shell, but no shell runs it"
    )
    agent: Annotated[values.AgentName, Unset("none")] = _key(
        "", "instead of a command: a declared outside agent, which reads its mailbox ([how](agents.md))"
    )
    timeout_minutes: Annotated[values.MinutesOrOff | None, Unset("as `fix_minutes`")] = _key(
        None, "its time limit"
    )
    env: values.Variables = _key((), "names of variables it may see")
    writable: Annotated[values.Places | None, Unset("the folders of the usual agents")] = _key(
        None,
        "folders and files outside its workspace that it may write, from `/` or `~/` "
        "([the sandbox](security.md#the-sandbox))",
    )
    network: values.Truth = _key(True, "whether it may reach the network")


class SandboxSettings(Section):
    """`[sandbox]`: what confines checks and agents to their workspaces."""

    mode: Annotated[values.SandboxMode | None, Unset("`auto`")] = _key(
        # A stored configuration without one is from before there was a sandbox.
        None,
        '`"auto"`: bubblewrap or Landlock, if available; `"require"`: run nothing without one; '
        '`"off"`: neither. `FIXLOOP_SANDBOX` wins',
    )
    writable: values.Places = _key((), "more folders and files that checks may write, from `/` or `~/`")


class AgentSettings(Section):
    """`[agent.NAME]`: an outside agent that reads a mailbox."""

    acks: values.Truth = _key(False, "whether this agent must confirm each failure report")


class LimitSettings(Section):
    """`[limits]`: time limits and numbers of attempts."""

    validation_minutes: values.MinutesOrOff = _key(
        30.0, "limit for a first run, from its start; a specialist's own `timeout_minutes` wins"
    )
    revalidation_minutes: values.MinutesOrOff = _key(30.0, "the same for every later run")
    fix_minutes: values.MinutesOrOff = _key(
        30.0,
        "limit for a fix, from the offer for an outside agent, from the start for a command; "
        "the fixer's own `timeout_minutes` wins",
    )
    iteration_minutes: Annotated[values.MinutesOrOff | None, Unset("`30`, or the longest limit above")] = (
        _key(None, "limit from the failure report to the next result; then a person is asked at once")
    )
    reminder_minutes: Annotated[values.MinutesOrOff, Unset("at the limit")] = _key(
        0.0, "when to send the single reminder, if before the limit"
    )
    reminder_window_minutes: values.MinutesOrOff = _key(
        5.0,
        "from the reminder to the escalation, which never comes before the limit; `false`: nothing "
        "follows it",
    )
    deadlock_window: values.NumberOrOff = _key(3, "this many equal failures in a row are a deadlock")
    specialist_attempts: values.Iterations = _key(
        2, "how often to try a check that cannot run, including the first time"
    )
    fix_attempts: values.Iterations = _key(3, "how often to start a fixer that fails")
    delivery_attempts: values.Iterations = _key(
        3,
        "how often to try delivery to a declared agent's mailbox before a person is asked, "
        "2, 4 … seconds apart",
    )
    receipt_minutes: values.MinutesOrOff = _key(
        1.0, "how soon an agent with `acks = true` must confirm a failure report"
    )
    answer_attempts: values.Iterations = _key(
        2, "how many invalid answers are accepted before a person is asked"
    )
    confirm_rounds: values.Iterations = _key(3, "how often fixes of later phases may break an earlier one")
    extend_iterations: values.Iterations = _key(
        3, "what `decide extend` adds after the last iteration or a deadlock"
    )
    extend_minutes: values.Minutes = _key(30.0, "what `decide extend` adds after a timeout")


class Named(Section):
    """A section with a name, which is stored first."""

    name: str


class CheckKeys(Section):
    """Keys of a check, or of a specialist for all of its checks."""

    command: Annotated[values.CheckCommand, Unset("detected")] = _key(
        (), "one check; for several, use `[[specialist.NAME.check]]` with `name` and `command`"
    )
    output: Annotated[values.Output, Unset("none")] = _key(
        "", 'how to read the command\'s output if that is its report: `"go-test"`, `"cargo-test"`, `"clippy"`'
    )
    optional: values.Truth = _key(False, "whether a check may be left out if it cannot run")
    fail_on: values.Level = _key(
        values.FailOn.ERROR, 'the lowest SARIF level that fails: `"error"`, `"warning"`, `"note"`'
    )
    coverage_percent: Annotated[
        values.Percent | None,
        Unset("`80` if a command has `{coverage}`; else the project's own `fail_under`, or none"),
    ] = _key(None, "the gate")
    env: values.Variables = _key((), "names of variables the checks may see")
    baseline: Annotated[
        values.Counted | None, Unset('`"new"` for `code-quality` and `security`, else `"all"`'), Before("env")
    ] = _key(None, "which failures count: those not in the base, or all ([how](baseline.md))")
    speed: Annotated[values.Speed, Unset("none")] = _key("", '`"fast"`: `fixloop check --fast` runs it')


class CheckSettings(CheckKeys, Named):
    """`[[specialist.NAME.check]]`: one of several checks."""

    name: Annotated[values.CheckName, Unset("the tool's")] = _key("", "the check's name in reports")


class SpecialistSettings(CheckKeys):
    """`[specialist.NAME]`: what one specialist runs."""

    timeout_minutes: Annotated[
        values.MinutesOrOff | None, Unset("as `validation_minutes` and `revalidation_minutes`")
    ] = _key(None, "the time limit of each of its runs")
    check: tuple[CheckSettings, ...] = _key((), "several checks instead of one command")
    network: values.Truth = _key(
        True, "`false`: its checks reach neither the network nor, without bubblewrap, themselves"
    )


class Role(Section):
    """`[cycle.agent.NAME]`, `[handoff.agent.NAME]`: an agent of a cycle or handoff."""

    command: Annotated[values.Command, Unset("none")] = _key(
        (),
        "runs the agent, with the prompt on standard input and the answer on standard output; "
        '`"fixloop:validation"` is the validation loop itself ([bridging.md](bridging.md))',
    )
    outside: values.Truth = _key(
        False, "instead of a command: an outside agent, which reads a mailbox", exclude=True
    )
    timeout_minutes: Annotated[values.MinutesOrOff | None, Unset("its profile's")] = _key(
        None, "the time limit of each of its runs"
    )
    env: values.Variables = _key((), "names of variables the command may see")
    depends_on: Annotated[values.AgentNames | None, Unset("the default order")] = _key(
        None, "for a cycle's agent: the agents it waits for; lets you add agents to the four"
    )

    @property
    def is_validation_loop(self) -> bool:
        return self.command == (VALIDATION_LOOP,)


class IntegritySettings(Section):
    """`[integrity]`: what a fix may change without asking a person."""

    tests_may_change: values.Globs = _key(
        (), "patterns of tests and their data that a fix may change, and that judge in their changed form"
    )
    product: values.Globs = _key((), "patterns of files that are judged, whatever their names")
    test: values.Globs = _key((), "patterns of more tests and of what they read")
    gate: values.Globs = _key((), "patterns of more files with tool settings and thresholds")
    runner: values.Globs = _key((), "patterns of more files that run tests or are loaded by them")
    allow: values.Allowances = _key(
        (),
        'what fixes may add to product files, as `"RULE PATTERN"`, or `"RULE PATTERN NUMBER"` for at '
        "most NUMBER per file",
    )
    off: values.Rules = _key((), 'names of rules to turn off ([list](integrity.md)); `"all"`: every rule')
    quarantine: values.Quarantines = _key(
        (),
        "tests that may fail and then pass on the same tree without asking a person, as "
        '`"TEST OWNER DATE"`, until that day',
    )


_AGENTS: Final[JsonDict] = {"propertyNames": {"pattern": f"^{values.AGENT_NAME.pattern}$"}}


class ProfileSettings(Section):
    """The keys that `[cycle]` and `[handoff]` share."""

    max_iterations: values.Iterations = _key(5, "validations or reviews before a person must decide", ge=1)
    timeout_minutes: values.Minutes = _key(30.0, "limit for one run of an agent, and for holding a lock")
    attempts: values.Iterations = _key(3, "how often to start a run that fails, 2, 4 … seconds apart")
    agent: dict[str, Role] = _key(
        {}, "its agents; those without a section are outside", json_schema_extra=_AGENTS
    )


class CycleSettings(ProfileSettings):
    """`[cycle]`: requirements, planning, development, validation."""

    timeout_minutes: values.MinutesOrOff = _key(30.0, "limit for one run of an agent")
    converge_minutes: values.Minutes = _key(
        15.0, "how much longer a run may take after it was asked to finish"
    )
    answer_attempts: values.Iterations = _key(
        2, "how many answers without a valid PHASE_RESULT are accepted before a person is asked"
    )
    pass_rate_percent: values.Percent = _key(90.0, "a validation that reports fewer passing tests fails")
    coverage_percent: values.Percent = _key(80.0, "the same for coverage")
    utc_offset_minutes: values.UtcOffset = _key(480, "the time zone of the named files")


class HandoffSettings(ProfileSettings):
    """`[handoff]`: planner, builder, reviewer, fixer."""


class SharedSettings(Section):
    """What a workflow's configuration takes from the file unchanged."""

    project: Annotated[values.Line, Unset("the URL of `origin`, else the folder")] = _key(
        "", "the project's identity"
    )
    max_iterations: values.Iterations = _key(5, "runs of one specialist before a person must decide", ge=1)
    notify: Annotated[values.Command, Unset("none")] = _key(
        (),
        "a command to run for each escalation and each handoff question, with the question on its "
        "standard input",
    )
    bundle_fix_request: values.Truth = _key(
        True, "`false`: the fix request is a separate message, not attached to the failure report"
    )
    limits: Annotated[LimitSettings, Before("agent")] = _key(LimitSettings(), "times, windows and attempts")
    workspace: Annotated[WorkspaceSettings, Before("fixer")] = _key(
        WorkspaceSettings(), "how a workspace is prepared"
    )
    base: Annotated[values.Revision, Unset("the merge base with the default branch"), Before("notify")] = (
        _key("", 'the revision whose failures are ignored, or `"none"` ([how](baseline.md)); `--base` wins')
    )
    integrity: Annotated[IntegritySettings, Before("agent")] = _key(
        IntegritySettings(), "what a fix may change without asking a person"
    )
    sandbox: Annotated[SandboxSettings, Before("agent")] = _key(
        SandboxSettings(), "what confines checks and agents to their workspaces"
    )


class FileSettings(SharedSettings):
    """The whole file."""

    frontend: Annotated[values.Truth | None, Unset("unset")] = _key(
        None, "`true`: `e2e-accessibility` also applies; `false`: it does not"
    )
    strict: values.Truth = _key(
        False,
        "`true`: any detected check that cannot run here makes the verdict `not verified`, not only "
        "tests and the checks in this file",
    )
    fixer: FixerSettings = _key(FixerSettings(), "the main agent")
    agent: dict[str, AgentSettings] = _key({}, "outside agents", json_schema_extra=_AGENTS)
    specialist: dict[str, SpecialistSettings] = _key(
        {}, "the checks of each specialist", json_schema_extra={"propertyNames": {"enum": [*NAMES]}}
    )
    cycle: CycleSettings | None = _key(None, "settings of a cycle")
    handoff: HandoffSettings | None = _key(None, "settings of a handoff workflow")


class Key(NamedTuple):
    """One key of a section."""

    name: str
    """As written in the file."""
    field: FieldInfo
    kind: values.Kind | None
    """None for one section, or several."""
    section: type[Section] | None
    """The section below it."""
    is_many: bool
    """One section per name, or per item of a list."""


def keys_of(section: type[Section]) -> dict[str, Key]:
    """The keys of a section by name, in the order of the file."""
    keys: dict[str, Key] = {}
    for attribute, field in section.model_fields.items():
        # For `X`, `X | None`, `dict[str, X]` or `tuple[X, ...]`, where X is annotated with a kind, or is a section.
        name, inside = field.alias or attribute, get_args(field.annotation)
        marks = [*field.metadata, *(mark for each in inside for mark in getattr(each, "__metadata__", ()))]
        kind = next((mark for mark in marks if isinstance(mark, values.Kind)), None)
        types = [each for each in (field.annotation, *inside) if isinstance(each, type)]
        below = next((each for each in types if issubclass(each, Section) and kind is None), None)
        keys[name] = Key(name, field, kind, below, get_origin(field.annotation) in (dict, tuple))
    order = list(keys)
    for name, key in keys.items():
        for mark in key.field.metadata:
            if isinstance(mark, Before):
                order.remove(name)
                order.insert(order.index(mark.key), name)
    return {name: keys[name] for name in order}


def sections_in(section: type[Section] = FileSettings, path: str = "") -> Iterator[tuple[str, type[Section]]]:
    """Every section of the file with its heading, beginning with the top, whose heading is empty."""
    yield f"[{path}]" if path else "", section
    for key in keys_of(section).values():
        if key.section is not None:
            below = f"{path}.{key.name}" if path else key.name
            if get_origin(key.field.annotation) is tuple:
                yield f"[[{below}]]", key.section
            else:
                yield from sections_in(key.section, f"{below}.NAME" if key.is_many else below)
