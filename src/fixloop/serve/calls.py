"""Who is to be called about an open escalation, and when. Pure: no clock, no Redis.

The first contact is called at once and reminded when half of the time is over; the next one is called when it is over,
and so on. Quiet hours put a call off, and no other person's with it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from fixloop.serve.contacts import Contact

What = Literal["asked", "reminded", "answered"]
Told = Mapping[str, datetime]
"""A call's mark → when it was made; `failed NAME` → when somebody could not be reached first."""


class Call(NamedTuple):
    contact: Contact
    what: What

    @property
    def mark(self) -> str:
        return f"{self.what} {self.contact.name}"


def due(
    opened: datetime, each: timedelta, contacts: Sequence[Contact], told: Told, now: datetime
) -> list[Call]:
    """What is to be sent now about what was asked at `opened`; each person has the time `each` before the next one."""
    found, begins = [], opened
    for contact in contacts:
        asked = told.get(f"asked {contact.name}")
        if asked is None:
            is_due = contact.awake(begins) <= now
            if is_due:
                found.append(Call(contact, "asked"))
            # Who cannot be reached has their time like others; after a server that was away it begins now.
            begins = told.get(f"failed {contact.name}", now if is_due else begins)
        else:
            begins = asked
            reminder = Call(contact, "reminded")
            if reminder.mark not in told and contact.awake(asked + each / 2) <= now:
                found.append(reminder)
        begins += each
    return found


def answered(contacts: Sequence[Contact], told: Told) -> list[Call]:
    """Who is told that it is decided: everybody who was asked."""
    return [Call(contact, "answered") for contact in contacts if f"asked {contact.name}" in told]
