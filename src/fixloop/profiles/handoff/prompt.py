"""Builds the request to an agent of a handoff workflow for one run (D32, D41, D43, D54, U15)."""

import re
from typing import Final

from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.returns import STATUSES
from fixloop.profiles.handoff.state import Handoffs
from fixloop.store.contract import Store

MOST_MADE: Final = 10
"""The number of latest runs whose files a request names."""
MOST_OF_A_SLUG: Final = 60

_WORK: Final = {
    "planner": "Write a specification for the request, as the file `{spec}`.",
    "builder": "Build what the specification says, with its tests.",
    "reviewer": "Review the work so far against its specification. Never approve with critical issues.",
    "fixer": "Fix the issues, the critical ones first.",
}
_KEYS: Final = {
    "planner": "`spec`: the path of the specification; `context`: an object with what the builder has to know",
    "builder": "`commit`: what you built, as you call it; `files_changed` and `tests_added`: lists",
    "reviewer": "`issues`, with needs_fixes: a list, each with `id`, `severity`, `file`, `line`, `description`",
    "fixer": "`issues_fixed`: a list of ids; `commits`: a list",
}
_ANSWERING: Final = (
    "## How to answer\n\n"
    "What you leave in this directory is taken as it stands; no commit is needed. "
    "End with one JSON object of these keys:\n\n"
    "- `status`: {statuses}\n- {keys}\n\n"
    "If a person has to decide something, print a JSON object with `type`: escalation, `reason`, `details`, "
    "`options` (a list) and `context`; with `blocking`: true you are asked again when it is answered. "
    "If you cannot go on, `status` is failed, with a `reason`; `fatal`: true says that trying again is of no use. "
    "If the handoff itself is wrong, `status` is rejected, with a `reason`: a person decides what becomes of it."
)
"""In words, without an example, so that an agent that prints its request has not answered it."""


def request(store: Store, snapshot: bytes, agent: str) -> str:
    """The request for an agent's current run; the state in the snapshot is sufficient."""
    return prompt(HANDOFF.load(snapshot), agent)


def prompt(state: Handoffs, name: str) -> str:
    """The request for the agent's current run. RefusedError: it takes no part."""
    agent = state.agent(name)
    slug = "-".join(re.findall("[a-z0-9]+", state.name.lower()))[:MOST_OF_A_SLUG].strip("-")
    spec = state.spec or f"specs/{state.started_at:%Y%m%d}-{slug or f'issue-{state.issue}'}.md"
    parts = [f"# {name}: {state.name}", _WORK[name].format(spec=spec)]
    if state.request and name == "planner":
        parts.append(f"## The request\n\n{state.request}")
    handoff = state.message(agent.handoff) if agent.handoff else state.pending_for(name)
    if handoff is not None:
        indented = "\n".join(f"    {line}" for line in handoff.text.splitlines())
        parts.append(f"## The handoff from {handoff.sender}\n\n{indented}")
    if agent.answer:
        parts.append(f"## The answer to your question\n\n{agent.answer}")
    failures = [e.detail for e in state.events if (e.event, e.agent) == ("error_occurred", name)]
    if agent.attempt > 1 and failures:
        parts.append(f"## Your last attempt failed\n\n{' '.join(failures[-1].split())}")
    parts.append(
        f"## What to read\n\nIteration {state.iteration} of {state.max_iterations}.\n\n"
        "- `.claude/state.json`: the shared state; a field of your own that you write there is kept\n"
        "- `.claude/handoffs/`: all handoffs"
        + (f"\n- `{state.spec}`: the specification" if state.spec else "")
        + "".join(f"\n- made by {m.agent} in run {m.run}: {m.line}" for m in state.made[-MOST_MADE:])
    )
    parts.append(_ANSWERING.format(statuses=" or ".join(STATUSES[name]), keys=_KEYS[name]))
    return "\n\n".join(parts) + "\n"
