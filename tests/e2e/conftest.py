"""One Redis and one worker, shared by the tests because starting them takes seconds."""

from collections.abc import Iterator

import pytest

from tests.fixtures.project import Host, hosted


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Redis and a worker with two processes for work."""
    with hosted(tmp_path_factory.mktemp("host")) as made:
        yield made
