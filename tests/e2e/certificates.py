"""Certificates made for one test by `openssl`: an authority, and the certificates it signed."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Signed(NamedTuple):
    """A certificate and its key."""

    cert: Path
    key: Path


class Certificates(NamedTuple):
    """The certificates of a server and its clients."""

    authority: Path
    other_authority: Path
    """An authority that has signed nothing."""
    server: Signed
    """For `localhost`, not for its number."""
    client: Signed


def make_certificates(folder: Path) -> Certificates:
    """Skips the test at home where there is no openssl, fails it in CI."""
    if shutil.which("openssl") is None:
        if os.environ.get("CI"):
            pytest.fail("no openssl here, and CI has to have one")
        pytest.skip("no openssl here")
    authority, other = _made(folder, "authority"), _made(folder, "other")
    return Certificates(
        authority=authority.cert,
        other_authority=other.cert,
        server=_made(folder, "server", authority, "subjectAltName=DNS:localhost"),
        client=_made(folder, "client", authority, "extendedKeyUsage=clientAuth"),
    )


def _made(folder: Path, name: str, authority: Signed | None = None, extension: str = "") -> Signed:
    made = Signed(folder / f"{name}.pem", folder / f"{name}.key")
    command = ["openssl", "req", "-x509", "-days", "2", "-subj", f"/CN={name}", *_KEY]
    # Python 3.13 refuses what may sign others and does not say so; openssl lets each of these.
    command += ["-addext", "keyUsage=critical,keyCertSign,digitalSignature"]
    command += ["-keyout", str(made.key), "-out", str(made.cert)]
    if authority is not None:
        command += ["-CA", str(authority.cert), "-CAkey", str(authority.key), "-addext", extension]
    subprocess.run(command, check=True, capture_output=True)
    return made
