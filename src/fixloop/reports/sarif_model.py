"""Models the parts of SARIF 2.1.0 that are read, by the standard's names: errors cite them.

Other parts are not validated: a code flow that deviates from the standard does not make a finding unreliable.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from fixloop.protocol.failures import Severity

Level = Literal["none", "note", "warning", "error"]
LEVELS: Final[tuple[str, ...]] = get_args(Level)
# GitHub's steps of `security-severity`, a CVSS score.
_SEVERITIES: Final = ((9.0, Severity.CRITICAL), (7.0, Severity.HIGH), (4.0, Severity.MEDIUM))
_NAMED_SEVERITIES: Final = {severity.value: severity for severity in Severity}


class _Part(BaseModel):
    # Many checks write no SARIF: a worker builds the validators for the first log.
    model_config = ConfigDict(alias_generator=to_camel, defer_build=True)


class Message(_Part):
    """A text, or the id of one of the rule's, and its arguments."""

    text: str | None = None
    markdown: str | None = None
    id: str | None = None
    arguments: list[str] | None = None


class ArtifactLocation(_Part):
    """A file: its URI, or its place in the run's table of artifacts."""

    uri: str | None = None
    uri_base_id: str | None = None
    index: int | None = None


class _ArtifactContent(_Part):
    text: str | None = None


class _Region(_Part):
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    snippet: _ArtifactContent | None = None


class _PhysicalLocation(_Part):
    artifact_location: ArtifactLocation | None = None
    region: _Region | None = None
    context_region: _Region | None = None


class _LogicalLocation(_Part):
    name: str | None = None
    fully_qualified_name: str | None = None


class Location(_Part):
    """A place in a file, and the names of its enclosing elements."""

    physical_location: _PhysicalLocation | None = None
    logical_locations: list[_LogicalLocation] | None = None

    @property
    def shown(self) -> str:
        """The code the tool shows, else the name of the enclosing element."""
        physical = self.physical_location
        for region in (physical.context_region, physical.region) if physical else ():
            if region and region.snippet and region.snippet.text:
                return region.snippet.text
        names = (entry.fully_qualified_name or entry.name for entry in self.logical_locations or [])
        return next((f"in {name}" for name in names if name), "")


class _ToolComponentReference(_Part):
    index: int | None = None


class _ReportingDescriptorReference(_Part):
    id: str | None = None
    index: int | None = None
    tool_component: _ToolComponentReference | None = None


class _ReportingConfiguration(_Part):
    level: str | None = None


class Suppression(_Part):
    """A statement that a finding must not fail; `kind` says where it is made, and is required."""

    kind: str
    status: str | None = None


class Rule(_Part):
    """A rule with its message texts."""

    id: str
    name: str | None = None
    short_description: Message | None = None
    full_description: Message | None = None
    default_configuration: _ReportingConfiguration | None = None
    message_strings: dict[str, Message] | None = None
    help: Message | None = None
    help_uri: str | None = None
    properties: dict[str, Any] | None = None

    @property
    def level(self) -> str:
        """The default level, or empty."""
        return (self.default_configuration and self.default_configuration.level) or ""

    @property
    def help_text(self) -> str:
        """The tool's most detailed explanation."""
        texts = (self.help, self.full_description, self.short_description)
        return next((text for message in texts if message and (text := message.text or message.markdown)), "")


class Finding(_Part):
    """A result with its suppressions, its first place and its first fix."""

    rule_id: str | None = None
    rule_index: int | None = None
    rule: _ReportingDescriptorReference | None = None
    kind: str | None = None
    level: Level | None = None
    message: Message
    locations: list[Location]
    analysis_target: ArtifactLocation | None = None
    properties: dict[str, Any] | None = None
    suppressions: list[Suppression] | None = None
    baseline_state: str | None = None
    fix: str = ""

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Finding":
        """Raises pydantic's ValidationError for a result that is not valid SARIF."""
        fixes = raw.get("fixes") or [{}]
        fix = str((fixes[0].get("description") or {}).get("text") or "")
        return cls.model_validate({**raw, "locations": (raw.get("locations") or [])[:1], "fix": fix})

    @property
    def is_open(self) -> bool:
        """Whether it is a failure of this run; `absent` names one that only a baseline had."""
        return self.kind in {None, "fail"} and self.baseline_state != "absent"

    @property
    def is_suppressed(self) -> bool:
        return any(entry.status in {None, "accepted"} for entry in self.suppressions or [])

    @property
    def place(self) -> Location:
        return self.locations[0] if self.locations else Location()

    def severity(self, rule: Rule | None) -> Severity:
        """By the finding's own score or level, else its rule's; a lint finding without either is medium."""
        for properties in (self.properties or {}, (rule and rule.properties) or {}):
            given = properties.get("security-severity")
            with suppress(ValueError, OverflowError):
                if isinstance(given, str | int | float):
                    score = float(given)
                    return next((severity for least, severity in _SEVERITIES if score >= least), Severity.LOW)
            if named := _NAMED_SEVERITIES.get(str(properties.get("issue_severity", "")).lower()):
                return named
        return Severity.MEDIUM
