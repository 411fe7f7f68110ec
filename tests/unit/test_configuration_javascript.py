"""What a package.json and the files next to it configure."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.init import first_configuration, init
from fixloop.configuration.javascript import proposals
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Proposal
from fixloop.errors import NotVerifiedError
from tests.fixtures.reports.samples import written


def project(tmp_path: Path, scripts: dict[str, str], *files: str, **package: Any) -> tuple[Proposal, ...]:
    text = json.dumps({"scripts": scripts, **package})
    return proposals(written(tmp_path, {"package.json": text, **dict.fromkeys(files, "")}))


def commands(found: tuple[Proposal, ...]) -> dict[str, str]:
    return {proposal.check.name: shlex.join(proposal.check.command).replace("'", "") for proposal in found}


@pytest.mark.parametrize(
    ("script", "name", "command"),
    [
        (
            "vitest",
            "vitest",
            "node_modules/.bin/vitest run --reporter=default --reporter=junit --outputFile={junit}",
        ),
        (
            "vitest watch --coverage --reporter verbose",
            "vitest",
            "node_modules/.bin/vitest run --coverage --reporter=default --reporter=junit --outputFile={junit}",
        ),
        (
            "cross-env NODE_ENV=test jest --watchAll --ci src",
            "jest",
            "env NODE_ENV=test node_modules/.bin/jest --ci src --json --outputFile={jest}",
        ),
        (
            "nyc --all mocha -R spec spec",
            "mocha",
            "node_modules/.bin/nyc --all node_modules/.bin/mocha spec"
            " --reporter xunit --reporter-options output={junit}",
        ),
        (
            "c8 --100 node --test",
            "node --test",
            "node_modules/.bin/c8 --100 node --test-reporter=junit --test-reporter-destination={junit} "
            "--test-reporter=spec --test-reporter-destination=stdout --test",
        ),
        ("npx --no-install tap", "tap", "node_modules/.bin/tap"),
        ("./node_modules/.bin/ava", "ava", "node_modules/.bin/ava"),
    ],
)
def test_the_test_script_is_called_with_its_own_options_and_a_report(
    tmp_path: Path, script: str, name: str, command: str
) -> None:
    (proposal,) = project(tmp_path, {"test": script})

    assert commands((proposal,)) == {name: command}
    assert (proposal.tool, proposal.why, proposal.runs_tests) == (name, "package.json: scripts.test", True)
    assert proposal.specialist == "test-runner"


def test_a_script_that_others_call_with_arguments_is_no_check(tmp_path: Path) -> None:
    found = project(tmp_path, {"eslint": "eslint", "lint": "npm run eslint -- src", "tsc": "tsc"})

    assert commands(found)["eslint"].startswith("node_modules/.bin/eslint src ")
    assert set(commands(found)) == {"eslint", "tsc"}


def test_scripts_that_call_other_scripts_are_resolved(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        {
            "test": "pnpm lint && pnpm test:types && pnpm vitest run",
            "lint": "oxlint src && prettier -c src",
            "test:types": "tsc --noEmit",
            "lint:fix": "oxlint src --fix && prettier -w src",
            "dev": "vitest",
        },
    )

    assert commands(found) == {
        "oxlint": "node_modules/.bin/oxlint src -f github",
        "prettier": "node_modules/.bin/prettier src --check",
        "tsc": "node_modules/.bin/tsc --noEmit --pretty false",
        "vitest": "node_modules/.bin/vitest run --reporter=default --reporter=junit --outputFile={junit}",
    }


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("npm run build && mocha", "npm run test -- --reporter xunit --reporter-options output={junit}"),
        ("tsc && node --test dist", "npm run test"),
        ("node test.js", "npm run test"),
        ("vitest run | tee log", "npm run test"),
        ("npm run test", "npm run test"),
        ("npm run --workspaces test", "npm run test"),
        ("jest; true", "npm run test"),
    ],
)
def test_a_complex_script_is_run_by_its_package_manager(tmp_path: Path, script: str, command: str) -> None:
    (proposal,) = project(tmp_path, {"test": script, "build": "rollup -c"})

    assert commands((proposal,)) == {"npm test": command}
    assert proposal.runs_tests


@pytest.mark.parametrize(
    ("after", "command"),
    [
        ("npm run lint", "node_modules/.bin/tap"),
        ("yarn lint", "node_modules/.bin/tap"),
        ("npm run report", "npm run test"),
        ("npm run lint && npm run report", "npm run test"),
    ],
)
def test_a_linter_that_follows_the_tests_is_a_check_of_its_own(
    tmp_path: Path, after: str, command: str
) -> None:
    own = {"lint": "own-lint src", "report": "own-report"}

    found = commands(project(tmp_path, {"test": "tap", "posttest": after, **own}))

    assert list(found.values()) == [command, "npm run lint"]


def test_a_test_script_that_compiles_first_runs_whole_unless_nothing_is_written(tmp_path: Path) -> None:
    scripts = {"test": "tsc && vitest run"}

    assert "npm test" in commands(project(tmp_path, scripts))
    (tmp_path / "tsconfig.json").write_text('{"compilerOptions": {"noEmit": true}}', encoding="utf-8")
    assert set(commands(project(tmp_path, scripts))) == {"tsc", "vitest"}


@pytest.mark.parametrize(
    ("scripts", "loaded", "command"),
    [
        (
            {"prepare": "tsc", "test": "nyc vows test/*.js"},
            "require('../dist/sets')",
            "npm run prepare && npm run test",
        ),
        (
            {"prepare": "husky", "build": "tsc", "test": "mocha 'test/**'"},
            "import { parse } from '../../dist'",
            "npm run build && "
            "node_modules/.bin/mocha 'test/**' --reporter xunit --reporter-options \"output={junit}\"",
        ),
        (
            {"prepare": "npm run build", "build": "tsc", "test": "mocha test/*.js"},
            'const parse = require("..");',
            "npm run prepare && "
            'node_modules/.bin/mocha test/*.js --reporter xunit --reporter-options "output={junit}"',
        ),
        (
            {"prepare": "tsc", "test": "node test/parse.test.js"},
            "import { parse } from 'parse/sub'",
            "npm run prepare && npm run test",
        ),
        (
            {"build": "tsc", "test": "node --test dist/"},
            "nothing",
            'npm run build && node --test-reporter=junit "--test-reporter-destination={junit}" '
            "--test-reporter=spec --test-reporter-destination=stdout --test dist/",
        ),
    ],
)
def test_what_tests_load_from_an_ignored_folder_is_built_before_them(
    tmp_path: Path, scripts: dict[str, str], loaded: str, command: str
) -> None:
    written(tmp_path, {".gitignore": "node_modules\n/dist/\n", "test/parse.test.js": loaded})

    (found,) = (
        each for each in project(tmp_path, scripts, name="parse", main="./dist/index.js") if each.runs_tests
    )

    assert found.check.command[:2] == ("sh", "-c")
    assert found.check.command[2] == command


@pytest.mark.parametrize(
    ("scripts", "ignored", "loaded"),
    [
        ({"prepare": "tsc", "test": "mocha"}, "dist", "import { parse } from '../src/parse.js'"),
        ({"prepare": "tsc", "test": "mocha"}, "coverage", "import { parse } from '../dist/parse.js'"),
        ({"prepare": "husky", "test": "mocha"}, "dist", "import { parse } from '../dist/parse.js'"),
        ({"build": "tsc", "pretest": "npm run build", "test": "mocha"}, "dist", "require('../dist')"),
        ({"prepare": "tsc", "test": "tsc -p . && mocha"}, "dist", "require('../dist')"),
        ({"build": "tsc", "test": "vitest"}, "dist", "import { parse } from 'parse'; import '../src/a'"),
        ({"prepare": "tsc", "test": "mocha"}, "dist", "path.join(__dirname, '..', 'parse')"),
        ({"build": "tsc", "test": "npm run test:types && vitest"}, "types", "import '../src/parse.js'"),
    ],
)
def test_nothing_is_built_before_tests_that_build_it_or_load_sources(
    tmp_path: Path, scripts: dict[str, str], ignored: str, loaded: str
) -> None:
    written(tmp_path, {".gitignore": f"{ignored}\n", "test/parse.js": loaded})

    found = project(tmp_path, scripts, name="parse", main="dist/index.js")

    assert all(each.check.command[0] != "sh" for each in found)


def test_what_installing_builds_is_there_for_checks_that_look_for_imported_modules(tmp_path: Path) -> None:
    written(tmp_path, {".gitignore": "build\n", "browser.js": "import { parse } from './build/lib/parse.js'"})
    scripts = {
        "prepare": "npm run compile",
        "compile": "tsc",
        "lint": "eslint . && prettier -c .",
        "check": "gts lint",
    }

    found = commands(project(tmp_path, scripts, devDependencies={"gts": "5"}))

    assert found["npm run check"] == "sh -c npm run prepare && npm run check"
    assert found["eslint"] == 'sh -c npm run prepare && node_modules/.bin/eslint . -f json -o "{eslint}"'
    assert found["prettier"] == "node_modules/.bin/prettier . --check"
    assert found["tsc"] == "node_modules/.bin/tsc --noEmit --pretty false"


def test_a_script_that_runs_whole_after_a_build_may_run_the_configured_linter(tmp_path: Path) -> None:
    written(tmp_path, {".gitignore": "build\n", "browser.js": "import './build/lib/parse.js'"})

    (found,) = project(
        tmp_path, {"prepare": "rollup", "check": "gts lint"}, ".eslintrc", devDependencies={"eslint": "9"}
    )

    assert found.check.name == "npm run check"


@pytest.mark.parametrize(
    ("files", "start"),
    [
        ([".eslintrc.json"], "env ESLINT_USE_FLAT_CONFIG=false node_modules/.bin/eslint ."),
        (["eslint.config.js", ".eslintrc.json"], "node_modules/.bin/eslint ."),
    ],
)
def test_eslint_reads_the_settings_that_the_project_has(tmp_path: Path, files: list[str], start: str) -> None:
    found = project(tmp_path, {}, *files, devDependencies={"eslint": "9"})

    assert [command.startswith(start) for command in commands(found).values()] == [True]


def test_a_script_run_whole_needs_the_dependencies_it_calls(tmp_path: Path) -> None:
    scripts, tools = {"check": "gts lint && make"}, {"gts": "5", "make": "1", "tsx": "4"}

    (found,) = project(tmp_path, scripts, devDependencies=tools)

    assert [need.name for need in found.needs][2:] == ["node_modules/.bin/gts", "node_modules/.bin/make"]


def test_a_pattern_that_matches_files_needs_no_build(tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"types": "tsc --checkJS index.js lib/*.js --noEmit"}, "lib/help.js")

    assert [need.name for need in found.needs if need.name.endswith(".js")] == ["index.js"]


def test_a_type_check_of_built_files_needs_the_build(tmp_path: Path) -> None:
    types = {"types": "tsc --noEmit --allowJs dist/shop.js && tsc -p tsconfig.test.json"}

    first, second = project(tmp_path, types, "tsconfig.test.json")

    assert [need.name for need in first.needs] == ["node", "node_modules/.bin/tsc", "dist/shop.js"]
    assert "dist/shop.js" not in [need.name for need in second.needs]


def test_patterns_that_need_a_shell_are_run_by_one(tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"test": "node --test test/*.js"})
    (quoted,) = project(tmp_path, {"test": "mocha 'test/**/*.js'"})

    reporters = '--test-reporter=junit "--test-reporter-destination={junit}" '
    reporters += "--test-reporter=spec --test-reporter-destination=stdout"
    assert found.check.command == ("sh", "-c", f"node {reporters} --test test/*.js")
    assert quoted.check.command[1] == "test/**/*.js"


@pytest.mark.parametrize(
    ("scripts", "names"),
    [
        ({"test": 'echo "Error: no test specified" && exit 1'}, set()),
        ({"lint": "eslint . --fix", "format": "prettier --write ."}, {"eslint"}),
        ({"lint": "turbo lint", "typecheck": "astro check"}, {"npm run lint", "npm run typecheck"}),
        ({"lint": "wireit --fix"}, set()),
        ({"build": "tsc -p tsconfig.build.json"}, {"tsc"}),
        ({"build": "tsc -b"}, set()),
        ({"lint": "eslint src && eslint test"}, {"eslint", "eslint 2"}),
        ({"lint": "eslint src", "lint:strict": "eslint src --max-warnings 0"}, {"eslint"}),
        ({"check": "biome check --write src"}, {"biome"}),
        ({"lint": "run-s lint:*", "lint:js": "eslint .", "lint:css": "xo"}, {"eslint", "xo"}),
    ],
)
def test_scripts_that_only_read_are_checks_and_those_that_write_are_not(
    tmp_path: Path, scripts: dict[str, str], names: set[str]
) -> None:
    found = commands(project(tmp_path, scripts))

    assert set(found) == names
    assert not any("--fix" in command or "--write" in command for command in found.values())


@pytest.mark.parametrize(
    ("lock", "manager", "install"),
    [
        ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn", "yarn install --immutable"),
        ("bun.lock", "bun", "bun install --frozen-lockfile"),
        ("package-lock.json", "npm", "npm ci"),
    ],
)
def test_the_lock_file_determines_the_package_manager_and_how_tools_are_installed(
    tmp_path: Path, lock: str, manager: str, install: str
) -> None:
    (tool,) = project(tmp_path, {"test": "vitest"}, lock)
    (whole,) = project(tmp_path, {"test": "node run-tests.js"}, lock)

    assert [(need.name, need.remedy) for need in tool.needs if need.kind == "file"] == [
        ("node_modules/.bin/vitest", install)
    ]
    assert whole.check.command == (manager, "run", "test")
    assert manager in {need.name for need in whole.needs}


def test_an_explicit_package_manager_wins(tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"test": "make"}, "package-lock.json", packageManager="pnpm@10.33.0")

    assert found.check.command == ("pnpm", "run", "test")


def test_a_script_that_is_disabled_is_no_check(tmp_path: Path) -> None:
    found = project(tmp_path, {"//test": "xo && ava", "//lint": "eslint .", "test": "ava"})

    assert commands(found) == {"ava": "node_modules/.bin/ava"}


def test_a_tool_s_configuration_proposes_it_if_no_script_calls_it(tmp_path: Path) -> None:
    tools = {"vitest": "1", "eslint": "9", "@biomejs/biome": "2", "prettier": "3"}
    found = project(tmp_path, {}, "vitest.config.ts", "eslint.config.js", "biome.json", devDependencies=tools)

    assert [(each.check.name, each.why) for each in found] == [
        ("vitest", "vitest.config.ts"),
        ("eslint", "eslint.config.js"),
        ("biome", "biome.json"),
    ]


@pytest.mark.parametrize("text", ["", "{", '{"scripts": {"test": "mocha",}}', "[" * 100_000])
def test_a_package_file_that_is_not_json_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(NotVerifiedError, match=r"package\.json \(it is not valid JSON: .+\): correct it$"):
        load_configuration(written(tmp_path, {"package.json": text}))


@pytest.mark.parametrize("text", ["[]", '{"scripts": 5}', '{"scripts": {"test": 5}}'])
def test_an_empty_package_file_proposes_nothing(tmp_path: Path, text: str) -> None:
    assert proposals(written(tmp_path, {"package.json": text})) == ()


def test_the_runner_of_bun_writes_a_report(tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"test": "bun test --watch --coverage src"})

    assert found.check.command == (
        *("bun", "test", "--coverage", "src"),
        *("--reporter=junit", "--reporter-outfile={junit}"),
    )
    assert (found.check.name, [need.name for need in found.needs]) == ("bun test", ["bun"])


def test_plug_n_play_is_told_instead_of_asking_for_an_installation(tmp_path: Path) -> None:
    files = {"package.json": '{"scripts": {"test": "mocha"}}', "yarn.lock": "", ".pnp.cjs": ""}

    (found,) = proposals(written(tmp_path, files))

    assert "nodeLinker: node-modules" in found.needs[-1].remedy


@pytest.mark.parametrize("lock", ["package-lock.json", "yarn.lock", "bun.lock"])
def test_npm_runs_the_tests_of_packages_whichever_manager_installed_them(tmp_path: Path, lock: str) -> None:
    member = {"packages/a/package.json": '{"scripts": {"test": "node --test"}}'}
    written(tmp_path, {"package.json": '{"workspaces": ["packages/*"]}', lock: "", **member})

    (found,) = proposals(tmp_path)

    assert found.check.command == ("npm", "test", "--workspaces", "--if-present")


def test_a_linter_that_an_unknown_script_may_run_is_no_separate_check(tmp_path: Path) -> None:
    scripts = {"check": "gts lint", "test": "mocha"}
    found = project(tmp_path, scripts, ".eslintrc.json", devDependencies={"eslint": "9", "gts": "7"})

    assert list(commands(found)) == ["mocha", "npm run check"]


def test_a_project_without_configuration_is_checked_by_its_scripts_and_init_writes_them(
    tmp_path: Path,
) -> None:
    written(tmp_path, {"package.json": '{"scripts": {"test": "vitest"}}'})

    found, text = load_configuration(tmp_path), init(first_configuration(tmp_path, None))

    command = "node_modules/.bin/vitest run --reporter=default --reporter=junit --outputFile={junit}"
    (check,) = found.specialist("test-runner").checks
    assert " ".join(check.command) == command
    assert f'command = "{command}"' in text
    assert "make test" not in text
