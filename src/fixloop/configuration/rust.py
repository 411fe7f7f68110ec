"""Checks that a Cargo package or workspace speaks for. Reads files only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.declarations import table_in, toml_of
from fixloop.configuration.model import Check
from fixloop.configuration.project_commands import ProjectCommand, commands_beside
from fixloop.configuration.proposal import Need, Proposal

_KEPT: Final = frozenset(
    {
        "--workspace",
        "--all",
        "--all-features",
        "--no-default-features",
        "--release",
        "--locked",
        "--all-targets",
    }
)
_WITH_VALUE: Final = frozenset({"--features", "-F", "--exclude", "-p", "--package", "--profile"})
_RUST: Final = "install Rust: https://rustup.rs"
_TESTS_ALONE: Final = frozenset({"--all-targets"})
"""Not for tests: with it Cargo leaves out those in the documentation, and runs benchmarks."""


def proposals(directory: Path) -> Iterator[Proposal]:
    """What Cargo.toml in `directory` speaks for; nothing where there is none."""
    manifest = toml_of(directory / "Cargo.toml")
    if not manifest:
        return
    # The first command of each kind, last: a later one of the same key wins.
    own = [each for each in commands_beside(directory) if each.words[0] == "cargo" and len(each.words) > 1]
    used = {command.words[1]: command for command in reversed(own)}
    scope = ("--workspace",) if "workspace" in manifest else ()
    cargo = Need("program", "cargo", _RUST)

    test = used.get("test")
    kept = tuple(word for word in _options(test) if word not in _TESTS_ALONE)
    why = test.why if test is not None and kept else "Cargo.toml"
    command = ("cargo", "test", "--no-fail-fast", *(kept or scope))
    check = Check(name="cargo test", command=command, output="cargo-test", why=why)
    yield Proposal("test-runner", check, "cargo test", why, (cargo,), runs_tests=True)

    clippy = used.get("clippy")
    if where := _wants_clippy(directory, manifest, clippy):
        words = clippy.words if clippy is not None else ()
        lints = words[words.index("--") :] if "--" in words else ()
        command = ("cargo", "clippy", "--message-format=json", *(tuple(_options(clippy)) or scope), *lints)
        lint = Check(name="cargo clippy", command=command, output="clippy", why=where)
        needs = (cargo, Need("program", "cargo-clippy", "rustup component add clippy"))
        yield Proposal("code-quality", lint, "cargo clippy", where, needs)

    fmt = used.get("fmt")
    if fmt is not None and "--check" in fmt.words:
        needs = (cargo, Need("program", "cargo-fmt", "rustup component add rustfmt"))
        form = Check(name="cargo fmt", command=fmt.words, why=fmt.why)
        yield Proposal("code-quality", form, "cargo fmt", fmt.why, needs)


def _wants_clippy(directory: Path, manifest: dict[str, Any], used: ProjectCommand | None) -> str:
    """What says that the project wants it, or nothing."""
    if used is not None:
        return used.why
    for name in ("clippy.toml", ".clippy.toml"):
        if (directory / name).is_file():
            return name
    if table_in(manifest, "lints", "clippy"):
        return "Cargo.toml: lints.clippy"
    return "Cargo.toml: workspace.lints.clippy" if table_in(manifest, "workspace", "lints", "clippy") else ""


def _options(command: ProjectCommand | None) -> Iterator[str]:
    words = iter(command.words[2:] if command is not None else ())
    for word in words:
        if word == "--":
            return
        if word in _WITH_VALUE:
            yield from (word, next(words, ""))
        elif word in _KEPT or word.partition("=")[0] in _WITH_VALUE:
            yield word
