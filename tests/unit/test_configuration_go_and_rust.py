"""What is detected from a go.mod, a go.work and a Cargo.toml."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from fixloop.configuration import go, rust
from fixloop.configuration.model import Proposal
from tests.fixtures.reports.samples import written

WORKFLOW = ".github/workflows/ci.yml"


def workflow(*lines: str) -> str:
    steps = "".join(f"      - run: {line}\n" for line in lines)
    return f"jobs:\n  test:\n    steps:\n{steps}"


def commands(found: Iterable[Proposal]) -> dict[str, str]:
    return {each.check.name: " ".join(each.check.command) for each in found}


def test_a_module_is_tested_and_vetted(tmp_path: Path) -> None:
    found = go.proposals(written(tmp_path, {"go.mod": "module m\n", "a_test.go": ""}))

    assert commands(found) == {"go test": "go test -json -count=1 ./...", "go vet": "go vet ./..."}
    assert [(each.check.output, each.runs_tests) for each in found] == [("go-test", True), ("", False)]


def test_a_module_without_tests_is_only_vetted(tmp_path: Path) -> None:
    assert set(commands(go.proposals(written(tmp_path, {"go.mod": "module m\n"})))) == {"go vet"}


def test_tags_and_limits_come_from_the_project_s_own_command(tmp_path: Path) -> None:
    text = workflow("go test -race -v -tags integration -timeout=20m -coverprofile=c.out ./...")
    found = go.proposals(written(tmp_path, {"go.mod": "module m\n", "a_test.go": "", WORKFLOW: text}))

    assert commands(found) == {
        "go test": "go test -json -count=1 -tags=integration -timeout=20m ./...",
        "go vet": "go vet -tags=integration ./...",
    }
    assert found[0].why == f"{WORKFLOW}: test"


@pytest.mark.parametrize(
    ("uses", "packages"),
    [
        ("use (\n\t.\n\t./tools/gen\n)", "./... ./tools/gen/..."),
        ("use (\n\t./app // the program\n\t// ./old\n\t./lib\n)", "./app/... ./lib/..."),
        (
            'use app // the program\nuse "./lib"\n\nreplace (\n\texample.com/a => ./a\n)',
            "./app/... ./lib/...",
        ),
    ],
)
def test_a_workspace_is_checked_module_by_module(tmp_path: Path, uses: str, packages: str) -> None:
    found = go.proposals(written(tmp_path, {"go.work": f"go 1.22\n\n{uses}\n", "a_test.go": ""}))

    assert commands(found)["go vet"] == f"go vet {packages}"


def test_a_go_linter_is_used_if_it_is_configured(tmp_path: Path) -> None:
    found = go.proposals(written(tmp_path, {"go.mod": "module m\n", ".golangci.yml": ""}))

    assert commands(found)["golangci-lint"] == "golangci-lint run"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"Cargo.toml": "[package]\n"}, {"cargo test": "cargo test --no-fail-fast"}),
        (
            {"Cargo.toml": "[workspace]\nmembers = ['a']\n[workspace.lints.clippy]\nall = 'warn'\n"},
            {
                "cargo test": "cargo test --no-fail-fast --workspace",
                "cargo clippy": "cargo clippy --message-format=json --workspace",
            },
        ),
        (
            {
                "Cargo.toml": "[package]\n",
                WORKFLOW: workflow(
                    "cargo test --all-features --all-targets --verbose",
                    "cargo test --no-default-features",
                    "cargo clippy --all-targets --features a -- -D warnings",
                    "cargo fmt --all -- --check",
                ),
            },
            {
                "cargo test": "cargo test --no-fail-fast --all-features",
                "cargo clippy": "cargo clippy --message-format=json --all-targets --features a -- -D warnings",
                "cargo fmt": "cargo fmt --all -- --check",
            },
        ),
        ({"Cargo.toml": "not toml"}, {}),
        ({}, {}),
    ],
)
def test_cargo_is_called_as_the_project_calls_it(
    tmp_path: Path, files: dict[str, str], expected: dict[str, str]
) -> None:
    assert commands(rust.proposals(written(tmp_path, files))) == expected
