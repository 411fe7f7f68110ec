"""What was stored with a dictionary can be read only by that dictionary."""

from hashlib import sha256
from importlib.resources import files

import pytest


@pytest.mark.parametrize(
    ("number", "digest"), [(1, "5befb54fa9a26ee5"), (2, "770f5046a3c17fcf"), (3, "a828e4ea2104bc9f")]
)
def test_a_dictionary_that_was_shipped_never_changes(number: int, digest: str) -> None:
    shipped = files("fixloop.store").joinpath(f"dictionary-{number}.txt").read_bytes()

    assert sha256(shipped).hexdigest().startswith(digest)
