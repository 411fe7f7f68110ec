"""How the tests of a project are run that is in none of the languages fixloop knows."""

import json
from pathlib import Path

import pytest

from fixloop.configuration.detection import found_in
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.other_languages import proposals
from fixloop.errors import NotVerifiedError
from fixloop.reports.symptoms import checked_nothing, counted, died
from tests.fixtures.configuration_project import installed
from tests.fixtures.reports.samples import written

CMAKE = "enable_testing()\nadd_test(NAME adds COMMAND t)\n"


@pytest.mark.parametrize(
    ("files", "name", "starts"),
    [
        ({"pom.xml": ""}, "mvn --batch-mode test", ("mvn",)),
        ({"pom.xml": "", "mvnw": ""}, "./mvnw --batch-mode test", ("./mvnw",)),
        ({"build.gradle.kts": "", "gradlew": ""}, "./gradlew test --console=plain", ("./gradlew",)),
        ({"mix.exs": ""}, "mix test", ("mix", "test")),
        ({".rspec": "", "Gemfile": ""}, "bundle exec rspec", ("bundle", "exec", "rspec")),
        ({"spec/models/user_spec.rb": "", "Gemfile": ""}, "bundle exec rspec", ("bundle", "exec", "rspec")),
        ({"spec/calc_spec.rb": ""}, "rspec", ("rspec",)),
        ({"Rakefile": "Rake::TestTask.new(:test)\n"}, "rake test", ("rake", "test")),
        (
            {"composer.json": '{"scripts": {"test": "phpunit"}}'},
            "composer --no-interaction test",
            ("composer",),
        ),
        ({"phpunit.xml.dist": ""}, "phpunit", ("phpunit",)),
        ({"phpunit.xml": "", "composer.json": '{"name": "a/b"}'}, "phpunit", ("phpunit",)),
        ({"Shop.sln": "", "src/Shop.csproj": ""}, "dotnet test", ("dotnet", "test")),
        ({"CMakeLists.txt": CMAKE}, "ctest", ("sh", "-c")),
        ({"configure.ac": "", "Makefile.am": "TESTS = t\n"}, "make check", ("sh", "-c")),
        (
            {"deno.json": '{"tasks": {"fmt": {"command": "x"}, "test": "deno test -A"}}'},
            "deno task test",
            ("deno",),
        ),
        ({"deno.jsonc": '{"tasks": {"lint": "x"}, "exports": {"test": "a"}}'}, "deno test", ("deno",)),
        ({"t/calc.t": ""}, "prove --lib --recurse t", ("prove",)),
        ({"t/calc.t": "", "Makefile": "test:\n\tprove t\n"}, "make test", ("make", "test")),
        (
            {"t/calc.t": "", "justfile": "test filter='':\n  prove t {{filter}}\n"},
            "just test",
            ("just", "test"),
        ),
    ],
)
def test_the_files_of_a_project_say_how_its_tests_are_run(
    tmp_path: Path, files: dict[str, str], name: str, starts: tuple[str, ...]
) -> None:
    (found,) = proposals(written(tmp_path, files))

    assert (found.check.name, found.runs_tests) == (name, True)
    assert found.check.command[: len(starts)] == starts


def test_phpunit_that_composer_has_not_installed_is_not_replaced_by_another(tmp_path: Path) -> None:
    required = '{"require-dev": {"phpunit/phpunit": "^10.3"}}'

    (found,) = proposals(written(tmp_path, {"phpunit.xml.dist": "", "composer.json": required}))

    assert found.check.command == ("vendor/bin/phpunit",)
    assert [(need.kind, need.remedy) for need in found.needs] == [("file", "composer install")]


@pytest.mark.parametrize(
    "files",
    [
        {"Rakefile": "task :deploy\n"},
        {"composer.json": "{}"},
        {"CMakeLists.txt": "project(calc)\n"},
        {"Gemfile": ""},
    ],
)
def test_files_that_name_no_tests_propose_none(tmp_path: Path, files: dict[str, str]) -> None:
    assert list(proposals(written(tmp_path, files))) == []


def test_a_project_in_a_known_language_is_not_built_by_its_other_files(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "CMakeLists.txt": CMAKE, "test_a.py": "def test_a():\n    pass\n"}
    written(tmp_path, files)

    configuration = load_configuration(
        tmp_path, installed=installed(tmp_path, modules=("pytest",), programs=("cmake",))
    )

    assert [check.name for entry in configuration.specialists for check in entry.checks] == ["pytest"]


@pytest.mark.parametrize(
    ("package", "files", "expected"),
    [
        ({}, {"bin/rails": "", "test/a.rb": "", "Rakefile": ""}, {"bin/rails test": True}),
        ({}, {"CMakeLists.txt": CMAKE, "Makefile": "test:\n\tctest\n"}, {}),
        ({"test": "node --test"}, {"pom.xml": ""}, {"node --test": True, "mvn --batch-mode test": False}),
    ],
)
def test_beside_a_package_file_another_language_is_tested_too(
    tmp_path: Path, package: dict[str, str], files: dict[str, str], expected: dict[str, bool]
) -> None:
    written(tmp_path, {"package.json": json.dumps({"scripts": package}), **files})

    found = found_in(tmp_path, {}, None).of("test-runner")

    assert {each.check.name: each.runs_tests for each in found} == expected


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    written(tmp_path, {"mix.exs": ""})

    with pytest.raises(NotVerifiedError, match=r"mix test \(.*on the PATH\): install mix$"):
        load_configuration(tmp_path, installed=installed(tmp_path))


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("ctest --test-dir b", "Test project /b\nNo tests were found!!!\n"),
        ("meson test -C b", "ninja: no work to do.\nNo tests defined.\n"),
        ("mix test", "There are no tests to run\n"),
    ],
)
def test_a_run_without_tests_never_passes(command: str, output: str) -> None:
    assert checked_nothing(("sh", "-c", command), output)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (
            "bundle exec rake test",
            "resolver.rb:1: Could not find gem 'x' in locally installed gems. (Bundler)\n",
        ),
        ("./mvnw --batch-mode test", "[ERROR] [Help 1] http://cwiki/MAVEN/PluginResolutionException\n"),
        (
            "autoreconf --install",
            'Can\'t exec "autopoint": No such file or directory at FileUtils.pm line 293.\n',
        ),
        (
            "deno task test",
            "error: JSR package manifest for '@a/b' failed to load. Import 'https://c/d' failed.\n",
        ),
        ("mix test", "** (Mix) Can't continue due to errors on dependencies\n"),
        (
            "mix test",
            "Could not find Hex, which is needed to build dependency :ex_doc\n"
            "Shall I install Hex? [Yn] ** (Mix) Could not find an SCM for dependency :ex_doc from A.Mixfile\n",
        ),
        (
            "cargo test --no-fail-fast",
            "    Updating crates.io index\nerror: failed to get `b` as a dependency of package `a v1.0.4 (/a)`\n\n"
            "Caused by:\n  download of config.json failed\n\n"
            "Caused by:\n  [6] Could not resolve hostname (Could not resolve host: crates.example.org)\n",
        ),
        (
            "cargo test",
            "error: failed to get `b` as a dependency of package `a v0.1.0`\n\nCaused by:\n"
            "  failed to resolve address for example.org: Name or service not known; class=Net (12)\n",
        ),
        (
            "npm run test",
            "# pass 9\nnpm error code ENOTFOUND\n"
            "npm error network request to https://registry.example.org/npm failed, reason: getaddrinfo ENOTFOUND\n"
            "npm error A complete log of this run can be found in: debug.log\n",
        ),
        (
            "npm run test",
            "# pass 9\n\nnpm error audit endpoint returned an error\nnpm error A complete log is in: debug.log\n",
        ),
        (
            "npm run test",
            "npm ERR! An unknown git error occurred\n"
            "npm ERR! ssh: Could not resolve hostname example.org: Name or service not known\nnpm ERR!\n",
        ),
    ],
)
def test_what_cannot_be_had_is_an_error_and_no_failure(command: str, output: str) -> None:
    words = tuple(command.split())

    assert "could not get what the project needs" in died(words, 1, output)
    assert died(words, 0, output) == ""


@pytest.mark.parametrize(
    "said",
    [
        "Plugin a:b:3.5 or one of its dependencies could not be resolved: Cannot access central",
        "Could not resolve dependencies for project a:b:jar:1: Could not transfer artifact c:d:pom:104",
        "Non-resolvable parent POM for a:b:1: Could not transfer artifact c:d:pom:104 from/to central",
    ],
)
def test_what_maven_could_not_get_is_named(said: str) -> None:
    output = (
        f"[ERROR] Failed to execute goal on project x: {said} -> [Help 1]\n"
        "[ERROR] [Help 1] http://cwiki/MAVEN/DependencyResolutionException\n"
    )

    told = died(("mvn", "test"), 1, output)

    assert told == f"mvn could not get what the project needs: {said} -> [Help 1]"


def test_what_npm_could_not_get_within_a_failing_test_is_no_error() -> None:
    output = "npm error network request to https://example.org failed\nnot ok 1 installs offline\n# fail 1\n"

    assert died(("npm", "test"), 1, output) == ""


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("50% tests passed, 1 tests failed out of 2\n", 2),
        ("Ok:                 3   \nFail:               1   \nTimeout:            0   \n", 4),
        ("[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n", 2),
        ("2 tests, 1 failure\n", 2),
    ],
)
def test_summaries_of_other_runners_are_counted(output: str, count: int) -> None:
    assert counted(output) == count
