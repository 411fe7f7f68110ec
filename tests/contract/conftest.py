"""Every contract test runs over the store in memory, over a real Redis, and over a real Valkey."""

from collections.abc import Iterator

import pytest

from fixloop.store.contract import Store
from tests.fixtures.store_world import MemoryWorld, RedisWorld, World

_SERVERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("redis", "valkey")]


@pytest.fixture(params=["memory", *_SERVERS])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A store without content, and its surroundings."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    real = RedisWorld(request.getfixturevalue(f"{request.param}_url"))
    yield real
    real.close()


@pytest.fixture
def store(world: World) -> Store:
    """The store of `world`."""
    return world.store
