"""The shapes of what the API answers, for its description. The documents themselves are the commands' own."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow")


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


class Queue(_Document):
    """A queue of steps."""

    queue: str
    ready: int
    claimed: int
    oldest_seconds: float
    """How long the oldest that is ready has waited."""


class Queues(_Document):
    queues: list[Queue]


class Worker(_Document):
    """A worker of the server's host."""

    pid: int
    queue: str
    """The workflow that it serves alone; empty: all."""
    problems: list[str]
    well: str


class Agent(_Document):
    """Who makes fixes."""

    name: str
    at: str
    """When they were heard of last."""
    workflow: str


class Workers(_Document):
    workers: list[Worker]
    agents: list[Agent]


class Token(_Document):
    """What is known of a token."""

    id: str
    name: str
    scopes: list[str]
    projects: list[str]
    created: str
    expires: str
    used: str
    """When last; empty: never."""


class Tokens(_Document):
    tokens: list[Token]


class NewToken(_Document):
    token: str


class Log(_Document):
    """What `fixloop log --all --json` prints: every message, and every entry of the history."""

    workflow_id: str
    issue: int
    name: str
    entries: list[dict[str, Any]]
    history: list[dict[str, Any]]
