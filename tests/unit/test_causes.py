"""Every event of cycles and handoffs is caused by a worker, a command or the engine, not by tests alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixloop.profiles.cycle import events as cycle_events
from fixloop.profiles.handoff import events as handoff_events

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/fixloop", "workers")
LEFT_OUT = ("protocol", "testing")
"""The decisions, and the modules that play users."""
CONNECT = (
    *("engine", "intake", "handlers", "presenter", "report", "log"),
    *("files", "agent_output", "lock_commands"),
)
"""The modules of a profile that tie what follows from its events to the engine and the commands."""
MADE_BY = {"HandoffRejected": "rejection", "AgentEscalated": "escalation"}
"""Functions of the decisions that make an event for its causes."""
EVENTS = {"cycle": cycle_events.KINDS, "handoff": handoff_events.KINDS}


def sources(profile: str) -> Iterator[Path]:
    """What may cause events of a profile: everything but the other profile."""
    other = {"cycle": "handoff", "handoff": "cycle"}[profile]
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            first, *rest = path.relative_to(ROOT / folder).parts
            decides = first == "profiles" and rest[0] == profile and path.stem not in CONNECT
            if (
                first not in LEFT_OUT
                and not decides
                and other not in (*rest[:1], path.stem.removesuffix("_steps"))
            ):
                yield path


def words(text: str) -> Iterator[str]:
    """The names that are used, imports left out, and the texts."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            yield node.id
        if isinstance(node, ast.Attribute):
            yield node.attr
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("profile", EVENTS)
def test_every_event_of_a_profile_is_caused_by_something_outside_its_decisions(profile: str) -> None:
    # What only ever comes as a refusal is recognised by its kind.
    nobodys = {
        (name := event.__name__): {name, kind, MADE_BY.get(name, name)}
        for kind, event in EVENTS[profile].items()
    }

    for path in sources(profile):
        text = path.read_text(encoding="utf-8")
        # Taking every file apart takes half a second.
        if any(word in text for wanted in nobodys.values() for word in wanted):
            used = set(words(text))
            nobodys = {name: wanted for name, wanted in nobodys.items() if used.isdisjoint(wanted)}

    assert nobodys == {}
