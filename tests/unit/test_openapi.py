"""The API's description matches the routes, and a refusal's address is valid."""

import json

import pytest

from tests.unit.openapi_page import PAGE, text

pytestmark = pytest.mark.heavy


def test_the_openapi_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run `python -m tests.unit.openapi_page`"


def test_every_route_says_what_it_does_and_how_it_refuses() -> None:
    document = json.loads(text())

    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            assert described.get("description"), f"{method} {path}"
            if path.startswith("/v1/"):
                assert "application/problem+json" in described["responses"]["503"]["content"], (
                    f"{method} {path}"
                )
