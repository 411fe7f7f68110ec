"""What an agent of a handoff workflow is asked for one run, as it reads it (D32, D41, D43, D54, U15)."""

import json
from collections.abc import Iterator
from typing import Final

from fixloop.protocol.handoff.files import message_document
from fixloop.protocol.handoff.records import Message
from fixloop.protocol.handoff.returns import STATUSES
from fixloop.protocol.handoff.state import Agent, Handoffs

__all__ = ["prompt"]

_WORK: Final = {
    "planner": "Write a specification for the request, as a file such as `specs/20260122-user-auth.md`.",
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
    parts = [f"# {name}: {state.name}", _WORK[name], *wanted, *_asked(state, agent), _reading(state)]
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
    return (
        f"## What to read\n\nIteration {state.iteration} of {state.max_iterations}.\n\n"
        "- `.claude/state.json`: the shared state; a field of your own that you write there is kept\n"
        f"- `.claude/handoffs/`: all handoffs{spec}"
    )


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
