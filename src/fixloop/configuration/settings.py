"""What `fixloop.toml` may say: each key once, with its type, its default, its limits and what it does.

Reading the file, the settings page and the JSON Schema are made from these models, and a workflow's frozen
configuration contains them. What keys mean together is in `selection`, `loader` and `roles`.
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
    """What holds where a key is not written and its default does not say so, for the settings page."""

    text: str


class Before(NamedTuple):
    """In the file a key stands before this one; fields have the order in which they are stored."""

    key: str


def _key(default: Any, description: str, **more: Any) -> Any:
    """A key with what it is if it is not written, and what the settings page says of it."""
    return Field(default=default, description=description, **more)


class Section(BaseModel):
    """A table of the file. `model_fields_set` holds the keys that are written."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class WorkspaceSettings(Section):
    """`[workspace]`: how a workspace is made ready."""

    setup: Annotated[values.Command, Unset("none")] = _key((), "makes the environment of a fresh workspace")
    copy_globs: values.Globs = _key(
        (),
        "patterns of further files that git ignores and the checks need "
        "([what goes along by itself](#what-goes-along))",
        alias="copy",
    )
    home: values.Truth = _key(
        False,
        "whether checks see the real home folder, with all settings and Python's user packages in it "
        "([what they see else](#what-checks-see))",
    )


class FixerSettings(Section):
    """`[fixer]`: the main agent."""

    command: Annotated[values.Command, Unset("none: a person or an outside agent is waited for")] = _key(
        (), "the main agent's command; a string is split as a shell would, no shell runs it"
    )
    agent: Annotated[values.AgentName, Unset("none")] = _key(
        "",
        "instead of a command: the name of a declared outside agent, which reads its mailbox "
        "([how](agents.md))",
    )
    timeout_minutes: Annotated[values.MinutesOrOff | None, Unset("as `fix_minutes`")] = _key(
        None, "its limit"
    )
    env: values.Variables = _key((), "names of variables it may see")
    writable: Annotated[values.Places | None, Unset("where the usual agents keep their sessions")] = _key(
        None,
        "folders and files outside its workspace that it may write, each from `/` or `~/` "
        "([the sandbox](security.md#the-sandbox))",
    )
    network: values.Truth = _key(True, "whether it may reach the network")


class SandboxSettings(Section):
    """`[sandbox]`: what keeps checks and agents to their workspaces."""

    mode: Annotated[values.SandboxMode | None, Unset("`auto`")] = _key(
        # A stored configuration that names none is of the time when nothing was confined.
        None,
        '`"auto"`: bubblewrap or Landlock where the system has one; `"require"`: nothing is run without '
        'one; `"off"`: neither. `FIXLOOP_SANDBOX` wins',
    )
    writable: values.Places = _key((), "folders and files that checks may write, too, each from `/` or `~/`")


class AgentSettings(Section):
    """`[agent.NAME]`: an agent that works elsewhere and reads a mailbox."""

    acks: values.Truth = _key(False, "whether this agent has to confirm each failure report")


class LimitSettings(Section):
    """`[limits]`: how long things may take and how often they are tried."""

    validation_minutes: values.MinutesOrOff = _key(
        30.0, "how long a first run may take, from its start; a specialist's own `timeout_minutes` wins"
    )
    revalidation_minutes: values.MinutesOrOff = _key(30.0, "the same for every later run")
    fix_minutes: values.MinutesOrOff = _key(
        30.0,
        "how long a fix may take: an outside agent's from the offer, a command's from its start; "
        "the fixer's own `timeout_minutes` wins",
    )
    iteration_minutes: Annotated[values.MinutesOrOff | None, Unset("`30`, or the longest limit above")] = (
        _key(None, "from the failure report to the next result; over it a person is asked at once")
    )
    reminder_minutes: Annotated[values.MinutesOrOff, Unset("at the limit")] = _key(
        0.0, "when the one reminder goes out, where that is to be before the limit"
    )
    reminder_window_minutes: values.MinutesOrOff = _key(
        5.0,
        "from the reminder to the escalation, which never comes before the limit; `false`: nothing "
        "follows the reminder",
    )
    deadlock_window: values.NumberOrOff = _key(3, "so many equal failures in a row are a deadlock")
    specialist_attempts: values.Iterations = _key(
        2, "how often a check that cannot be run is tried, the first time included"
    )
    fix_attempts: values.Iterations = _key(3, "how often a fixer that fails is started")
    delivery_attempts: values.Iterations = _key(
        3,
        "how often a message is put into a declared agent's mailbox before a person is asked, "
        "2, 4 … seconds apart",
    )
    receipt_minutes: values.MinutesOrOff = _key(
        1.0, "how soon an agent with `acks = true` has to confirm a failure report"
    )
    answer_attempts: values.Iterations = _key(
        2, "how many answers that do not fit are taken before a person is asked"
    )
    confirm_rounds: values.Iterations = _key(3, "how often fixes of later phases may break an earlier one")
    extend_iterations: values.Iterations = _key(
        3, "what `decide extend` adds after the last iteration or a deadlock"
    )
    extend_minutes: values.Minutes = _key(30.0, "what `decide extend` adds after a timeout")


class Named(Section):
    """Something with a name, which is stored first."""

    name: str


class CheckKeys(Section):
    """What a check may say, and a specialist for all of its checks."""

    command: Annotated[values.CheckCommand, Unset("what is detected")] = _key(
        (), "one check; several are written as `[[specialist.NAME.check]]` with `name` and `command`"
    )
    output: Annotated[values.Output, Unset("none")] = _key(
        "",
        "how what the command prints is read, where that is its report: "
        '`"go-test"`, `"cargo-test"`, `"clippy"`',
    )
    optional: values.Truth = _key(False, "whether a check may be left out where it cannot run")
    fail_on: values.Level = _key(
        values.FailOn.ERROR, 'from which SARIF level a result fails: `"error"`, `"warning"`, `"note"`'
    )
    coverage_percent: Annotated[
        values.Percent | None,
        Unset("`80` where a command has `{coverage}`; else the project's own `fail_under`, or none"),
    ] = _key(None, "the gate")
    env: values.Variables = _key((), "names of variables the checks may see")
    baseline: Annotated[
        values.Counted | None, Unset('`"new"` for `code-quality` and `security`, else `"all"`'), Before("env")
    ] = _key(None, "which failures count: those that the base does not have, or all ([how](baseline.md))")
    speed: Annotated[values.Speed, Unset("none")] = _key("", '`"fast"`: `fixloop check --fast` runs it')


class CheckSettings(CheckKeys, Named):
    """`[[specialist.NAME.check]]`: one of several checks."""

    name: Annotated[values.CheckName, Unset("the tool's")] = _key("", "what reports call the check")


class SpecialistSettings(CheckKeys):
    """`[specialist.NAME]`: what one specialist runs."""

    timeout_minutes: Annotated[
        values.MinutesOrOff | None, Unset("as `validation_minutes` and `revalidation_minutes`")
    ] = _key(None, "the limit of each of its runs")
    check: tuple[CheckSettings, ...] = _key((), "several checks instead of one command")
    network: values.Truth = _key(
        True, "`false`: its checks reach neither the network nor, without bubblewrap, themselves"
    )


class Role(Section):
    """`[cycle.agent.NAME]`, `[handoff.agent.NAME]`: an agent of a cycle or of handoffs."""

    command: Annotated[values.Command, Unset("none")] = _key(
        (),
        "what runs the agent: the prompt on its standard input, its answer on its standard output; "
        '`"fixloop:validation"` is the validation loop itself ([bridging.md](bridging.md))',
    )
    outside: values.Truth = _key(
        False, "instead of a command: somebody elsewhere, who reads a mailbox", exclude=True
    )
    timeout_minutes: Annotated[values.MinutesOrOff | None, Unset("its profile's")] = _key(
        None, "the limit of each of its runs"
    )
    env: values.Variables = _key((), "names of variables the command may see")
    depends_on: Annotated[values.AgentNames | None, Unset("the default order")] = _key(
        None, "of a cycle's agent: whom it waits for; with it, an agent beside the four may be added"
    )

    @property
    def is_validation_loop(self) -> bool:
        return self.command == (VALIDATION_LOOP,)


class IntegritySettings(Section):
    """`[integrity]`: what a fix may change without a person being asked."""

    tests_may_change: values.Globs = _key(
        (), "patterns of tests and their data that a fix may change, and which then judge as it left them"
    )
    product: values.Globs = _key((), "patterns of files that are judged, whatever they are called")
    test: values.Globs = _key((), "patterns of further tests and of what they read")
    gate: values.Globs = _key((), "patterns of further files with settings of tools and thresholds")
    runner: values.Globs = _key((), "patterns of further files that run tests or are loaded by them")
    allow: values.Allowances = _key(
        (),
        'what product files may newly have, each as `"RULE PATTERN"`, or `"RULE PATTERN NUMBER"` for at '
        "most so many in one file",
    )
    off: values.Rules = _key(
        (), 'names of rules ([which there are](integrity.md)) that hold nothing here; `"all"`: none does'
    )
    quarantine: values.Quarantines = _key(
        (),
        "tests that may fail and then pass on the same tree without a person being asked, each as "
        '`"TEST OWNER DATE"`, until that day',
    )


_AGENTS: Final[JsonDict] = {"propertyNames": {"pattern": f"^{values.AGENT_NAME.pattern}$"}}


class ProfileSettings(Section):
    """What `[cycle]` and `[handoff]` have in common."""

    max_iterations: values.Iterations = _key(5, "validations or reviews before a person has to decide", ge=1)
    timeout_minutes: values.Minutes = _key(
        30.0, "how long one run of an agent may take, and how long it may hold a lock"
    )
    attempts: values.Iterations = _key(3, "how often a run that fails is started, 2, 4 … seconds apart")
    agent: dict[str, Role] = _key(
        {}, "its agents; one without a section is outside", json_schema_extra=_AGENTS
    )


class CycleSettings(ProfileSettings):
    """`[cycle]`: requirements, planning, development, validation."""

    timeout_minutes: values.MinutesOrOff = _key(30.0, "how long one run of an agent may take")
    converge_minutes: values.Minutes = _key(
        15.0, "how much longer a run may take after it was asked to come to an end"
    )
    answer_attempts: values.Iterations = _key(
        2, "how many answers without a valid PHASE_RESULT are taken before a person is asked"
    )
    pass_rate_percent: values.Percent = _key(90.0, "a validation that reports fewer passing tests has failed")
    coverage_percent: values.Percent = _key(80.0, "the same for coverage")
    utc_offset_minutes: values.UtcOffset = _key(480, "the zone of all times in the named files")


class HandoffSettings(ProfileSettings):
    """`[handoff]`: planner, builder, reviewer, fixer."""


class SharedSettings(Section):
    """What a workflow's configuration takes from the file as it stands there."""

    project: Annotated[values.Line, Unset("the URL of `origin`, else the folder")] = _key(
        "", "the project's identity"
    )
    max_iterations: values.Iterations = _key(5, "runs of one specialist before a person has to decide", ge=1)
    notify: Annotated[values.Command, Unset("none")] = _key(
        (),
        "a command that is run once for each escalation, and each question of handoffs, with what you "
        "are asked on its standard input",
    )
    bundle_fix_request: values.Truth = _key(
        True,
        "`false`: the fix request is a message with a line of its own, not attached to the failure report",
    )
    limits: Annotated[LimitSettings, Before("agent")] = _key(LimitSettings(), "times, windows and attempts")
    workspace: Annotated[WorkspaceSettings, Before("fixer")] = _key(
        WorkspaceSettings(), "how a workspace is made ready"
    )
    base: Annotated[values.Revision, Unset("the merge base with the default branch"), Before("notify")] = (
        _key(
            "",
            'the revision whose failures are not a feature\'s, or `"none"` ([how](baseline.md)); '
            "`--base` wins",
        )
    )
    integrity: Annotated[IntegritySettings, Before("agent")] = _key(
        IntegritySettings(), "what a fix may change without a person being asked"
    )
    sandbox: Annotated[SandboxSettings, Before("agent")] = _key(
        SandboxSettings(), "what keeps checks and agents to their workspaces"
    )


class FileSettings(SharedSettings):
    """The whole file."""

    frontend: Annotated[values.Truth | None, Unset("unset")] = _key(
        None, "`true`: `e2e-accessibility` applies, too; `false`: it does not"
    )
    strict: values.Truth = _key(
        False,
        "`true`: whatever was found and cannot run here makes the verdict `not verified`, not only "
        "tests and what this file names",
    )
    fixer: FixerSettings = _key(FixerSettings(), "the main agent")
    agent: dict[str, AgentSettings] = _key({}, "agents that work elsewhere", json_schema_extra=_AGENTS)
    specialist: dict[str, SpecialistSettings] = _key(
        {}, "what has to hold", json_schema_extra={"propertyNames": {"enum": [*NAMES]}}
    )
    cycle: CycleSettings | None = _key(None, "what a cycle goes by")
    handoff: HandoffSettings | None = _key(None, "what a workflow of handoffs goes by")


class Key(NamedTuple):
    """One key of a section."""

    name: str
    """As the file writes it."""
    field: FieldInfo
    kind: values.Kind | None
    """None for a section, or several."""
    section: type[Section] | None
    """What stands below it."""
    is_many: bool
    """One section for each name, or for each item of a list."""


def keys_of(section: type[Section]) -> dict[str, Key]:
    """The keys of a section by name, in the order of the file."""
    keys: dict[str, Key] = {}
    for attribute, field in section.model_fields.items():
        # Of `X`, `X | None`, `dict[str, X]` or `tuple[X, ...]`, X being annotated with a kind, or a section.
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
    """Every section of the file with its heading, the top first, whose heading is empty."""
    yield f"[{path}]" if path else "", section
    for key in keys_of(section).values():
        if key.section is not None:
            below = f"{path}.{key.name}" if path else key.name
            if get_origin(key.field.annotation) is tuple:
                yield f"[[{below}]]", key.section
            else:
                yield from sections_in(key.section, f"{below}.NAME" if key.is_many else below)
