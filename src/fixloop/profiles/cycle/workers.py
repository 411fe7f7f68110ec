"""The agents of a cycle, their documents, logs and fields, and their dependencies (C1, C12, C13, C19, C37-C44, C61)."""

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from fixloop.errors import UsageError

_CHANGES: Final = "changes.log"


class Worker(NamedTuple):
    key: str
    role: str
    documents: tuple[str, ...]
    """Rewritten each iteration, archived before (C14)."""
    fields: tuple[str, ...]
    """State fields that no other agent may set (C61)."""
    depends_on: tuple[str, ...] = ()
    """In the default graph (C38)."""
    logs: tuple[str, ...] = (_CHANGES,)
    """Appended to, never rewritten (C15)."""

    @property
    def name(self) -> str:
        """The name in the timeline: `RA`."""
        return self.key.upper()


WORKERS: Final = {
    entry.key: entry
    for entry in (
        Worker("ra", "Requirements", ("requirements.md", "edge-cases.md"), ("requirements", "edge_cases")),
        Worker(
            "ep",
            "Exploration and planning",
            ("exploration.md", "architecture.md", "plan.json"),
            ("exploration", "plan"),
            ("ra",),
        ),
        Worker(
            "cd",
            "Development",
            ("implementation.md", "issues.md"),
            ("changes", "implementation"),
            ("ep",),
            (_CHANGES, "debug-log.ndjson"),
        ),
        Worker(
            "vas",
            "Validation",
            ("validation.md", "summary.md", "test-results.json"),
            ("test_results", "summary"),
            ("cd",),
        ),
    )
}
KEYS: Final = tuple(WORKERS)
_OWNERS: Final = {field: entry.key for entry in WORKERS.values() for field in entry.fields}


def worker(key: str) -> Worker:
    """The agent with this key; one that the seed does not name writes a document and a field named after it (K17)."""
    return WORKERS.get(key) or Worker(key, key, (f"{key}.md",), (key,))


def field_owner(field: str) -> str | None:
    """The key of the agent that owns a state field, if any."""
    return _OWNERS.get(field)


Graph = Mapping[str, Sequence[str]]
"""The dependencies of each agent."""

DEFAULT_GRAPH: Final[Graph] = {key: entry.depends_on for key, entry in WORKERS.items()}


class Order(NamedTuple):
    """The default dependencies, and the check of those in a configuration file."""

    default: Graph
    check: Callable[[Graph], None]


def check_graph(graph: Graph) -> None:
    """Refuse (UsageError) an impossible graph (C44): one of the four agents is missing, a dependency is unknown, a
    document has two writers, or the dependencies form a circle."""
    missing = [key for key in KEYS if key not in graph]
    if missing:
        told = f"the dependency graph has no {', '.join(missing)}; all of {', '.join(KEYS)} take part"
        raise UsageError(told)
    writers: dict[str, str] = {}
    for key, needed in graph.items():
        if unknown := [other for other in needed if other not in graph]:
            raise UsageError(f"{key} depends on {unknown[0]}, which is no agent of this cycle")
    for key in graph:
        for field in worker(key).fields:
            if writers.setdefault(field, key) != key:
                told = f"{key} and {writers[field]} would both write {field}; give the agent another name"
                raise UsageError(told)
    check_order(graph, "agents")


def check_order(graph: Graph, what: str) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise UsageError(f"these {what} wait for each other: {circle}; take one dependency out") from None


ORDER: Final = Order(DEFAULT_GRAPH, check_graph)
