"""Document versions and how they stay together (C16, C63, K11). Versions are `X.Y.Z`, compared as numbers."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from fixloop.errors import UsageError

_FORM: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.ASCII)


class Version(NamedTuple):
    """`major.minor.patch`."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version_of(text: str) -> Version:
    """A version as documents name it, with or without a leading `v`. Raises UsageError: it is none."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{text!r} is no version; it is written 1.0.0 or v1.0.0")
    return Version(*map(int, found.groups()))


def iteration_version(iteration: int, present: Iterable[Version] = ()) -> Version:
    """The version of all main documents when an iteration begins: never behind one that exists (K11)."""
    return max((Version(1, iteration - 1, 0), *present))


def next_revision(base: Version, present: Version) -> Version:
    """A further revision inside an iteration that began at `base`: the next minor, then patches (K11)."""
    if present[:2] == base[:2]:
        return Version(base.major, base.minor + 1, 0)
    return present._replace(patch=present.patch + 1)


def check_together(base: Version, present: Iterable[Version]) -> None:
    """Refuse (UsageError) a document more than one minor ahead of the base of its iteration, or behind it (K11)."""
    for version in present:
        if version < base or version[:2] > (base.major, base.minor + 1):
            raise UsageError(f"a document has version {version} in an iteration that began at {base}")


def archive_name(document: str, version: Version) -> str:
    """`requirements-v1.0.0.md` for `requirements.md` (U12)."""
    stem, dot, suffix = document.rpartition(".")
    return f"{stem}-v{version}.{suffix}" if dot else f"{document}-v{version}"
