"""Who does the work of a step: the specialists' checks and the fixer, behind one small interface.

The real crew runs commands in workspaces. `FIXLOOP_CREW=module:factory` names another, as the benchmark and
the scripted agents of `fixloop.testing` do.
"""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, cast

from fixloop.engine.engine import ProfileHolding
from fixloop.engine.profile import AnyEvent
from fixloop.machine.guard import GuardedResult
from fixloop.outside.mailbox import Letter
from fixloop.protocol.events import AnswerRejected, BlockerSignalled, FixCompleted, FixFailed, RunFinished
from fixloop.protocol.state import State
from fixloop.statefiles.agent_run import Brought, Played
from fixloop.store.contract import Store

_GRACE_SECONDS: Final = 60.0
_NO_LIMIT_SECONDS: Final = 24 * 3600.0


class Injured(Exception):
    """The work was killed from outside; nothing is known of its result (K40)."""


class PutOff(Exception):
    """The work is done elsewhere: nobody holds the ticket until that has come to something (bridging)."""


class Work(Protocol):
    """One claimed step as its crew sees it."""

    @property
    def holding(self) -> ProfileHolding[Any]: ...

    @property
    def store(self) -> Store: ...

    def cancelled(self) -> bool:
        """True as soon as the ticket was withdrawn or lost: stop, the result would be refused."""

    def tell(self, event: AnyEvent, what: str) -> None:
        """Commit what happens on the way, once for each `what`; where it is refused, the work is withdrawn."""

    def post(self, agent: str, letter: Letter) -> None:
        """Put a letter into an agent's mailbox, as urgent as the ticket. Raises InfrastructureError: it is away."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        unheard_seconds: float,
        stdin: bytes = b"",
        apart: bool = False,
    ) -> GuardedResult | None:
        """
        Run a command under guard, see `run_guarded`; None when the ticket was withdrawn meanwhile.

        Its limit is the state's to enforce, by the engine's clock. Only where the state could not be heard for
        `unheard_seconds` is it ended by that: it would be of no use to anybody.

        Raises Injured: somebody else killed it, and nothing is known of its result (K40).
        """


class Crew(Protocol):
    """Does the work; raises Injured when it was killed, returns None when it was cancelled."""

    acknowledges: bool
    """Whether the start of a fix is committed by itself; scripted fixers finish before anyone could look."""

    def check(self, work: Work) -> RunFinished | None: ...

    def fix(self, work: Work) -> FixCompleted | FixFailed | AnswerRejected | BlockerSignalled | None: ...

    def notify(self, work: Work) -> str: ...

    def play(self, work: Work, snapshot: bytes) -> Played | None:
        """
        Run the agent whose ticket this is, of a cycle or of handoffs, with its workflow's state as it is stored.

        Raises PutOff: a child workflow does the work, and has not ended.
        """

    def bring_onto(self, work: Work, state: Any, base: str, tip: str) -> Brought:
        """What changed from `base` to `tip`, on the commit of `state`. UsageError: others changed the same lines."""

    def push(self, work: Work) -> str:
        """
        Push the verified branch to the repository's URL; its name, empty where there is nothing to push.

        Raises UsageError: it was refused, and would be again.
        """

    def settle(self, work: Work, state: State) -> None:
        """After the commit: what is written outside, such as the branch with the fix, now that it is true."""


def with_grace(limit_seconds: float | None) -> float:
    """The state ends late work by withdrawing its ticket: how long a command may run where it cannot be reached."""
    return (_NO_LIMIT_SECONDS if limit_seconds is None else limit_seconds) + _GRACE_SECONDS


@lru_cache(maxsize=1)
def crew() -> Crew:
    """The crew of this process."""
    name = os.environ.get("FIXLOOP_CREW", "workers.commands.crew:commands")
    module, _, factory = name.partition(":")
    return cast(Callable[[], Crew], getattr(importlib.import_module(module), factory))()
