"""The parts of SARIF that are read, as sarif-pydantic's models with the fields it leaves out.

Owns every import of that library, which ships no types. Parts that are not read are not validated: a code
flow that is not quite as the standard says is no reason to distrust a finding.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field
from sarif_pydantic import (  # type: ignore[import-untyped, unused-ignore]
    ArtifactLocation,
    Location,
    Message,
    ReportingDescriptor,
    Result,
)
from sarif_pydantic.sarif import Suppression  # type: ignore[import-untyped, unused-ignore]

__all__ = ["LEVELS", "ArtifactLocation", "Finding", "Location", "Message", "Rule"]

LEVELS: Final = ("none", "note", "warning", "error")

_OF_A_RULE: Final = (
    *("id", "name", "shortDescription", "fullDescription", "defaultConfiguration"),
    *("messageStrings", "help", "helpUri", "properties"),
)
_OF_A_FINDING: Final = (
    *("ruleId", "ruleIndex", "rule", "kind", "level", "message", "analysisTarget"),
    *("baselineState", "suppressions", "properties"),
)


class Rule(ReportingDescriptor):  # type: ignore[misc]
    """A rule with its message texts."""

    message_strings: dict[str, Message] | None = Field(default=None, alias="messageStrings")

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Rule":
        """Raises pydantic's ValidationError when it is not shaped as SARIF says."""
        rule: Rule = cls.model_validate({key: raw[key] for key in _OF_A_RULE if key in raw})
        return rule

    @property
    def level(self) -> str:
        """The default level, or nothing."""
        return str((self.default_configuration and self.default_configuration.level) or "")

    @property
    def help_text(self) -> str:
        """The first explanation the tool gives, the fullest kind first."""
        texts = (self.help, self.full_description, self.short_description)
        return next((text for message in texts if message and (text := message.text or message.markdown)), "")


class Finding(Result):  # type: ignore[misc]
    """A result with its suppressions, its first place and its first fix."""

    suppressions: list[Suppression] | None = None
    baseline_state: str | None = Field(default=None, alias="baselineState")
    fix: str = ""

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Finding":
        """Raises pydantic's ValidationError when it is not shaped as SARIF says."""
        parts = {key: raw[key] for key in _OF_A_FINDING if key in raw}
        fixes = raw.get("fixes") or [{}]
        fix = str((fixes[0].get("description") or {}).get("text") or "")
        finding: Finding = cls.model_validate(
            {**parts, "locations": (raw.get("locations") or [])[:1], "fix": fix}
        )
        return finding

    @property
    def is_open(self) -> bool:
        """It is there; `absent` names one that a baseline had and this run has not."""
        return self.kind in {None, "fail"} and self.baseline_state != "absent"

    @property
    def is_suppressed(self) -> bool:
        return any(entry.status in {None, "accepted"} for entry in self.suppressions or [])

    @property
    def place(self) -> Location:
        return self.locations[0] if self.locations else Location()
