"""Where in a step's life each kind of injury may be done, for each profile."""

from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.testing.plan import COMMAND, Boundary, Injury, Place, Places

_B = Boundary
_HOLDING: Final = (_B.BEFORE_CLAIM, _B.AFTER_CLAIM, _B.BEFORE_COMMIT, _B.AFTER_COMMIT)
_HINTING: Final = (_B.BEFORE_HINT, _B.AFTER_HINT)


class _Steps(NamedTuple):
    """
    Which process does what for a profile.

    The process that finishes a ticket sends the hint of the next. The first ticket of a workflow is hinted by its
    caller, who is not injured.
    """

    crew: tuple[str, ...]
    """Those whose work is an agent's or a tool's, in a work process."""
    control: tuple[str, ...]
    """Those that control does."""
    hinted_by_work: tuple[str, ...]
    hinted_by_control: tuple[str, ...]


def _of_workers(steps: _Steps) -> Places:
    amid = _at(steps.crew, _B.MID_WORK)
    worked = (*_at(steps.crew, *_HOLDING, _B.MID_WORK), *_at(steps.hinted_by_work, *_HINTING))
    controlled = (*_at(steps.control, *_HOLDING), *_at(steps.hinted_by_control, *_HINTING))
    sent = _at((*steps.hinted_by_work, *steps.hinted_by_control), _B.BEFORE_HINT)
    every = (*steps.crew, *steps.control)
    particular: dict[Injury, tuple[Place, ...]] = {
        Injury.KILL_WORKER: worked,
        Injury.KILL_CONTROL: controlled,
        Injury.STOP_WORKER: _at(steps.crew, *_HOLDING, _B.MID_WORK),
        Injury.BLIP_REDIS: amid,
        Injury.DOUBLE_MESSAGES: sent,
        Injury.LOSE_SENT: sent,
        Injury.LOSE_TAKEN: sent,
        Injury.LOSE_UNACKED: sent,
        Injury.KILL_COMMAND: ((COMMAND, _B.MID_WORK),),
        Injury.NO_ROOM: ((COMMAND, _B.MID_WORK),),
        Injury.LOSE_CLAIM_REPLY: _at(every, _B.AFTER_CLAIM),
        Injury.LOSE_COMMIT_REPLY: _at(every, _B.AFTER_COMMIT),
    }
    anywhere = dict.fromkeys(_ANYWHERE, (*worked, *controlled))
    return MappingProxyType(anywhere | particular)


def _at(steps: tuple[str, ...], *boundaries: Boundary) -> tuple[Place, ...]:
    return tuple((step, boundary) for step in steps for boundary in boundaries)


_ANYWHERE: Final = (
    *(Injury.KILL_SWEEPER, Injury.STOP_SWEEPER, Injury.RIVAL_SWEEPERS, Injury.KILL_HOST),
    *(Injury.RESTART_REDIS, Injury.FREEZE_REDIS, Injury.FULL_REDIS),
    *(Injury.WRONG_CLOCK, Injury.CUT_NETWORK, Injury.SILENT_NETWORK),
)
"""What may be done to workers at any boundary."""

VALIDATION: Final = _of_workers(
    _Steps(
        crew=("validate", "fix", "recheck", "confirm"),
        control=("report",),
        hinted_by_work=("report", "recheck"),
        hinted_by_control=("fix",),
    )
)

CYCLE: Final = _of_workers(
    _Steps(crew=("work",), control=("finish",), hinted_by_work=("work", "finish"), hinted_by_control=())
)
HANDOFF: Final = _of_workers(
    _Steps(crew=("work",), control=(), hinted_by_work=("work",), hinted_by_control=())
)

_TURNS: Final = ("answer", "close")
_WRITING: Final = (_B.BEFORE_COMMIT, _B.AFTER_COMMIT, _B.BEFORE_HINT, _B.AFTER_HINT)
_EVERYWHERE: Final = _at(_TURNS, _B.AFTER_CLAIM, _B.MID_WORK, *_WRITING)

CHAT: Final[Places] = MappingProxyType(
    {
        Injury.KILL_RUNNER: _EVERYWHERE,
        Injury.KILL_RUNNERS: _EVERYWHERE,
        Injury.KILL_AGENT: _at(_TURNS, _B.MID_WORK),
        Injury.STOP_RUNNER: _at(("answer",), _B.MID_WORK, *_WRITING),
        Injury.RIVAL_RUNNERS: _at(("answer",), _B.AFTER_CLAIM, _B.MID_WORK),
        Injury.FULL_DISK: _at(_TURNS, _B.AFTER_CLAIM, _B.MID_WORK),
        Injury.WRONG_CLOCK: _at(("answer",), _B.AFTER_CLAIM),
    }
)
"""
Of the turns of a chat.

What a chat's files say of a turn: its role has read (claim), the message is begun under another name, and linked to its
own (commit); the journal has it, and meta.yaml names the next owner (hint).
"""
