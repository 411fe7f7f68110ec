"""docs/architecture.md says what the code is."""

import pytest

from tests.unit.architecture_page import PAGE, REGENERATE, page

pytestmark = pytest.mark.slow


def test_the_architecture_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert page(text) == text, f"it is stale; write it with: {REGENERATE}"
    assert len(text.splitlines()) <= 200
