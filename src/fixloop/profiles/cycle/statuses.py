"""The status vocabularies of a cycle, one for each kind of object (C33, C46, G22, K19, U10, U11)."""

from enum import StrEnum
from typing import Final


class CycleStatus(StrEnum):
    """Where a cycle stands (U10); `failed` is its end without success."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        return self in _FINAL


_FINAL: Final = (CycleStatus.COMPLETED, CycleStatus.FAILED)


class AgentStatus(StrEnum):
    """Where an agent stands; `waiting` is blocked, or between a failing validation and its re-run (G22)."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class ResultStatus(StrEnum):
    """What a PHASE_RESULT says of its run (C33); `partial` keeps dependants blocked (G27)."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"


class BlockerStatus(StrEnum):
    """What became of a blocker (C28, U11)."""

    OPEN = "open"
    RESOLVED = "resolved"
    WORKAROUND = "workaround"


class DecisionStatus(StrEnum):
    """What became of a question that had to be decided (U11)."""

    PENDING = "pending"
    MADE = "made"
    IMPLEMENTED = "implemented"


class TaskStatus(StrEnum):
    """What became of a task of the plan (U11)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"
