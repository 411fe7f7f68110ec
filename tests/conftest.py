"""What every test stands on: no settings from outside, and one Redis for those that need a real one."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.redis_server import RedisServer

for _name in [name for name in os.environ if name.startswith("FIXLOOP_")]:
    del os.environ[_name]

# How long an example takes says how busy the machine is, nothing of the code.
settings.register_profile("patient", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("patient")
# What `make chaos` names; the sequences read it.
settings.register_profile("chaos", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """`make quick` looks at fewer examples; `make test` at all."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """`unix://` URL of a Redis that lives as long as the session; flush it before use."""
    server = RedisServer()
    try:
        yield server.start().url
    finally:
        server.end()
