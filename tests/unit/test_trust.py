"""Which files judge a fix: by path, by the relevant part of their content, by what starts them."""

from collections.abc import Mapping

import pytest

from fixloop.integrity.parts import judging_part
from fixloop.integrity.paths import Kind, Trust, kind_of, matches
from fixloop.integrity.started import started_by

PRODUCT = """
calc.py src/shop/__init__.py src/openapi/spec/parser.py lib/specs/model.rb spec/openapi.yaml latest.py contest.py
src/shop/e2e/cipher.py
src/attest.py src/fixtures/loader.py app/snapshots/service.py src/golden/rule.go README.md docs/index.md setup.py
requirements.txt pyproject.toml setup.cfg package.json go.mod Cargo.toml web/index.ts src/main.rs build.rs
src/types.py calendar.py src/pytest/__init__.py tasks.py celery/tasks.py src/testing/clock.py pytest_shop.py
lib/queue.js shop.so src/shop/test.rs use_cases.py src/expected.py .env Dockerfile src/lib.rs cmd/server/main.go
"""
TEST = """
test_calc.py tests/shop/data.bin src/shop/tests/test_a.py calc_test.py pkg/calc_test.go src/a.test.ts src/a.spec.tsx
spec/calc_spec.rb spec/support/matchers.rb spec_helper.rb e2e/login.ts web/__tests__/a.js src/__mocks__/fs.js
src/__snapshots__/a.snap a.snap pkg/testdata/in.go fixtures/orders.json app/fixtures/orders.json golden/out.txt
tap-snapshots/test/a.js.test.cjs snapshots/page.html expected.html golden_sum.txt cassettes/a.yaml report.golden
page.approved.html expected.json expected_totals.csv cases.csv
rounding_cases.yaml tests.py benches/speed.rs cypress/support/index.js tests/fixtures/package.json test_data.json
tests/requirements.txt
"""
GATE = """
fixloop.toml .gitignore web/.gitattributes .ignore .rgignore .github/workflows/ci.yml .gitlab-ci.yml pytest.ini mypy.ini
.coveragerc sub/ruff.toml .flake8 .pylintrc pyrightconfig.json .bandit .pre-commit-config.yaml tsconfig.json
tsconfig.build.json .eslintrc.cjs eslint.config.mjs jest.config.ts vite.config.js .npmrc .nycrc biome.json
poetry.lock uv.lock requirements-dev.txt package-lock.json pnpm-lock.yaml go.sum go.work .golangci.yml Cargo.lock
clippy.toml rust-toolchain.toml web/.config/nextest.toml tests/.gitignore constraints.txt
pytest.toml .pytest.toml .pylintrc.toml hatch.toml uv.toml nose2.cfg unittest.cfg .taprc tstyche.json
tstyche.config.json bunfig.toml
"""
RUNNER = """
conftest.py tests/conftest.py sitecustomize.py src/usercustomize.py sitecustomize/__init__.py evil.pth
evil-1.0.dist-info/entry_points.txt shop.egg-info/entry_points.txt calc.pyi src/shop/model.pyi Makefile build/rules.mk
justfile tox.ini tox.toml noxfile.py jest.setup.ts setupTests.js .pnp.cjs .cargo/config.toml magefiles/check.go
vendor/github.com/stretchr/testify/assert/assertions.go
"""
ONLY_WHEN_NEW = """
json.py src/types.py pytest.py pytest/__init__.py lib/coverage.py ruff.py mypy/__init__.py
random.cpython-312-x86_64-linux-gnu.so shop/_fast.so calc.pyc pytest_shop.py app/pytest.py src/shop.d.ts
_pytest/hooks.py
node_modules/jest/index.js build.rs
"""


@pytest.mark.proves("I1")
@pytest.mark.parametrize(
    ("kind", "paths"), [(Kind.PRODUCT, PRODUCT), (Kind.TEST, TEST), (Kind.GATE, GATE), (Kind.RUNNER, RUNNER)]
)
def test_a_path_determines_whether_a_file_judges_or_is_judged(kind: Kind, paths: str) -> None:
    assert {path: kind_of(path) for path in paths.split()} == dict.fromkeys(paths.split(), kind)


def test_a_file_that_shadows_the_library_next_to_a_check_s_script_is_a_runner() -> None:
    trust = Trust(started=frozenset({"tools/verify.py"}))

    assert kind_of("tools/difflib.py", trust, is_new=True) is Kind.RUNNER
    assert kind_of("tools/difflib.py", trust) is Kind.PRODUCT
    assert kind_of("shop/difflib.py", trust, is_new=True) is Kind.PRODUCT


def test_a_file_that_shadows_a_tool_is_a_runner_only_if_a_fix_added_it() -> None:
    found = {path: (kind_of(path), kind_of(path, is_new=True)) for path in ONLY_WHEN_NEW.split()}

    assert found == dict.fromkeys(ONLY_WHEN_NEW.split(), (Kind.PRODUCT, Kind.RUNNER))


@pytest.mark.parametrize(
    "path", ["src/shop/json.py", "src/pytest/hooks.py", "shop/types/__init__.py", "calc.py"]
)
def test_a_new_module_that_shadows_nothing_is_judged(path: str) -> None:
    assert kind_of(path, is_new=True) is Kind.PRODUCT


@pytest.mark.proves("I1")
def test_a_project_classifies_its_files_and_judging_wins_over_judged() -> None:
    trust = Trust(
        "web",
        {
            Kind.PRODUCT: ("tests/app/**", "Makefile"),
            Kind.TEST: ("*.case", "tests/app/cases/"),
            Kind.GATE: ("limits.json",),
        },
        frozenset({"web/check.py"}),
    )

    found = {
        path: str(kind_of(path, trust))
        for path in (
            "web/tests/app/main.py", "web/tests/other.py", "web/tests/app/cases/a.txt", "web/src/a.case",
            "web/Makefile", "web/limits.json", "web/sub/limits.json", "web/check.py", "check.py",
        )
    }  # fmt: skip

    assert list(found.values()) == [
        "product", "test", "test", "test", "product", "gate", "gate", "runner", "product",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.snap", "a.snap sub/b.snap", "a.snapshot"),
        ("tests/", "tests/a sub/tests/b/c", "tests mytests/a"),
        (
            "tests/snapshots/**",
            "tests/snapshots/a tests/snapshots/b/c",
            "sub/tests/snapshots/a tests/snapshots",
        ),
        ("/data/*.csv", "data/a.csv", "data/sub/a.csv sub/data/a.csv"),
        ("**/data/?.csv", "data/a.csv sub/data/a.csv", "data/ab.csv"),
        ("a/**/b.txt", "a/b.txt a/x/y/b.txt", "b.txt a/b_txt"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", "app/i/page.tsx"),
    ],
)
def test_patterns_are_read_as_in_gitignore(pattern: str, fits: str, fits_not: str) -> None:
    assert all(matches(path, (pattern,)) for path in fits.split())
    assert not any(matches(path, (pattern,)) for path in fits_not.split())


PARTS = [
    (
        "pyproject.toml",
        "[project]\nversion = '1'\n",
        "[project]\nversion = '2'\ndependencies = ['x']\n",
        False,
    ),
    ("pyproject.toml", "[tool.poetry]\nversion = '1'\n", "[tool.poetry]\nversion = '2'\n", False),
    (
        "pyproject.toml",
        "[tool.coverage.report]\nfail_under = 90\n",
        "[tool.coverage.report]\nfail_under = 1\n",
        True,
    ),
    ("pyproject.toml", "[project]\nname = 'a'\n", "[project.entry-points.pytest11]\na = 'b'\n", True),
    (
        "setup.cfg",
        "[metadata]\nversion = 1\n[flake8]\na = 1\n",
        "[metadata]\nversion = 2\n[flake8]\na = 1\n",
        False,
    ),
    (
        "setup.cfg",
        "[metadata]\nversion = 1\n",
        "[metadata]\nversion = 1\n[tool:pytest]\naddopts = --co\n",
        True,
    ),
    ("setup.cfg", "[options]\ninstall_requires =\n  a\n", "[options]\ninstall_requires =\n  a\n  b\n", False),
    ("package.json", '{"version": "1", "jest": {}}', '{"version": "2", "jest": {}}', False),
    ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}', True),
    ("package.json", '{"name": "a"}', '{"name": "a", "jest": {"testPathIgnorePatterns": ["a"]}}', True),
    (
        "package.json",
        '{"exports": {".": "./a.js"}}',
        '{"exports": {".": {"import": "./a.mjs", "types": "./a.d.ts"}}}',
        False,
    ),
    (
        "package.json",
        '{"exports": "./a.js"}',
        '{"exports": {"production": "./a.js", "default": "./b.js"}}',
        True,
    ),
    (
        "package.json",
        '{"name": "a"}',
        '{"imports": {"#a": {"development": "./b.js", "default": "./a.js"}}}',
        True,
    ),
    ("go.mod", "module a\nrequire x v1\n", "module a\nrequire (\n\tx v2 // direct\n\ty v1\n)\n", False),
    ("go.mod", "module a\n", "module a\nreplace (\n\tx => ./x\n)\n", True),
    (
        "Cargo.toml",
        "[package]\nversion = '1'\n",
        "[package]\nversion = '2'\n[dependencies]\nx = '1'\n",
        False,
    ),
    ("Cargo.toml", "[package]\nname = 'a'\n", "[package]\nname = 'a'\n[lints.clippy]\nall = 'allow'\n", True),
]


@pytest.mark.parametrize(("path", "before", "after", "is_gate"), PARTS)
def test_only_the_tool_settings_and_scripts_of_a_manifest_judge(
    path: str, before: str, after: str, is_gate: bool
) -> None:
    assert (judging_part(path, before) != judging_part(path, after)) is is_gate


def test_an_unreadable_manifest_has_no_part_to_compare() -> None:
    assert judging_part("pyproject.toml", "[tool") is None


MAKEFILE = """\
PYTHON ?= python
.PHONY: all
all: lint test
test:
\t@$(PYTHON) tools/check.py
lint:
\truff check shop.py
serve:
\tpython shop.py
"""
SCRIPTS = """{"scripts": {
    "test": "npm run unit && node tools/check.js", "unit": "sh run.sh", "start": "node server.js"
}}"""
FILES: Mapping[str, str] = {
    "check.py": "", "shop.py": "", "tools/check.py": "", "tools/check.js": "", "server.js": "", "bin/check": "",
    "Makefile": MAKEFILE, "package.json": SCRIPTS, "run.sh": "set -e\nFOO=1 python3 -u tools/check.py shop.py\n",
    "loop.sh": "./loop.sh\n", "calc.c": "",
    "inventory/__main__.py": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "started"),
    [
        (["python", "check.py", "{junit}"], "check.py"),
        (["python", "-X", "check.py"], "check.py"),
        (["uv", "run", "python3.12", "-u", "check.py"], "check.py"),
        (["env", "A=b", "timeout", "60", "./bin/check"], "bin/check"),
        (["python", "-m", "tools.check"], "tools/check.py"),
        (["sh", "run.sh"], "run.sh tools/check.py"),
        (["sh", "-c", "cd . && python check.py | tee out"], "check.py"),
        (["env", "--chdir=tools", "python", "check.py"], "tools/check.py"),
        (["make"], "Makefile tools/check.py"),
        (["make", "-s", "test"], "Makefile tools/check.py"),
        (["make", "lint"], "Makefile"),
        (["npm", "test"], "run.sh tools/check.py tools/check.js"),
        (["bash", "loop.sh"], "loop.sh"),
        (["ruff", "check", "shop.py"], ""),
        (["python", "-m", "mypy", "shop.py"], ""),
        (["python", "-m", "inventory", "replay", "week.json"], ""),
        (["sh", "-c", "! grep -Hn BAD shop.py"], ""),
        (["cc", "calc.c"], ""),
        ([], ""),
    ],
)
def test_files_that_a_check_starts_are_distinguished_from_its_targets(
    command: list[str], started: str
) -> None:
    assert started_by(command, "", FILES.get) == set(started.split())


def test_scripts_are_found_where_the_checks_run() -> None:
    assert started_by(["sh", "../run.sh"], "web", {"run.sh": "node app.mjs", "web/app.mjs": ""}.get) == {
        "run.sh",
        "web/app.mjs",
    }
