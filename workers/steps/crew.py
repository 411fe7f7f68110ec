"""Who does the work of a step: the specialists' checks and the fixer, behind one small interface.

The real crew runs commands in workspaces. `FIXLOOP_CREW=module:factory` names another, as the benchmark and
the scripted agents of `fixloop.testing` do.
"""

import importlib
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol, cast

from fixloop.protocol.events import AnswerRejected, BlockerSignalled, FixCompleted, FixFailed, RunFinished
from fixloop.protocol.state import State
from fixloop.statefiles.agent_run import Brought, Played
from workers.steps.step import Step

_GRACE_SECONDS: Final = 60.0
_NO_LIMIT_SECONDS: Final = 24 * 3600.0


class PutOff(Exception):
    """The work is done elsewhere: nobody holds the ticket until that has come to something (bridging)."""


class Crew(Protocol):
    """Does the work; raises Injured when it was killed, returns None when it was cancelled."""

    acknowledges: bool
    """Whether the start of a fix is committed by itself; scripted fixers finish before anyone could look."""

    def check(self, step: Step) -> RunFinished | None: ...

    def fix(self, step: Step) -> FixCompleted | FixFailed | AnswerRejected | BlockerSignalled | None: ...

    def notify(self, step: Step) -> str: ...

    def play(self, step: Step, snapshot: bytes) -> Played | None:
        """
        Run the agent whose ticket this is, of a cycle or of handoffs, with its workflow's state as it is stored.

        Raises PutOff: a child workflow does the work, and has not ended.
        """

    def bring_onto(self, step: Step, state: Any, base: str, tip: str) -> Brought:
        """What changed from `base` to `tip`, on the commit of `state`. UsageError: others changed the same lines."""

    def push(self, step: Step) -> str:
        """
        Push the verified branch to the repository's URL; its name, empty where there is nothing to push.

        Raises UsageError: it was refused, and would be again.
        """

    def settle(self, step: Step, state: State) -> None:
        """After the commit: what is written outside, such as the branch with the fix, now that it is true."""


def with_grace(limit_seconds: float | None) -> float:
    """The state ends late work by withdrawing its ticket: how long a command may run where it cannot be reached."""
    return (_NO_LIMIT_SECONDS if limit_seconds is None else limit_seconds) + _GRACE_SECONDS


def crew_factory() -> Callable[[], Crew]:
    """What makes a crew; where `FIXLOOP_CREW` names nothing that can be loaded, the error of loading it."""
    name = os.environ.get("FIXLOOP_CREW", "workers.commands.crew:commands")
    module, _, factory = name.partition(":")
    return cast(Callable[[], Crew], getattr(importlib.import_module(module), factory))


@lru_cache(maxsize=1)
def crew() -> Crew:
    """The crew of this process."""
    return crew_factory()()
