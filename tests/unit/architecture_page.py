"""The generated parts of docs/architecture.md: `python -m tests.unit.architecture_page`."""

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Final

from fixloop.protocol.ids import ticket_id
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from tests.house import ROOT, Graph, reached, rooms
from workflows.validation import following

PAGE: Final = ROOT / "docs" / "architecture.md"
REGENERATE: Final = "python -m tests.unit.architecture_page"
FIXERS: Final = {"command": "a command fixes", "agent": "a declared agent fixes", "outside": "a person fixes"}


def page(text: str) -> str:
    """The page with its generated parts up to date."""
    for name, made in (("canvas", canvas()), ("rooms", floors())):
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        text = f"{before}<!-- {name} -->\n{made}<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return text


def canvas() -> str:
    """The Celery chain of one round of the validation loop, for each kind of fixer."""
    lines = ["```mermaid", "flowchart LR"]
    for kind, told in FIXERS.items():
        state = State.model_construct(
            fixer="command" if kind == "command" else "outside", agent="", epoch=0, queue=""
        )
        state = state.model_copy(update={"agent": "coder"} if kind == "agent" else {})
        steps = ["validate", *(each.step for each in following(state, _first()))]
        lines.append(f'    subgraph {kind}["{told}"]')
        lines += [f"        {kind}_{a}[{a}] --> {kind}_{b}[{b}]" for a, b in pairwise(steps)]
        lines.append("    end")
    return "\n".join([*lines, "```\n"])


def _first() -> Ticket:
    name = ticket_id("0a1b2c3d-7-1", "unit-test", "validate", 1, 1, 0)
    fields = {
        "workflow": "0a1b2c3d-7-1",
        "specialist": "unit-test",
        "step": "validate",
        "iteration": 1,
        "attempt": 1,
    }
    return Ticket.model_validate({"id": name, "queue": "fixloop.unit-test", "priority": 3, **fields})


def floors() -> str:
    """The rooms of the code from the ground up, with the arrows that no other arrows imply, and what each is for."""
    graph = rooms()
    lines = ["```mermaid", "flowchart BT"]
    lines += [f"    {_name(a)} --> {_name(b)}" for a in sorted(graph) for b in sorted(_direct(graph, a))]
    rows = [f"| `{_name(room)}` | {floor} | {_purpose(room)} |" for floor, room in sorted(_by_floor(graph))]
    return "\n".join([*lines, "```", "", "| room | floor | what |", "|---|--:|---|", *rows, ""])


def _direct(graph: Graph, room: str) -> set[str]:
    return {b for b in graph[room] if not any(b in reached(graph, other) for other in graph[room] - {b})}


def _by_floor(graph: Graph) -> Iterator[tuple[int, str]]:
    floor: dict[str, int] = {}
    while len(floor) < len(graph):
        for room, below in graph.items():
            if room not in floor and below <= floor.keys():
                floor[room] = 1 + max((floor[each] for each in below), default=0)
    return ((number, room) for room, number in floor.items())


def _name(room: str) -> str:
    return room.removeprefix("fixloop.")


def _purpose(room: str) -> str:
    return (import_module(room).__doc__ or "").strip().splitlines()[0]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
