"""What every test needs: no settings from outside, and one Redis for those that need a real one."""

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

# A project that a test leaves waiting would have a process of its own; tests of that process say otherwise.
os.environ["FIXLOOP_KEEP"] = "0"

# Scripted checks and agents count in their test's folder what they did; tests of the sandbox say otherwise.
os.environ["FIXLOOP_SANDBOX_WRITABLE"] = tempfile.gettempdir()

# Where it is set, every process that a test starts would compile the whole of fixloop again, and pytest every test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A tenth of what the tests compute was looking for garbage among all that was collected for them.
gc.set_threshold(50_000, 20, 50)

# A script in front of the interpreter, such as pyenv's, takes longer than most of what tests start through it.
_python = shutil.which("python")
if _python is not None and Path(_python).read_bytes()[:2] == b"#!":
    os.environ["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"

# Tests that were started in the background ignore Ctrl-C, and so would their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, nothing of the code.
settings.register_profile("patient", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=3, database=None)
settings.load_profile("patient")
# What `make chaos` names; the sequences read it.
settings.register_profile("chaos", deadline=None)


#: How a file says, before its first function, that all its tests are slow.
_ALL_SLOW: Final = re.compile(r"\A(?:(?!def |class |@).*\n)*?pytestmark = (?:\[\s*)?pytest\.mark\.slow\b")


def _is_quick(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow")


def pytest_configure(config: pytest.Config) -> None:
    """`make quick` looks at fewer examples and waits for no disk; `make test` does all of it."""
    if _is_quick(config):
        settings.load_profile("quick")
        os.fsync = lambda fd: None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` imports nothing of a file that has only slow tests: each of its processes would."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    if _is_quick(config) and is_test and _ALL_SLOW.search(collection_path.read_text(encoding="utf-8")):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` plays a share of the long tests, which its environment names."""
    share = int(os.environ.get("LONG_TESTS_SHARE", 1))
    if share > 1:
        unplayed = set(left_out(items, share))
        config.hook.pytest_deselected(items=list(unplayed))
        items[:] = [item for item in items if item not in unplayed]


def pytest_collection_finish() -> None:
    """What is there before the first test stays: the garbage collector need not look through it again."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Nor, as Python ends, through what the tests have left."""
    gc.freeze()


_OF_CALLERS: Final = {
    "redis": "kombu.transport.redis:Transport",
    "rediss": "kombu.transport.redis:Transport",
    "sentinel": "kombu.transport.redis:SentinelTransport",
}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test sends as any caller does: the workers' transport, which loading them registers, is a worker's alone."""
    kombu: Any = sys.modules.get("kombu.transport")
    for scheme, transport in _OF_CALLERS.items() if kombu is not None else ():
        kombu.TRANSPORT_ALIASES[scheme] = transport
        kombu._transport_cache.pop(scheme, None)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """`unix://` URL of a Redis that lives as long as the session; flush it before use."""
    server = RedisServer()
    try:
        yield server.start().url
    finally:
        server.end()


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """The same of a Valkey."""
    server = RedisServer(binary=valkey_binary())
    try:
        yield server.start().url
    finally:
        server.end()
