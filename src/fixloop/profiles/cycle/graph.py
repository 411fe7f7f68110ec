"""Who waits for whom, as data (C37-C44, K17)."""

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.profiles.cycle.workers import KEYS, WORKERS, worker

Graph = Mapping[str, Sequence[str]]
"""What each agent depends on."""

DEFAULT_GRAPH: Final[Graph] = {key: entry.depends_on for key, entry in WORKERS.items()}


class Order(NamedTuple):
    """Who waits for whom, for those who read it from a file."""

    default: Graph
    check: Callable[[Graph], None]


def check_graph(graph: Graph) -> None:
    """
    Refuse a graph that no cycle can follow (C44).

    Raises:
        UsageError: one of the four is missing, somebody unknown is waited for, a document has two writers, or the
            agents wait for each other in a circle.
    """
    missing = [key for key in KEYS if key not in graph]
    if missing:
        raise UsageError(
            f"the dependency graph has no {', '.join(missing)}; all of {', '.join(KEYS)} take part"
        )
    for key, needed in graph.items():
        for other in needed:
            if other not in graph:
                raise UsageError(f"{key} depends on {other}, which is no agent of this cycle")
    _check_writers(graph)
    check_order(graph, "agents")


def check_order(graph: Graph, what: str) -> None:
    """
    Refuse a circle, naming it.

    Raises:
        UsageError: with the circle's members in order.
    """
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise UsageError(f"these {what} wait for each other: {circle}; take one dependency out") from None


def _check_writers(graph: Graph) -> None:
    owners: dict[str, str] = {}
    for key in graph:
        for field in worker(key).fields:
            if owners.setdefault(field, key) != key:
                raise UsageError(
                    f"{key} and {owners[field]} would both write {field}; give the agent another name"
                )


ORDER: Final = Order(DEFAULT_GRAPH, check_graph)
