"""Setup for every test: no settings from outside, and one Redis for those that need a real one."""

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from tests.fixtures.redis_server import RedisServer, valkey_binary
from tests.long_tests import left_out

for _name in [name for name in os.environ if name.startswith("FIXLOOP_")]:
    del os.environ[_name]

# A project that a test leaves waiting would start a timekeeper; tests of the timekeeper set this differently.
os.environ["FIXLOOP_KEEP"] = "0"

# Scripted checks and agents record their runs in their test's folder; tests of the sandbox set this differently.
os.environ["FIXLOOP_SANDBOX_WRITABLE"] = tempfile.gettempdir()

# If it is set, every process that a test starts compiles all of fixloop again, and pytest every test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A tenth of the tests' CPU time was garbage collection over all collected test items.
gc.set_threshold(50_000, 20, 50)

# A wrapper script for the interpreter, such as pyenv's, takes longer than most programs that tests start with it.
_python = shutil.which("python")
if _python is not None and Path(_python).read_bytes()[:2] == b"#!":
    os.environ["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"

# Tests started in the background ignore Ctrl-C, and so would their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The duration of an example depends on the machine's load, not on the code.
settings.register_profile("patient", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=3, database=None)
settings.load_profile("patient")
# Selected by `make chaos`, and read by the sequences.
settings.register_profile("chaos", deadline=None)


#: Matches a file that marks all its tests as slow or heavy before its first function.
_ALL_LEFT_OUT: Final = re.compile(
    r"\A(?:(?!def |class |@).*\n)*?pytestmark = (?:\[\s*)?pytest\.mark\.(?:slow|heavy)\b"
)


def _is_quick(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow and not heavy")


def pytest_configure(config: pytest.Config) -> None:
    """`make quick` runs fewer examples and waits for no disk; `make test` runs everything."""
    if _is_quick(config):
        settings.load_profile("quick")
        os.fsync = lambda fd: None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` skips the import of a file of which it plays no test, which each of its processes would repeat."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    if _is_quick(config) and is_test and _ALL_LEFT_OUT.search(collection_path.read_text(encoding="utf-8")):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` runs a share of the long tests, set by its environment."""
    share = int(os.environ.get("LONG_TESTS_SHARE", 1))
    if share > 1:
        unplayed = set(left_out(items, share))
        config.hook.pytest_deselected(items=list(unplayed))
        items[:] = [item for item in items if item not in unplayed]


def pytest_collection_finish() -> None:
    """Freeze the objects that exist before the first test: garbage collection can skip them."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Freeze the objects that tests left: Python need not collect them at exit."""
    gc.freeze()


_OF_CALLERS: Final = {
    "redis": "kombu.transport.redis:Transport",
    "rediss": "kombu.transport.redis:Transport",
    "sentinel": "kombu.transport.redis:SentinelTransport",
}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test sends like any caller, without the workers' transport, which importing them registers."""
    kombu: Any = sys.modules.get("kombu.transport")
    for scheme, transport in _OF_CALLERS.items() if kombu is not None else ():
        kombu.TRANSPORT_ALIASES[scheme] = transport
        kombu._transport_cache.pop(scheme, None)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """`unix://` URL of a Redis that runs for the whole session; flush it before use."""
    server = RedisServer()
    try:
        yield server.start().url
    finally:
        server.end()


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """The same for a Valkey."""
    server = RedisServer(binary=valkey_binary())
    try:
        yield server.start().url
    finally:
        server.end()
