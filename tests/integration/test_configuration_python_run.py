"""The presets' commands with the real tools, on a project with defects and on a clean one."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Check
from tests.fixtures.configuration_project import written
from tests.fixtures.inner_pytest import VARIABLES

pytestmark = pytest.mark.slow

TOOLS = (
    '[dependency-groups]\ndev = ["pytest", "pytest-cov", "ruff", "mypy", "bandit"]\n[tool.ruff.format]\n'
    "[tool.coverage.report]\nfail_under = 80\n[tool.coverage.run]\nsource = ['src']\n"
)
GATE = "[specialist.test-runner]\ncoverage_percent = 80\n"
CLEAN = {
    "pyproject.toml": TOOLS,
    "src/shop/__init__.py": '"""A shop."""\n',
    "src/shop/cart.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
    "tests/unit/test_cart.py": (
        "from shop.cart import total\n\n\ndef test_total() -> None:\n    assert total([1, 2]) == 3\n"
    ),
    "tests/integration/test_shop.py": "import shop\n\n\ndef test_shop() -> None:\n    assert shop.__doc__\n",
}
DEFECTS = {
    **CLEAN,
    "src/shop/cart.py": (
        "import os\n\n\ndef total(prices: list[int]) -> int:\n    return sum(prices) + 1\n\n\n"
        'def label(price: int) -> str:\n    return price\n\n\nPASSWORD = "hunter2"\n'
    ),
    "src/shop/order.py": "import subprocess\n\n\ndef run(text):\n    subprocess.call(text,shell=True)\n",
    "src/shop/old.py": "print 'hello'\n",
    "tests/integration/test_shop.py": "def test_shop() -> None:\n    raise RuntimeError\n",
}


class Run(NamedTuple):
    exit_code: int
    output: str
    reports: dict[str, Path]

    def lines_of(self, project: Path) -> set[str]:
        """`path:line` of each line of output that names a file of the project."""
        found = re.findall(r"^([^\s:]+):(\d+):", self.output, re.MULTILINE)
        return {f"{path}:{line}" for path, line in found if (project / path).is_file()}


def run_all(project: Path, reports: Path, only: str = "") -> dict[tuple[str, str], Run]:
    """Every check, or those of one name."""
    configuration = load_configuration(project)
    return {
        (entry.name, check.name): run(check, project, reports / f"{entry.name}-{check.name}")
        for entry in configuration.specialists
        for check in entry.checks
        if only in ("", check.name)
    }


def run(check: Check, project: Path, reports: Path) -> Run:
    reports.mkdir(parents=True)
    paths = {kind: reports / kind for kind in check.report_kinds()}
    command = list(check.command)
    for kind, path in paths.items():
        command = [word.replace(f"{{{kind}}}", str(path)) for word in command]
    environment = VARIABLES | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(project / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(reports),
        "RUFF_OUTPUT_FORMAT": "concise",
    }
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    return Run(done.returncode, done.stdout + done.stderr, paths)


def failures_in(junit: Path) -> int:
    return sum(len(ET.parse(junit).findall(f".//{kind}")) for kind in ("failure", "error"))


@pytest.mark.proves("U3", "A29")
def test_a_clean_project_passes_every_preset(tmp_path: Path) -> None:
    runs = run_all(written(tmp_path / "clean", CLEAN), tmp_path / "reports")

    assert {key: done.exit_code for key, done in runs.items()} == dict.fromkeys(runs, 0)
    assert len(runs) == 9
    assert all(path.stat().st_size for done in runs.values() for path in done.reports.values())
    coverage = json.loads(runs["test-runner", "pytest"].reports["coverage"].read_text())
    assert coverage["totals"]["percent_covered"] == 100
    assert set(coverage["files"]) == {"src/shop/__init__.py", "src/shop/cart.py"}
    assert json.loads(runs["code-quality", "ruff"].reports["sarif"].read_text())["runs"][0]["results"] == []


@pytest.mark.proves("U3", "B68")
def test_each_preset_finds_its_own_kind_of_defect(tmp_path: Path) -> None:
    project = written(tmp_path / "defects", DEFECTS)

    runs = run_all(project, tmp_path / "reports")

    assert all(done.exit_code for done in runs.values())
    counts = {key[0]: failures_in(done.reports["junit"]) for key, done in runs.items() if key[1] == "pytest"}
    assert counts == {"unit-test": 1, "integration-test": 1, "test-runner": 2}
    sarif = json.loads(runs["code-quality", "ruff"].reports["sarif"].read_text())
    assert "F401" in {result["ruleId"] for result in sarif["runs"][0]["results"]}
    assert "src/shop/order.py:5" in runs["code-quality", "format"].lines_of(project)
    assert runs["security", "bandit"].lines_of(project) == {"src/shop/order.py:5"}
    assert runs["security", "secrets"].lines_of(project) == {"src/shop/cart.py:12"}
    assert "src/shop/old.py" in runs["security", "parse"].output


@pytest.mark.proves("U3")
def test_mypy_names_each_type_error_with_its_line(tmp_path: Path) -> None:
    files = {**DEFECTS, "src/shop/old.py": "", "pyproject.toml": f"{TOOLS}[tool.mypy]\npretty = true\n"}
    project = written(tmp_path / "types", files)

    done = run_all(project, tmp_path / "reports", only="mypy")["code-quality", "mypy"]

    assert done.exit_code == 1
    assert done.lines_of(project) == {"src/shop/cart.py:9"}


@pytest.mark.proves("B68")
def test_a_coverage_gate_of_the_project_leaves_the_exit_code_to_the_tests(tmp_path: Path) -> None:
    options = "[tool.pytest.ini_options]\naddopts = '--cov=src'\n"
    pyproject = TOOLS.replace("fail_under = 80", "fail_under = 100") + options
    files = {**CLEAN, "src/shop/idle.py": "x = 1\n", "pyproject.toml": pyproject}

    runs = run_all(written(tmp_path / "gated", files), tmp_path / "reports", only="pytest")

    assert {runs[name, "pytest"].exit_code for name in ("unit-test", "test-runner")} == {0}
    coverage = json.loads(runs["test-runner", "pytest"].reports["coverage"].read_text())
    assert coverage["totals"]["percent_covered"] < 100


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": f"{TOOLS}[tool.bandit]\nskips = ['B602']\n"},
        {".bandit": "[bandit]\nskips = B602\n"},
        {"bandit.yaml": "skips: [B602]\n"},
    ],
)
@pytest.mark.proves("U3")
def test_bandit_reads_the_project_s_settings_from_their_file(tmp_path: Path, files: dict[str, str]) -> None:
    defects = {"src/shop/order.py": DEFECTS["src/shop/order.py"], "pyproject.toml": TOOLS, **files}
    configuration = load_configuration(written(tmp_path / "settings", defects), only="security")
    (check,) = [check for check in configuration.specialists[0].checks if check.name == "bandit"]

    done = run(check, tmp_path / "settings", tmp_path / "reports")

    assert (done.exit_code, done.output.count("B602")) == (0, 0)


@pytest.mark.parametrize("name", ["src/shop/cart.py", "shop/cart.py", "cart.py"])
@pytest.mark.proves("A29")
def test_coverage_is_measured_in_every_layout(tmp_path: Path, name: str) -> None:
    module = name.removeprefix("src/").removesuffix(".py").replace("/", ".")
    test = f"from {module} import total\n\n\ndef test_total() -> None:\n    assert total([1]) == 1\n"
    files = {name: CLEAN["src/shop/cart.py"], "tests/test_cart.py": test, "fixloop.toml": GATE}
    if "shop" in name:
        files[name.replace("cart", "__init__")] = ""

    runs = run_all(written(tmp_path / "layout", files), tmp_path / "reports", only="pytest")

    coverage = json.loads(runs["test-runner", "pytest"].reports["coverage"].read_text())
    assert name in coverage["files"]
    assert not any(file.startswith("tests") for file in coverage["files"])
