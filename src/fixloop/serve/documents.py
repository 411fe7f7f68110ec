"""The shapes of what the API answers, for its description. The documents themselves are the commands' own."""

from typing import Any, get_type_hints

from pydantic import BaseModel, create_model

from fixloop.commands.worker import KnownWorker
from fixloop.serve.times import AgentSeen
from fixloop.serve.tokens import Token
from fixloop.store.records import QueueLoad


class _Document(BaseModel, extra="allow"):
    pass


def _listing(name: str, **lists: tuple[str, str, type]) -> type[BaseModel]:
    """A document with lists of named tuples: for each, what one of them is called, what it is, and its type."""
    fields: dict[str, Any] = {}
    for field, (one, told, shape) in lists.items():
        parts: dict[str, Any] = {part: (hint, ...) for part, hint in get_type_hints(shape).items()}
        fields[field] = (list[create_model(one, __base__=_Document, __doc__=told, **parts)], ...)  # type: ignore[misc]
    made: type[BaseModel] = create_model(name, __base__=_Document, **fields)
    return made


class ProblemDocument(_Document):
    """A refusal, as RFC 9457 has it; `type` is the address of a page that says what to do."""

    type: str
    title: str
    status: int
    detail: str


class WorkflowRow(_Document):
    """A workflow in a list."""

    workflow_id: str
    issue: int
    name: str | None
    project: str | None
    profile: str
    status: str | None
    verdict: str | None
    outcome: str | None
    """None while it is live."""
    owner: str | None
    """Whose turn it is: `engine`, `agent` or `person`."""
    phase: str | None
    specialist: str | None
    paused: bool
    iteration: int
    max_iterations: int
    updated_at: str
    damaged: str | None
    """What is wrong with what is stored of it; None: nothing."""


class WorkflowPage(_Document):
    workflows: list[WorkflowRow]
    next: str
    """The cursor of the page after this one; empty: there is none."""


class Workflow(_Document):
    """What `fixloop status ISSUE --json` prints; more of it depends on the profile."""

    workflow_id: str
    issue: int
    name: str
    profile: str
    status: str
    paused: bool
    verdict: str | None
    outcome: str | None


class Choice(_Document):
    """One way to answer."""

    command: str
    does: str
    because: str
    """Why it is recommended; empty for all others."""
    answer: str
    """What `decision` is for it; empty: it is a command and no decision."""


class InboxItem(_Document):
    """Something that waits for somebody outside."""

    workflow_id: str
    issue: int
    name: str
    waits_for: str
    """`decision`, `answer`, `manual-fix`, `fix`, `work` or `continue`."""
    can_decide: bool
    """Whether this caller may answer it here."""
    escalation_id: str | None
    reason: str
    detail: str
    since: str
    choices: list[Choice] = []


class Notice(_Document):
    """Something to look after that is no workflow's."""

    text: str
    since: str
    command: str
    """What does something about it."""


class Inbox(_Document):
    items: list[InboxItem]
    next: str
    """The cursor of the page after this one; empty: there is none."""
    count: int
    """How many there are in all."""
    notices: list[Notice]


class Decided(_Document):
    """A decision as the history has it."""

    workflow_id: str
    decision: str
    by: str
    """Who, and how they are known."""
    at: str
    version: int
    """That its commit made."""


Queues = _listing("Queues", queues=("Queue", "A queue of steps.", QueueLoad))
Workers = _listing(
    "Workers",
    workers=("Worker", "A worker of the server's host.", KnownWorker),
    agents=("Agent", "Who makes fixes.", AgentSeen),
)
Tokens = _listing("Tokens", tokens=("Token", "What is known of a token.", Token))


class NewToken(_Document):
    token: str


class Log(_Document):
    """What `fixloop log --all --json` prints: every message, and every entry of the history."""

    workflow_id: str
    issue: int
    name: str
    entries: list[dict[str, Any]]
    history: list[dict[str, Any]]
