"""docs/architecture.md says what the code is."""

import pytest

from tests.unit.architecture_page import PAGE, REGENERATE, page

pytestmark = pytest.mark.slow


def test_the_page_on_architecture_is_made_from_the_present_code() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert page(text) == text, f"it is stale; write it with: {REGENERATE}"
    assert len(text.splitlines()) <= 200
