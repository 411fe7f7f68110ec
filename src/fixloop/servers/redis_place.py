"""The places of a project's embedded Redis: its data below the project, its socket in the runtime directory.

A runtime directory that others own or can read is refused: the server obeys everyone who reaches the socket.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fixloop.errors import UsageError
from fixloop.files.folders import make_real, own_folder

# struct sockaddr_un has 108 bytes, the last one is a zero.
SOCKET_PATH_BYTES: Final = 107
SEAL_KEY: Final = "seal.key"
"""In the data's folder: the key that seals the histories there."""


@dataclass(frozen=True)
class Place:
    """The directories and files of one project's embedded Redis."""

    project: Path

    @classmethod
    def prepare(cls, project_directory: Path) -> "Place":
        """Create missing directories, and `.fixloop/.gitignore`."""
        try:
            place = cls(project_directory.resolve(strict=True))
            place.made()
            make_real(place.data)
            place.data.chmod(0o700)
            if not os.access(place.data, os.W_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise UsageError(
                f"cannot keep the embedded Redis in {project_directory / '.fixloop'}: {error.strerror};"
                " make the directory writable, or set FIXLOOP_STATE_URL to a running Redis"
            ) from None
        return place

    def made(self) -> Path:
        """`.fixloop`, created if it is missing."""
        return own_folder(self.project)

    @property
    def data(self) -> Path:
        return self.project / ".fixloop" / "redis"

    def socket(self) -> Path:
        """A new server's path. Sessions may differ in $XDG_RUNTIME_DIR: a recorded socket comes first if it is safe."""
        recorded = self.recorded_socket()
        if recorded is not None and _objection(recorded.parent) == "":
            return recorded
        digest = hashlib.sha256(os.fsencode(self.project)).hexdigest()[:16]
        return runtime_directory() / f"{digest}.sock"

    def recorded_socket(self) -> Path | None:
        try:
            return Path((self.data / "socket").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None


def runtime_directory() -> Path:
    """The user's own directory for sockets, mode 0700: `$XDG_RUNTIME_DIR/fixloop`, else `/tmp/fixloop-{uid}`."""
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(session) and _objection(Path(session)) == "":
        directory = Path(session, "fixloop")
        socket = directory / f"{'0' * 16}.sock"
        if len(os.fsencode(socket)) <= SOCKET_PATH_BYTES and made_own(directory) == "":
            return directory
    directory = Path(f"/tmp/fixloop-{os.getuid()}")
    if objection := made_own(directory):
        raise UsageError(f"{directory} cannot hold the embedded Redis' socket: {objection}; remove it")
    return directory


def made_own(directory: Path) -> str:
    """Create a folder that nobody else can read; returns why an existing one is not, or an empty text."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return str(error.strerror)
    return _objection(directory)


def _objection(directory: Path) -> str:
    """Why `directory` is not a safe place for a socket; empty if it is."""
    try:
        state = directory.lstat()
    except OSError as error:
        return str(error.strerror)
    if not stat.S_ISDIR(state.st_mode):
        return "it is not a directory"
    if state.st_uid != os.getuid():
        return f"it belongs to user {state.st_uid}"
    return f"its mode is {stat.S_IMODE(state.st_mode):04o} instead of 0700" if state.st_mode & 0o077 else ""
