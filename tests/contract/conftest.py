"""Every contract test runs over the store in memory and over a real Redis."""

from collections.abc import Iterator

import pytest

from fixloop.store.contract import Store
from tests.contract.world import MemoryWorld, RedisWorld, World


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A store without content, and its surroundings."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    real = RedisWorld(request.getfixturevalue("redis_url"))
    yield real
    real.close()


@pytest.fixture
def store(world: World) -> Store:
    """The store of `world`."""
    return world.store
