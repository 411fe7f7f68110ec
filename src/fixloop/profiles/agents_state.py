"""The part of a workflow's state that all profiles with named agents share."""

from datetime import datetime

from fixloop.protocol.event import Value
from fixloop.protocol.ticket import Letter


class AgentsState(Value):
    """A workflow whose steps are runs of named agents."""

    profile: str
    """The first field of a snapshot, which identifies its profile."""
    schema_version: int
    """Always in a snapshot, to show whether a newer fixloop wrote it."""
    workflow: str
    project: str = ""
    issue: int
    name: str
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    outcome: str = ""
    iteration: int = 1
    max_iterations: int = 5
    letters: tuple[Letter, ...] = ()
    """Letters to outside agents that no mailbox has taken yet."""
    posted: int = 0
    """The number of letters so far."""
    remaining_issues: tuple[str, ...] = ()
    """Issues that were known and not fixed at its end or escalation (G11)."""
    paused_clock: float | None = None
    queue: str = ""
    configuration: str = ""
    """Digest of the frozen configuration, an artifact."""
    snapshot: str = ""
    """The snapshot's description as JSON: opaque here, used by the workers."""
    tip: str = ""
    """The commit that holds the work so far."""
    push: bool = False
    """Push its branch before a successful end."""
    notify: bool = False
    """A command notifies a person of open questions."""
    closing: str = ""
    """The outcome of its end, once its branch is pushed or refused."""
    pushed: str = ""
    """The name of the pushed branch; empty: none."""
    push_error: str = ""
    lines: int = 0
    sequence: int = 0
    rebuilt: int = 0
    """How often it was rebuilt from its named files (K23); each time its versions start again."""
