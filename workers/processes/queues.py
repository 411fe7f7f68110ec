"""Which queues a worker serves, and which of its processes each of them."""

from collections.abc import Sequence

from fixloop.machine.processes import WORK_QUEUES


def queues_for(own: str, chosen: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Queues of work and of control: the shared ones, those of work that were chosen, or a single workflow's own."""
    if own:
        return (own,), (f"{own}.control",)
    work = tuple(f"fixloop.{name}" for name in chosen or WORK_QUEUES)
    return work, ("fixloop.control", "celery")
