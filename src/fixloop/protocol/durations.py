"""Formats durations and timestamps for the protocol. Takes numbers and aware datetimes; reads no clock."""

from datetime import UTC, datetime

from fixloop.errors import ProtocolError


def minutes_seconds(seconds: float) -> str:
    """`MM:SS`, minutes unbounded, never negative, fractions cut off (G5)."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes:02}:{rest:02}"


def hours_minutes_seconds(seconds: float) -> str:
    """`HH:MM:SS`, hours unbounded, never negative, fractions cut off (G5)."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}"


def period(seconds: float) -> str:
    """`5 minutes`, or seconds if the minutes are not whole."""
    number, unit = (seconds / 60, "minute") if seconds % 60 == 0 else (seconds, "second")
    shown = f"{number:.0f}" if number == int(number) else f"{number:g}"
    return f"{shown} {unit}{'' if number == 1 else 's'}"


def stamp(at: datetime) -> str:
    """`YYYY-MM-DD HH:MM:SS` in UTC (A16, K14). Raises ProtocolError for a time without a zone."""
    return _utc(at).isoformat(" ", "seconds")[:19]


def iso_stamp(at: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SSZ`, for JSON. Raises ProtocolError for a time without a zone."""
    return _utc(at).isoformat("T", "seconds")[:19] + "Z"


def id_stamp(at: datetime) -> str:
    """`YYYYMMDDTHHMMSSZ`, for ids (G4). Raises ProtocolError for a time without a zone."""
    return iso_stamp(at).replace("-", "").replace(":", "")


def _utc(at: datetime) -> datetime:
    if at.tzinfo is UTC:
        return at
    # astimezone() would read a naive time as local and shift it by the machine's zone.
    if at.utcoffset() is None:
        raise ProtocolError(f"the time {at.isoformat()} has no zone; times inside fixloop are aware UTC")
    return at.astimezone(UTC)
