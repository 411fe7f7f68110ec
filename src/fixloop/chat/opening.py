"""A new chat: its number, its contract and its directory (E2, E4, E14)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from fixloop.chat.directory import create
from fixloop.chat.journal import JOURNAL, entry
from fixloop.chat.message import CHAT_NAME, stamp
from fixloop.chat.meta import META, Contract, new_text, read_meta
from fixloop.chat.roles import ChatState, Role
from fixloop.errors import RefusedError, UsageError

MAX_ID = 9999


class Plan(NamedTuple):
    """What the twin wants of a chat."""

    area: str
    slug: str
    title: str
    scope: Sequence[str]
    acceptance: Sequence[str]
    outputs: Sequence[str]
    non_goals: Sequence[str] = ()
    id: str = ""
    """Four digits; empty: the lowest number above all that are used."""
    kind: str = "feat"
    """Of the branch: feat, fix or chore."""


def open_chat(chats: Path, plan: Plan, by: Role, now: datetime) -> Path:
    """Make the chat that `plan` describes below `chats`; its directory."""

    def choose(names: Sequence[str]) -> tuple[str, Mapping[str, str]]:
        number = plan.id
        if not number:
            following = max((int(name[:4]) for name in names if CHAT_NAME.fullmatch(name)), default=0) + 1
            if following > MAX_ID:
                raise RefusedError(f"all numbers up to {MAX_ID} are taken; move closed chats elsewhere")
            number = f"{following:04}"
        return _checked(plan_text(plan._replace(id=number), now), META, names, now)

    _refuse_others(by)
    return create(chats, choose)


def open_with(chats: Path, text: str, file: str, by: Role, now: datetime) -> Path:
    """The same for a contract that the twin wrote itself; `file` is its name in errors."""
    _refuse_others(by)
    return create(chats, lambda names: _checked(text, file, names, now))


def plan_text(plan: Plan, now: datetime) -> str:
    """The meta.yaml of `plan`; the architect begins, so it is the architect's turn."""
    values: dict[str, str | Sequence[str]] = {
        "id": plan.id,
        "slug": plan.slug,
        "area": plan.area,
        "title": plan.title,
        "owner": Role.ARCHITECT,
        "state": ChatState.OPEN,
        "branch": f"{plan.kind}/{plan.area}-{plan.slug}-{plan.id}",
        "created": stamp(now),
        "scope": plan.scope,
        "acceptance": plan.acceptance,
        "outputs": plan.outputs,
    }
    return new_text(values | ({"non_goals": plan.non_goals} if plan.non_goals else {}))


def _refuse_others(by: Role) -> None:
    if by is not Role.TWIN:
        raise RefusedError(f"{by} cannot open a chat; its {META} is written by the twin")


def _checked(text: str, file: str, names: Sequence[str], now: datetime) -> tuple[str, Mapping[str, str]]:
    contract: Contract = read_meta(text, file)
    if contract.meta is None:
        raise UsageError(str(contract.findings[0]))
    name = contract.meta.directory
    same = next((other for other in names if other[:5] == name[:5] and CHAT_NAME.fullmatch(other)), None)
    if same is not None:
        raise RefusedError(f"number {contract.meta.id} is taken by {same}")
    return name, {META: text, JOURNAL: entry("opened", now, by=Role.TWIN)}
