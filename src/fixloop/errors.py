"""Every error a caller can meet, by whose turn it is to act, and the exit codes.

    FixloopError
    ├── UsageError            the caller: wrong call, configuration or file      exit 2
    │   ├── RefusedError      the caller: right words, wrong moment or state     exit 2
    │   └── NotVerifiedError  the caller: install what the checks need           exit 3
    ├── InfrastructureError   the operator: Redis, git or a server is away       exit 4
    └── ProtocolError         the developers: two parts of fixloop disagree      exit 1
        ├── NewerVersion      the operator: upgrade this fixloop                 exit 2
        └── Damaged           the operator: repair the workflow                  exit 1

A message says what, with which value, and what to do, in one sentence and without a traceback.
Arguments are positional and plain, so that an error survives pickling through Celery.
"""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    """Every specialist that runs here passed or was skipped by a person; other commands: done."""
    WRONG = 1
    """Aborted or cancelled; commands that examine: something is wrong."""
    USAGE = 2
    WAITS = 3
    """Waits for a decision, for an outside agent's fix without a terminal, or, if not verified, for what is missing."""
    AWAY = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    """The reader of a pipe went away; the code a shell reports."""


class FixloopError(Exception):
    """Something fixloop can explain in one sentence."""

    exit_code: ClassVar[int] = ExitCode.WRONG


class UsageError(FixloopError):
    """The call, the configuration or a file is wrong; the caller can mend it."""

    exit_code: ClassVar[int] = ExitCode.USAGE


class RefusedError(UsageError):
    """The call is understood, but the state does not allow it now."""


class NotVerifiedError(UsageError):
    """There is something to check, and nothing that can check it here."""

    exit_code: ClassVar[int] = ExitCode.WAITS


class InfrastructureError(FixloopError):
    """A server or tool that fixloop stands on is away."""

    exit_code: ClassVar[int] = ExitCode.AWAY


class ProtocolError(FixloopError):
    """Two parts of fixloop disagree; nothing was changed."""


class NewerVersion(ProtocolError):
    """A newer fixloop wrote it; it was left as it is."""

    exit_code: ClassVar[int] = ExitCode.USAGE


class Damaged(ProtocolError):
    """What is stored of one workflow is not what fixloop writes; all others are as they were."""

    def __init__(self, workflow: str, detail: str) -> None:
        """`detail` says what is wrong, as a clause; `workflow` is empty where not even the id can be read."""
        super().__init__(workflow, detail)
        self.workflow = workflow
        self.detail = detail

    def __str__(self) -> str:
        if not self.workflow:
            return f"a workflow is damaged: {self.detail}; `fixloop audit verify` names it"
        return f"workflow {self.workflow} is damaged: {self.detail}; `fixloop repair {self.workflow}` sets it aside"
