"""`fixloop check --changed`: the tests that what has changed can affect run first."""

import sys
from pathlib import Path

import pytest

from tests.fixtures.project import Project

pytestmark = pytest.mark.slow

NOWHERE = {"FIXLOOP_STATE_URL": "redis://127.0.0.1:1/0"}
TOML = f'[specialist.test-runner]\ncommand = "{sys.executable} -m pytest -q -p no:cacheprovider"\n'
FILES = {
    "shop/__init__.py": "",
    "shop/price.py": "def total(a, b):\n    return a + b\n",
    "shop/stock.py": "def left():\n    return 1\n",
    "tests/test_price.py": "from shop.price import total\n\n\ndef test_total():\n    assert total(1, 2) == 3\n",
    "tests/test_stock.py": "from shop.stock import left\n\n\ndef test_left():\n    assert left() == 1\n",
    "test_calc.py": "",
}


def shop(tmp_path: Path, files: dict[str, str]) -> Project:
    project = Project(tmp_path / "shop", toml=TOML, files=FILES, variables=NOWHERE)
    project.git("switch", "-q", "-c", "feature")
    for name, text in files.items():
        project.write(name, text)
    return project


def test_tests_named_after_changed_files_run_first_and_alone_if_they_fail(tmp_path: Path) -> None:
    wrong, right = "def total(a, b):\n    return a - b\n", FILES["shop/price.py"] + "\n"
    project = shop(tmp_path, {"shop/price.py": wrong})

    first = project.fixloop("check", "--changed")
    shown = project.fixloop("check", "--show", "F1")
    project.write("shop/price.py", right)
    project.write("shop/stock.py", "def left():\n    return 2\n")
    second = project.fixloop("check", "--changed")
    project.write("shop/stock.py", FILES["shop/stock.py"])
    third = project.fixloop("check", "--changed")

    assert first.code == second.code == 1
    assert first.out.startswith("1 failure in 1 of 1 checks; not run: test-runner/pytest\nF1 ")
    assert "test_total" in first.out
    assert "total(1, 2)" in shown.out
    assert "tests/test_stock.py" in second.out
    assert third.code == 0
    assert third.out.startswith("passed (1 check)")


@pytest.mark.parametrize("name", ["tests/conftest.py", "shop/other.py", "README.md"])
def test_all_tests_run_where_the_affected_ones_are_unknown(tmp_path: Path, name: str) -> None:
    project = shop(tmp_path, {name: "# new\n"})

    told = project.fixloop("check", "--changed")

    assert told.out == "passed (1 check)\n", told.err


def test_without_a_base_changed_says_that_it_has_no_effect(tmp_path: Path) -> None:
    project = shop(tmp_path, {"shop/price.py": "def total(a, b):\n    return 3\n"})

    told = project.fixloop("check", "--changed", "--base", "none")

    assert told.code == 0
    assert "--changed has no effect: there is no base to compare with" in told.err


TESTMON = """\
def pytest_addoption(parser):
    parser.addoption("--testmon", action="store_true")
    parser.addoption("--testmon-nocollect", action="store_true")


def pytest_collection_modifyitems(config, items):
    if config.option.testmon and config.option.testmon_nocollect:
        items[:] = [item for item in items if item.name in open(".testmondata").read()]
"""


def test_testmon_selects_tests_with_its_data_in_the_checkout(tmp_path: Path) -> None:
    wrong = FILES["tests/test_stock.py"].replace("1", "2")
    files = {
        "testmon.py": TESTMON,
        "pytest.ini": "[pytest]\naddopts = -p testmon\n",
        "tests/test_price.py": wrong,
    }
    project = shop(tmp_path, {**files, "tests/test_stock.py": wrong})
    project.write(".testmondata", "test_left")
    tree = project.fixloop("check", "--json").document["tree"]
    project.write(".testmondata", "test_left of stock")

    told = project.fixloop("check", "--changed", "--again", "--json").document

    assert told["tree"] == tree
    assert told["left_out"] == ["test-runner/pytest"]
    assert {failure["file"] for failure in told["failures"]} == {"tests/test_price.py", "tests/test_stock.py"}
