"""One file for each profile: which steps, in which order, as which canvas."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from celery import Celery
from celery.canvas import Signature

from fixloop.profile_table import loaded, names, registered
from fixloop.protocol.ticket import Ticket

__all__ = ["CANVASES"]

CANVASES: Final[Mapping[str, Callable[[Celery, Any, Ticket], list[Signature]]]] = MappingProxyType(
    {name: loaded(registered(name).canvas) for name in names()}
)
"""By profile: the steps from a ticket to the end of its round, as signatures in order, its own first."""
