"""What a command tells after a commit: a hint to the workers for each new ticket, a letter to agents outside.

Both may be lost: the state says what is open. What sends them is loaded with the first: most commands send none.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fixloop.errors import InfrastructureError

if TYPE_CHECKING:
    from fixloop.profiles.profile import AnyOutcome
    from fixloop.protocol.ticket import Ticket


class Hints:
    """Sends hints by one connection."""

    def __init__(self, broker_url: str) -> None:
        self._broker_url = broker_url
        self._app: Any = None

    def __call__(self, ticket: "Ticket", state: Any) -> None:
        self.send(ticket, state.profile)

    def send(self, ticket: "Ticket", profile: str) -> None:
        """Send one."""
        from fixloop.engine.hints import producer, send_hint

        self._app = self._app or producer(self._broker_url)
        send_hint(self._app, ticket, profile)


def announce(broker_url: str, outcome: "AnyOutcome[Any]") -> None:
    """Tell outside agents what was said to them; one that misses it finds what is open in the state."""
    from fixloop.profiles.table import PROFILES

    told = PROFILES[outcome.state.profile].letters(outcome)
    if told:
        from fixloop.outside.mailbox import Mailboxes
        from fixloop.outside.mailbox import announce as send

        mailboxes = Mailboxes(broker_url)
        with suppress(InfrastructureError):
            send(mailboxes, told, outcome.state.workflow, outcome.state.issue)
            mailboxes.close()
