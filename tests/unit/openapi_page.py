"""Writes `docs/openapi.json`, the API's description: `python -m tests.unit.openapi_page`."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from fixloop.serve.app import create_app

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def text() -> str:
    """The page from the routes; none of them is called."""
    described = create_app(cast(Any, SimpleNamespace(has_checkout=False)), *(cast(Any, None),) * 2).openapi()
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
