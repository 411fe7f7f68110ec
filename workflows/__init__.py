"""One file for each profile: its steps, their order, and their canvas."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from celery import Celery
from celery.canvas import Signature

from fixloop.engine.hints import signature
from fixloop.profile_table import loaded, names, registered
from fixloop.protocol.ticket import Ticket

FOLLOWING: Final[Mapping[str, Callable[[Any, Ticket], Iterable[Ticket]]]] = MappingProxyType(
    {name: loaded(registered(name).following) for name in names()}
)
"""By profile."""


def canvas(app: Celery, state: Any, ticket: Ticket) -> list[Signature]:
    """The steps from `ticket` to the end of its round, as signatures in order; the first is `ticket` itself."""
    return [signature(app, state.profile, one) for one in (ticket, *FOLLOWING[state.profile](state, ticket))]
