"""Who is called about an open decision, in which order, and when: the file of contacts, and the calls that are due.

The first contact is called at once and reminded after half of the time; the next one is called after all of it, and so
on. Quiet hours delay only the calls to that person.
"""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, Field, ValidationError, field_validator

from fixloop.errors import UsageError


class Contact(BaseModel, extra="forbid", frozen=True, arbitrary_types_allowed=True):
    """One person, with the addresses for apprise."""

    name: str = Field(pattern=r"^[\w.@+-]{1,64}$")
    """The name in the history and in the file of people."""
    urls: tuple[str, ...] = Field(min_length=1)
    projects: tuple[Annotated[str, Field(pattern="^[0-9a-f]{8}$")], ...] = ()
    """None: all projects."""
    role: Literal["decider", "viewer"] = "decider"
    """A viewer's link only shows."""
    quiet: tuple[time, time] | None = None
    """The hours in which nothing is sent; in the file `22:00-07:00`."""
    zone: ZoneInfo = ZoneInfo("UTC")

    @field_validator("quiet", mode="before")
    @classmethod
    def split_times(cls, text: Any) -> Any:
        return text.split("-") if isinstance(text, str) else text

    @field_validator("zone", mode="before")
    @classmethod
    def find_zone(cls, text: Any) -> ZoneInfo:
        try:
            return ZoneInfo(str(text))
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError("is no time zone; use one such as Europe/Berlin") from None

    def covers(self, workflow: str) -> bool:
        return not self.projects or workflow[:8] in self.projects

    def awake(self, at: datetime) -> datetime:
        """`at`, or the end of the quiet hours that contain it."""
        if self.quiet is None:
            return at
        (begin, end), local = self.quiet, at.astimezone(self.zone)
        now = local.time()
        is_quiet = begin <= now < end if begin <= end else now >= begin or now < end
        if not is_quiet:
            return at
        ends = datetime.combine(local.date(), end, self.zone)
        return (ends if ends > local else ends + timedelta(days=1)).astimezone(UTC)


class Contacts(BaseModel, extra="forbid", frozen=True):
    """The file: `[[contact]]` tables, and the time each contact has before the next is called."""

    answer_minutes: float = Field(240, gt=0, le=100_000)
    contact: tuple[Contact, ...] = Field(min_length=1)


def contacts_in(path: Path) -> Contacts:
    """UsageError: the file cannot be read, or is malformed."""
    try:
        found = Contacts.model_validate(tomllib.loads(path.read_text()))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as contacts: {error}") from None
    names = [each.name for each in found.contact]
    if len(set(names)) < len(names):
        raise UsageError(f"{path} names somebody twice; give each person one [[contact]] with all urls")
    return found


Told = Mapping[str, datetime]
"""A call's mark → its time; `failed NAME` → when a person could first not be reached."""


class Call(NamedTuple):
    contact: Contact
    what: Literal["asked", "reminded"]

    @property
    def mark(self) -> str:
        return f"{self.what} {self.contact.name}"


def due(
    opened: datetime, each: timedelta, contacts: Sequence[Contact], told: Told, now: datetime
) -> list[Call]:
    """The calls that are due for a question asked at `opened`; each person has the time `each` before the next one."""
    found, begins = [], opened
    for contact in contacts:
        asked = told.get(f"asked {contact.name}")
        if asked is None:
            is_due = contact.awake(begins) <= now
            if is_due:
                found.append(Call(contact, "asked"))
            # A person who cannot be reached has their time like others; if the server was away, it starts now.
            begins = told.get(f"failed {contact.name}", now if is_due else begins)
        else:
            begins = asked
            reminder = Call(contact, "reminded")
            if reminder.mark not in told and contact.awake(asked + each / 2) <= now:
                found.append(reminder)
        begins += each
    return found
