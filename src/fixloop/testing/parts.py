"""What scripted agents of a cycle and of handoffs do: the feature's name, a clause for each agent, a word for each run.

The last word goes on for ever; an agent without a clause always says `ok`:

    cd: unclear ok; vas: no ok         CD's first run finds an unclear requirement, VAS' first one a failing test
    reviewer: no ok                    the first review finds two issues, the second approves
    ra: !ok                            the first attempt of the first run raises
    ra: #ok                            the first run kills its own process once; `#` kills it always
    ra: ok~2                           the first run takes 2 seconds, or until it is cancelled
    ra: $ok~2                          the same, as a command of its own that runs under guard

Of a cycle: `ok`; `unclear`, `plan`, `stuck` end partial with an issue for RA, for EP, for a person; `no` ends failed;
`bad` reports nothing. Of handoffs: `ok`; `no` finds two issues; `ask` and `note` ask a person, who is waited for or
not; `bad` returns nothing; `fatal` says that nothing is of use any more. `silent` never answers.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fixloop.errors import UsageError
from fixloop.protocol.cycle.events import Written
from fixloop.protocol.cycle.plan import PlanTask
from fixloop.protocol.cycle.workers import worker
from fixloop.protocol.ticket import Ticket
from fixloop.statefiles.agent_output import Writings
from fixloop.testing.script import AFFIXED, Word, worded

_WORDS: Final = {
    "cycle": re.compile(AFFIXED.format("ok|unclear|plan|stuck|no|bad|silent|")),
    "handoff": re.compile(AFFIXED.format("ok|no|ask|note|bad|fatal|silent|")),
}
_ISSUES: Final = {
    "unclear": "FR-003: OAuth optional vs required?",
    "plan": "TASK-001: the plan names no file",
    "stuck": "the licence server is down",
    "no": "login fails",
}
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


def part_of(name: str, profile: str, agent: str, run: int) -> Word:
    """
    What an agent does in its `run`-th run, counted from 1.

    Raises:
        UsageError: a word of the script means nothing in this profile.
    """
    for clause in name.split(";"):
        target, _, words = clause.rpartition(":")
        if target.strip().lower() == agent and words.split():
            said = words.split()
            return _word(said[min(run, len(said)) - 1], profile)
    return Word("ok")


def _word(text: str, profile: str) -> Word:
    match = _WORDS[profile].fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is no word of a script for an agent of a {profile}; see fixloop.testing.parts"
        )
    return worded(match, "ok")


def writings_of(store: Any, ticket: Ticket, run: int) -> Writings:
    """What an agent of a cycle leaves in a run: its first document and, where it has one, a plan."""
    names = worker(ticket.specialist).documents
    plan = (PlanTask(id="TASK-001", description="log in"),) if "plan.json" in names else None
    texts = {names[0]: f"{ticket.specialist}, run {run}\n"}
    if plan is not None:
        texts["plan.json"] = json.dumps({"tasks": [task.model_dump(mode="json") for task in plan]})
    documents = tuple(
        Written(name=name, digest=store.put_artifact(ticket.workflow, text.encode()))
        for name, text in texts.items()
    )
    return Writings(documents, plan=plan)


def answer_of(word: Word, profile: str, agent: str) -> str:
    """What a command that does this would print."""
    if word.what == "bad":
        return "I am done.\n"
    return _phase_result(word.what, agent) if profile == "cycle" else _returned(word.what, agent)


def _phase_result(what: str, agent: str) -> str:
    status = {"ok": "success", "no": "failed"}.get(what, "partial")
    issues = json.dumps([_ISSUES[what]] if what in _ISSUES else [])
    return (
        f"Working.\nPHASE_RESULT:\n- phase: {agent}\n- status: {status}\n- files_written: []\n"
        f"- summary: scripted to {what}\n- issues: {issues}\n"
    )


def _returned(what: str, agent: str) -> str:
    result: Mapping[str, object] = _RETURNS[agent]
    if what == "no":
        result = {"status": "needs_fixes", "issues": [_ISSUE, {**_ISSUE, "id": "ISS-002"}]}
    if what == "fatal":
        result = {"status": "failed", "reason": "scripted to be fatal", "fatal": True}
    asked = {**_QUESTION, "blocking": what == "ask"}
    lines = [asked] if what in ("ask", "note") else []
    return "".join(f"{json.dumps(line)}\n" for line in [*lines, result])
