"""The crash tests wrap functions of the product by name: each name is still there."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DEATHS = Path(__file__).with_name("deaths.py")


def test_each_function_that_a_crash_test_wraps_exists() -> None:
    program = (
        f"import runpy, importlib; watched = runpy.run_path({str(DEATHS)!r})['_WATCHED'];"
        "[watch(importlib.import_module(name)) for name, watches in watched.items() for watch in watches]"
    )

    wrapped = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (wrapped.returncode, wrapped.stderr) == (0, "")
