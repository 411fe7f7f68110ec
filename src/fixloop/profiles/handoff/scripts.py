"""The scripts of the agents of handoffs in a chaos run; `fixloop.testing.parts` defines the words."""

import json
import re
from collections.abc import Mapping
from typing import Final

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.state import Limits
from fixloop.testing.parts import Scripts
from fixloop.testing.plan import HANDOFF
from fixloop.testing.script import AFFIXED

_SPEC: Final = "specs/20260122-user-auth.md"
_RETURNS: Final[Mapping[str, Mapping[str, object]]] = {
    "planner": {"status": "completed", "spec": _SPEC},
    "builder": {"status": "completed", "commit": "abc123", "files_changed": ["src/auth.ts"]},
    "reviewer": {"status": "approved"},
    "fixer": {"status": "fixes_applied", "commits": ["def456"]},
}
_ISSUE: Final = {"id": "ISS-001", "severity": "high", "file": "src/auth.ts", "description": "no test"}
_QUESTION: Final = {
    "type": "escalation",
    "reason": "spec_ambiguity",
    "details": "Cannot determine auth method",
    "options": ["jwt", "session"],
    "context": "spec line 45",
}


def output(what: str, agent: str) -> str:
    """The output of an agent for a word of its script."""
    result: Mapping[str, object] = _RETURNS[agent]
    if what == "no":
        result = {"status": "needs_fixes", "issues": [_ISSUE, {**_ISSUE, "id": "ISS-002"}]}
    if what == "fatal":
        result = {"status": "failed", "reason": "scripted to be fatal", "fatal": True}
    lines = [{**_QUESTION, "blocking": what == "ask"}] if what in ("ask", "note") else []
    return "".join(f"{json.dumps(line)}\n" for line in [*lines, result])


SCRIPTS: Final = Scripts(
    agents=("planner", "builder", "reviewer", "fixer"),
    scripts=(
        "planner: ok~0.05; reviewer: no~0.05 ok; fixer: ok~0.05",
        "planner: $ok~0.2; builder: $ok~0.2; reviewer: $no~0.2 $ok~0.2; fixer: $ok~0.2",
        "planner: !ok; builder: bad~0.05 ok; reviewer: no no~0.05 ok",
        "builder: ask~0.05 ok; reviewer: ok~0.05",
    ),
    places=HANDOFF,
    results="agent-returned",
    given_up=ev.DecisionMade(decision="abort"),
    answers={"ask": ev.Answered(answer="jwt")},
    words=re.compile(AFFIXED.format("ok|no|ask|note|bad|fatal|silent|")),
    answer=output,
    begun=lambda facts: ev.HandoffsStarted(**facts, limits=Limits(base_seconds=0.1)),
)
