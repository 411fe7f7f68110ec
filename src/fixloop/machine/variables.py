"""The variables of fixloop's own environment that commands of a project see."""

from collections.abc import Iterable, Mapping
from typing import Final

_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
ALLOWED: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM"}
    | {*_PROXIES, *map(str.upper, _PROXIES)}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    | {"NODE_EXTRA_CA_CERTS", "PIP_CERT"}
    | {"GOPATH", "GOMODCACHE", "GOCACHE", "GOROOT", "GOTOOLCHAIN"}
    | {"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"}
)
ALLOWED_PREFIXES: Final = ("LC_", "XDG_")


def allowed_variables(variables: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """The variables of the allow-list, the named ones, and CI=1."""
    allowed = ALLOWED.union(names)
    kept = [name for name in variables if name in allowed or name.startswith(ALLOWED_PREFIXES)]
    return {name: variables[name] for name in kept} | {"CI": "1"}
