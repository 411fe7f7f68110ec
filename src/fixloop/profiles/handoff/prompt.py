"""What an agent of a handoff workflow is asked for one run, as it reads it (D32, D41, D43, D54, U15)."""

import json
import re
from collections.abc import Iterator
from typing import Final

from fixloop.profiles.handoff.files import message_document
from fixloop.profiles.handoff.records import Message
from fixloop.profiles.handoff.returns import STATUSES
from fixloop.profiles.handoff.state import Agent, Handoffs

MOST_MADE: Final = 10
"""Runs whose files a request names, the latest."""
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


def prompt(state: Handoffs, name: str) -> str:
    """
    The request for the agent's present run.

    Raises:
        RefusedError: it takes no part.
    """
    agent = state.agent(name)
    wanted = [f"## The request\n\n{state.request}"] if state.request and name == "planner" else []
    work = _WORK[name].format(spec=state.spec or _spec_path(state))
    parts = [f"# {name}: {state.name}", work, *wanted, *_asked(state, agent), _reading(state)]
    parts.append(_answering(name))
    return "\n\n".join(parts) + "\n"


def _asked(state: Handoffs, agent: Agent) -> Iterator[str]:
    handoff = state.message(agent.handoff) if agent.handoff else state.pending_for(agent.name)
    if handoff is not None:
        yield _handoff(handoff)
    if agent.answer:
        yield f"## The answer to your question\n\n{agent.answer}"
    failures = [
        event.detail for event in state.events if (event.event, event.agent) == ("error_occurred", agent.name)
    ]
    if agent.attempt > 1 and failures:
        yield f"## Your last attempt failed\n\n{' '.join(failures[-1].split())}"


def _handoff(message: Message) -> str:
    """As the named file has it, indented."""
    text = json.dumps(message_document(message), indent=2, ensure_ascii=False)
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return f"## The handoff from {message.sender}\n\n{indented}"


def _reading(state: Handoffs) -> str:
    spec = f"\n- `{state.spec}`: the specification" if state.spec else ""
    made = "".join(
        f"\n- made by {each.agent} in run {each.run}: {each.line}" for each in state.made[-MOST_MADE:]
    )
    return (
        f"## What to read\n\nIteration {state.iteration} of {state.max_iterations}.\n\n"
        "- `.claude/state.json`: the shared state; a field of your own that you write there is kept\n"
        f"- `.claude/handoffs/`: all handoffs{spec}{made}"
    )


def _spec_path(state: Handoffs) -> str:
    """`specs/{YYYYMMDD}-{slug}.md` (D22)."""
    slug = "-".join(re.findall("[a-z0-9]+", state.name.lower()))[:MOST_OF_A_SLUG].strip("-")
    return f"specs/{state.started_at:%Y%m%d}-{slug or f'issue-{state.issue}'}.md"


def _answering(name: str) -> str:
    """In words: whoever prints its request has not answered it."""
    return (
        "## How to answer\n\n"
        "What you leave in this directory is taken as it stands; no commit is needed. "
        "End with one JSON object of these keys:\n\n"
        f"- `status`: {' or '.join(STATUSES[name])}\n- {_KEYS[name]}\n\n"
        "If a person has to decide something, print a JSON object with `type`: escalation, `reason`, `details`, "
        "`options` (a list) and `context`; with `blocking`: true you are asked again when it is answered. "
        "If you cannot go on, `status` is failed, with a `reason`; `fatal`: true says that trying again is of no use. "
        "If the handoff itself is wrong, `status` is rejected, with a `reason`: a person decides what becomes of it."
    )
