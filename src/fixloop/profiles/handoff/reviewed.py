"""What a write to critical state changes when a person has let it through (D46, G10)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fixloop.profiles.handoff.records import HeldWrite
from fixloop.profiles.handoff.routes import Kind
from fixloop.profiles.handoff.state import Handoffs


def applied(state: Handoffs, held: HeldWrite) -> dict[str, Any]:
    """
    The fields of the state that it changes, as they are then.

    Empty where the value cannot be what the field is, or the field follows from what happened: the last handoff.
    """
    top, _, below = held.field.partition(".")
    change = _CHANGES.get(top)
    return change(state, below, held.value) if change is not None else {}


def _iteration(state: Handoffs, below: str, value: Any) -> dict[str, Any]:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return {"iteration": value} if is_number and value >= 1 and not below else {}


def _workflow(state: Handoffs, below: str, value: Any) -> dict[str, Any]:
    wanted = {below: value} if below else value
    if not isinstance(wanted, Mapping):
        return {}
    changed: dict[str, Any] = {}
    spec, kind = wanted.get("spec"), wanted.get("type")
    if isinstance(spec, str) and not spec.startswith("/") and ".." not in spec.split("/"):
        changed["spec"] = spec
    if isinstance(kind, str) and kind in list(Kind):
        changed["kind"] = Kind(kind)
    return {name: new for name, new in changed.items() if new != getattr(state, name)}


def _locks(state: Handoffs, below: str, value: Any) -> dict[str, Any]:
    """Locks that are left out are given back, whoever has them; nobody gets one by writing it."""
    if below:
        gone = {below} if value is None else set()
    else:
        gone = set(state.locks) - set(value) if isinstance(value, Mapping) else set()
    kept = {name: lock for name, lock in state.locks.items() if name not in gone}
    return {"locks": kept} if kept != state.locks else {}


_CHANGES: Final[Mapping[str, Callable[[Handoffs, str, Any], dict[str, Any]]]] = {
    "iteration": _iteration,
    "current_workflow": _workflow,
    "locks": _locks,
}
