"""What an issue of a PHASE_RESULT is about, and who can resolve it (C52-C57, G23). Pure text and tables."""

import re
from typing import Final

from fixloop.profiles.cycle.records import ConflictKind, Severity

RESOLVERS: Final = {ConflictKind.UNCLEAR_REQUIREMENT: "ra", ConflictKind.PLAN_MISMATCH: "ep"}
"""Who can fix it without a person (C57)."""

_NAMED: Final = {
    "unclear-requirement": ConflictKind.UNCLEAR_REQUIREMENT,
    "unclear requirement": ConflictKind.UNCLEAR_REQUIREMENT,
    "requirement": ConflictKind.UNCLEAR_REQUIREMENT,
    "plan-mismatch": ConflictKind.PLAN_MISMATCH,
    "plan mismatch": ConflictKind.PLAN_MISMATCH,
    "plan": ConflictKind.PLAN_MISMATCH,
    "user": ConflictKind.OTHER,
    "decision": ConflictKind.OTHER,
}
_PREFIX: Final = re.compile(r"^\s*[\[(]?([A-Za-z][A-Za-z -]*?)[\])]?\s*:\s*(.*)$", re.DOTALL)
_REQUIREMENT: Final = re.compile(
    r"\b(?:N?FR|AC|EC)-\d+\b|\b(?:unclear|ambiguous)\b.*\brequirement", re.IGNORECASE
)
_PLAN: Final = re.compile(r"\bTASK-\d+\b|\bplan(?:\.json)?\b", re.IGNORECASE)
_SEVERITY: Final = re.compile(
    r"^\s*[\[(]?(blocker|critical|major|minor|low)[\])]?\s*:?\s+(.*)$", re.IGNORECASE | re.DOTALL
)
_LEVELS: Final = {
    "blocker": Severity.BLOCKER,
    "critical": Severity.BLOCKER,
    "major": Severity.MAJOR,
    "minor": Severity.MINOR,
    "low": Severity.MINOR,
}


def categorised(issue: str) -> tuple[Severity, str]:
    """An issue's severity and its text without the word that names it; a blocker where it names none (G23)."""
    found = _SEVERITY.match(issue)
    if found is None:
        return Severity.BLOCKER, issue.strip()
    return _LEVELS[found[1].lower()], found[2].strip()


def milder(level: Severity) -> Severity:
    """What stands beside a success re-opens no work unless it says so itself."""
    return Severity.MAJOR if level is Severity.BLOCKER else level


def kind_of(issue: str) -> ConflictKind:
    """Whether it is about a requirement or the plan: by the word before its colon, else by the ids it names."""
    prefix = _PREFIX.match(issue)
    named = _NAMED.get(prefix[1].lower()) if prefix else None
    if named is not None:
        return named
    if _REQUIREMENT.search(issue):
        return ConflictKind.UNCLEAR_REQUIREMENT
    return ConflictKind.PLAN_MISMATCH if _PLAN.search(issue) else ConflictKind.OTHER
