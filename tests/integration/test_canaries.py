"""Canaries with real tools: a runner that cannot fail is detected, and an honest project is never held."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.model import Check, Configuration
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.protocol.checks import Finding, RunOutcome
from fixloop.repository.snapshot import take_snapshot
from tests.fixtures.imported import with_known_imports
from tests.fixtures.inner_pytest import UNUSED
from tests.fixtures.repositories import make_repository, write
from workers.commands.canary import Trial
from workers.commands.check_run import run_check
from workers.workspaces.ground import Site

pytestmark = pytest.mark.slow

WRONG, RIGHT = "def total(prices):\n    return 1\n", "def total(prices):\n    return sum(prices)\n"
SHOP = {
    "shop.py": WRONG,
    "tests/test_shop.py": "import shop\n\n\ndef test_total():\n    assert shop.total([1, 2]) == 3\n",
}
CASES = (
    "import unittest\n\nimport shop\n\n\nclass Shop(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(shop.total([1, 2]), 3)\n"
)
UNITTEST = {"shop.py": WRONG, "tests/__init__.py": "", "tests/test_shop.py": CASES}
MARKED = "[pytest]\naddopts = --strict-markers -m 'not slow'\nmarkers =\n    slow\n"
EMPTY = "def test_nothing():\n    pass\n"
PYTEST = ("python", "-m", "pytest", *UNUSED, "--junitxml={junit}")
DISCOVER = ("python", "-m", "unittest")
RUFF = ("ruff", "check", "--no-fix", "--output-format", "sarif", "--output-file", "{sarif}", ".")
MYPY = ("python", "-m", "mypy", "--no-pretty", "src")
SOURCES = {"src/shop.py": "import os\n", "other.py": "number = 1\n"}
TYPES = {"src/shop.py": "def total() -> int:\n    return ''\n"}
HOOK = (
    "import pytest\n\n\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    report = yield\n    if report.failed:\n        report.outcome, report.longrepr = 'passed', None\n"
    "    return report\n"
)
PATCH = (
    "\n\nimport sys\n\nreports = sys.modules.get('_pytest.reports')\nif reports:\n"
    "    make = reports.TestReport.from_item_and_call.__func__\n\n    def lying(cls, item, call):\n"
    "        call.excinfo = None\n        return make(cls, item, call)\n\n"
    "    reports.TestReport.from_item_and_call = classmethod(lying)\n"
)


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult:
    return run_guarded(argv, cwd=cwd, env=env, timeout_seconds=120)


def tried(
    folder: Path, files: Mapping[str, str], fix: Mapping[str, str], *command: str, **keys: Any
) -> tuple[str, list[Finding]]:
    """The evidence of a check after a fix with which it passes, and why it is held."""
    repository, cache = make_repository(folder / "shop", dict(files)), with_known_imports(folder / "cache")
    snapshot = take_snapshot(repository, issue=0, cache=cache)
    site = Site(snapshot, Configuration(), cache, "canaries")
    with site.ground(snapshot.commit) as ground:
        write(ground.workspace.directory, dict(fix))
        tip = ground.workspace.capture(snapshot.commit, "fix").commit
    check, words = Check(name="check", command=command, **keys), dict[str, str]()
    with site.ground(tip) as ground:
        tree = ground.workspace.tree_hash()
        ran = run_check(check, ground, tree, run)
        assert ran is not None
        assert ran.result.outcome is RunOutcome.PASSED, ran.output
        trial = Trial(site, ground, snapshot.commit, tuple(sorted(fix)), run)
        found = list(trial.liars([(check, ran.result)], words))
        assert ground.workspace.tree_hash() == tree
    return words["check"], found


@pytest.mark.parametrize(
    ("files", "fix", "command"),
    [
        (SHOP, {"shop.py": RIGHT}, PYTEST),
        (SHOP, {"shop.py": RIGHT}, ("pytest", "-q", "-x", "tests")),
        (SHOP, {"shop.py": RIGHT}, (*PYTEST, "--cov=shop", "--cov-fail-under=90", "-n", "2")),
        (SHOP | {"pytest.ini": MARKED}, {"shop.py": RIGHT}, PYTEST),
        (SHOP, {"shop.py": RIGHT}, ("coverage", "run", "-m", "pytest", "--junitxml={junit}")),
        (SHOP | {"tests/test_shop.py": EMPTY}, {"shop.py": RIGHT + "\nraise SystemExit\n"}, PYTEST),
        (UNITTEST, {"shop.py": RIGHT}, DISCOVER),
        (UNITTEST, {"shop.py": RIGHT}, (*DISCOVER, "discover", "-s", "tests", "-t", ".")),
        (UNITTEST, {"shop.py": RIGHT}, (*DISCOVER, "tests.test_shop")),
        (SOURCES, {"src/shop.py": "number = 1\n"}, RUFF),
        (SOURCES, {"src/shop.py": "number = 1\n"}, ("ruff", "check", "src/shop.py")),
        (SOURCES | {"ruff.toml": "lint.select = ['E7']\n"}, {"src/shop.py": "number = 1\n"}, RUFF),
        (TYPES, {"src/shop.py": "def total() -> int:\n    return 1\n"}, MYPY),
        (TYPES, {"src/shop.py": "def total() -> int:\n    return 1\n"}, (*MYPY, "--strict")),
    ],
)  # fmt: skip
def test_the_canaries_of_an_honest_fix_are_detected(
    tmp_path: Path, files: Mapping[str, str], fix: Mapping[str, str], command: tuple[str, ...]
) -> None:
    assert tried(tmp_path, files, fix, *command) == ("seen", [])


@pytest.mark.parametrize(
    ("files", "fix", "command"),
    [
        (SHOP, {"conftest.py": HOOK}, PYTEST),
        (SHOP, {"tests/conftest.py": HOOK}, PYTEST),
        (SHOP, {"shop.py": WRONG + PATCH}, PYTEST),
        (SHOP, {"lenient.py": HOOK, "pytest.ini": "[pytest]\naddopts = -p lenient\n"}, PYTEST),
        (UNITTEST, {"shop.py": "import os\n\nos._exit(0)\n"}, DISCOVER),
        (SOURCES, {"ruff.toml": "exclude = ['src']\n"}, RUFF),
        (SOURCES, {"ruff.toml": "[lint.per-file-ignores]\n'src/*' = ['ALL']\n"}, RUFF),
        (TYPES, {"mypy.ini": "[mypy]\nignore_errors = true\n"}, MYPY),
    ],
)  # fmt: skip
def test_a_fix_that_stops_the_runner_from_failing_is_held(
    tmp_path: Path, files: Mapping[str, str], fix: Mapping[str, str], command: tuple[str, ...]
) -> None:
    word, [found] = tried(tmp_path, files, fix, *command)

    assert (word, found.rule, found.check) == ("unseen", "runner-lies", "check")
    assert "changed: " in found.text
    assert found.file in fix


def test_a_changed_module_that_does_not_end_is_not_waited_for(tmp_path: Path) -> None:
    script = RIGHT + "\n\nimport time\n\nwhile __name__ == 'shop':\n    time.monotonic()\n"
    tests = {"tests/test_shop.py": EMPTY}

    assert tried(tmp_path, SHOP | tests, {"shop.py": script}, *PYTEST) == ("seen", [])


def test_a_project_that_runs_only_listed_tests_is_never_held(tmp_path: Path) -> None:
    chosen = (
        "def pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if item.name == 'test_total']\n"
    )

    assert tried(tmp_path, SHOP | {"conftest.py": chosen}, {"shop.py": RIGHT}, *PYTEST) == ("none", [])


def test_a_command_that_is_no_known_tool_has_no_canary(tmp_path: Path) -> None:
    assert tried(tmp_path, SHOP, {"shop.py": RIGHT}, "sh", "-c", "pytest || true") == ("none", [])


def test_a_project_in_a_folder_of_its_repository_has_its_canary_there(tmp_path: Path) -> None:
    files = {"web/README": "", **{f"api/{name}": text for name, text in SHOP.items()}}
    repository, cache = make_repository(tmp_path / "both", files), tmp_path / "cache"
    snapshot = take_snapshot(repository / "api", issue=0, cache=cache)
    site, words = Site(snapshot, Configuration(), cache, "canaries"), dict[str, str]()
    with site.ground(snapshot.commit) as ground:
        write(ground.workspace.directory, {"shop.py": RIGHT})
        tip = ground.workspace.capture(snapshot.commit, "fix").commit
    check = Check(name="pytest", command=PYTEST)
    with site.ground(tip) as ground:
        ran = run_check(check, ground, "", run)
        assert ran is not None
        trial = Trial(site, ground, snapshot.commit, ("api/shop.py",), run)

        assert list(trial.liars([(check, ran.result)], words)) == []

    assert words == {"pytest": "seen"}


NODE = {
    "package.json": '{"type": "module"}',
    "cart.js": "export const total = () => 1;\n",
    "cart.test.js": (
        'import test from "node:test";\nimport assert from "node:assert";\nimport { total } from "./cart.js";\n'
        'test("total", () => assert.equal(total(), 2));\n'
    ),
}


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.parametrize("kind", ["module", "commonjs"])
def test_node_s_own_runner_fails_on_its_canary(tmp_path: Path, kind: str) -> None:
    files = NODE
    if kind == "commonjs":
        tests = NODE["cart.test.js"].replace("import test from", "const test = require(").replace('";', '");')
        tests = tests.replace("import assert from", "const assert = require(")
        tests = tests.replace("import { total } from", "const { total } = require(")
        files = {"cart.js": "exports.total = () => 1;\n", "cart.test.js": tests, "package.json": "{}"}
    fix = {"cart.js": files["cart.js"].replace("1", "2")}

    assert tried(
        tmp_path, files, fix, "node", "--test", "--test-reporter=junit", "--test-reporter-destination={junit}"
    ) == ("seen", [])


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.parametrize("name", ["equal", "deepStrictEqual"])
def test_an_assertion_that_the_fix_made_lenient_is_detected(tmp_path: Path, name: str) -> None:
    right = NODE["cart.js"].replace("1", "2")
    fix = {"cart.js": f'import assert from "node:assert";\nassert.{name} = () => undefined;\n{right}'}

    word, lies = tried(
        tmp_path, NODE, fix, "node", "--test", "--test-reporter=junit", "--test-reporter-destination={junit}"
    )

    assert (word, len(lies)) == ("unseen", 1)


CRATE = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    ".gitignore": "Cargo.lock\n",
    "src/lib.rs": (
        "pub fn total() -> i32 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n"
        "    fn total() {\n        assert_eq!(super::total(), 2);\n    }\n}\n"
    ),
}
RUNNER = "[target.'cfg(all())']\nrunner = 'true'\n"


@pytest.mark.skipif(not shutil.which("cargo"), reason="needs cargo")
@pytest.mark.parametrize(
    ("fix", "word"),
    [
        ({"src/lib.rs": CRATE["src/lib.rs"].replace("    1\n", "    2\n")}, "seen"),
        ({".cargo/config.toml": RUNNER}, "unseen"),
    ],
)
def test_cargo_s_tests_fail_on_their_canary(tmp_path: Path, fix: Mapping[str, str], word: str) -> None:
    command = ("cargo", "test", "--no-fail-fast", "--offline")

    assert tried(tmp_path, CRATE, fix, *command, output="cargo-test")[0] == word


@pytest.mark.skipif(not shutil.which("go"), reason="needs go")
def test_go_s_tests_fail_on_their_canary(tmp_path: Path) -> None:
    files = {
        "go.mod": "module shop\n\ngo 1.20\n",
        "shop.go": "package shop\n\nfunc Total() int { return 1 }\n",
        "shop_test.go": (
            'package shop\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {\n'
            "\tif Total() != 2 {\n\t\tt.Fail()\n\t}\n}\n"
        ),
    }
    fix = {"shop.go": files["shop.go"].replace("1", "2")}

    assert tried(tmp_path, files, fix, "go", "test", "-json", "./...", output="go-test") == ("seen", [])
