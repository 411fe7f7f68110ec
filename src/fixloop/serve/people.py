"""People who sign in with a password or through a proxy: the file with their names and rights."""

import re
from functools import cache
from pathlib import Path
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from fixloop.errors import UsageError
from fixloop.files.atomic import write_whole
from fixloop.serve.access import PASSWORD, ROLES, Caller, checked_name, checked_projects, scopes_of

FEWEST_CHARACTERS: Final = 10
_HASHER: Final = PasswordHasher()
_of_nobody: Final = cache(lambda: _HASHER.hash("nobody has this one"))
"""Makes an unknown name take as long as a wrong password."""
_LINE: Final = re.compile(r"([^:]+):([^:]*):([^:]*):(.*)")


class People:
    """A file with a line `name:role:projects:hash` for each person: the projects' hex digits separated by commas, none
    for all; an argon2 hash, or none for a person whom only a proxy authenticates. It is reread when it changes."""

    def __init__(self, path: Path | None) -> None:
        """Without a file, nobody is known."""
        self._path = path
        self._read_at: object = None
        self._known: dict[str, tuple[Caller, str]] = {}

    def signed_in(self, name: str, password: str) -> Caller | None:
        """The person with this password; None for a wrong password and an unknown name alike."""
        caller, kept = self._people().get(name, (None, ""))
        nobody = _of_nobody()
        try:
            _HASHER.verify(kept or nobody, password)
        except (VerificationError, InvalidHashError):
            return None
        return caller if kept else None

    def known(self, name: str, how: str = PASSWORD) -> Caller | None:
        """The person with this name, authenticated by `how`; None if there is none (any more)."""
        caller, _ = self._people().get(name, (None, ""))
        return caller and caller._replace(token=how)

    def add(self, name: str, role: str, projects: frozenset[str], password: str) -> None:
        """Add a person, or change their rights and password; an empty password is for a proxy's users. UsageError: a
        value cannot be stored, or the password is too short."""
        if role == "agent":
            told = "a person is no agent; `fixloop token create --role agent` makes an agent's token"
            raise UsageError(told)
        scopes_of(role, "")
        if 0 < len(password) < FEWEST_CHARACTERS:
            raise UsageError(f"the password has {len(password)} characters; use {FEWEST_CHARACTERS} or more")
        if self._path is None:
            raise UsageError("no file of people is named; use --people FILE")
        line = f"{checked_name(name)}:{role}:{','.join(sorted(checked_projects(projects)))}"
        hashed = _HASHER.hash(password) if password else ""
        others = [each for each in self._lines() if each.partition(":")[0] != name]
        text = "".join(f"{each}\n" for each in [*others, f"{line}:{hashed}"])
        write_whole(self._path, text.encode(), mode=0o600, synced=True)

    def _people(self) -> dict[str, tuple[Caller, str]]:
        read_at = self._path and self._path.exists() and self._path.stat().st_mtime_ns
        if read_at != self._read_at:
            people = {}
            for line in self._lines():
                found = _LINE.fullmatch(line)
                if found is None or found[2] not in ROLES:
                    told = f"{self._path} has a line that is not name:role:projects:hash; mend or remove it"
                    raise UsageError(told)
                name, role, projects, hashed = found.groups()
                known = checked_projects(filter(None, projects.split(",")))
                people[name] = Caller(checked_name(name), scopes_of(role, ""), PASSWORD, known), hashed
            self._known, self._read_at = people, read_at
        return self._known

    def _lines(self) -> list[str]:
        if self._path is None or not self._path.exists():
            return []
        return [line for line in self._path.read_text().splitlines() if line and not line.startswith("#")]
