"""Proposes checks for a Cargo package or workspace. Reads files only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fixloop.configuration.declarations import table_in, toml_of
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.project_commands import ProjectCommand, makefile_and_ci_commands
from fixloop.protocol.launchers import word_set

_KEPT: Final = word_set(
    "--workspace --all --all-features --no-default-features --release --locked --all-targets"
)
_WITH_VALUE: Final = frozenset({"--features", "-F", "--exclude", "-p", "--package", "--profile"})
_RUST: Final = "install Rust: https://rustup.rs"
_TESTS_ALONE: Final = frozenset({"--all-targets"})
"""Not for tests: with these options Cargo skips doc tests, and runs benchmarks."""


def proposals(directory: Path) -> Iterator[Proposal]:
    """The checks for Cargo.toml in `directory`; none without it."""
    if not (manifest := toml_of(directory / "Cargo.toml")):
        return
    # Reversed, so that the first command of each kind wins.
    own = [each for each in makefile_and_ci_commands(directory) if each.words[:1] == ("cargo",)]
    used = {command.words[1]: command for command in reversed(own) if len(command.words) > 1}
    scope = ("--workspace",) if "workspace" in manifest else ()
    cargo = Need("program", "cargo", _RUST)

    test = used.get("test")
    kept = tuple(word for word in _options(test) if word not in _TESTS_ALONE)
    why = test.why if test is not None and kept else "Cargo.toml"
    command = ("cargo", "test", "--no-fail-fast", *(kept or scope))
    yield proposal("test-runner", "cargo test", command, why, cargo, runs_tests=True, output="cargo-test")

    clippy = used.get("clippy")
    files = [name for name in ("clippy.toml", ".clippy.toml") if (directory / name).is_file()]
    tables = [path for path in (("lints",), ("workspace", "lints")) if table_in(manifest, *path, "clippy")]
    signs = [*([clippy.why] if clippy is not None else []), *files]
    signs += [f"Cargo.toml: {'.'.join(path)}.clippy" for path in tables]
    for where in signs[:1]:
        words = clippy.words if clippy is not None else ()
        lints = words[words.index("--") :] if "--" in words else ()
        command = ("cargo", "clippy", "--message-format=json", *(tuple(_options(clippy)) or scope), *lints)
        needs = (cargo, Need("program", "cargo-clippy", "rustup component add clippy"))
        yield proposal("code-quality", "cargo clippy", command, where, *needs, output="clippy")

    fmt = used.get("fmt")
    if fmt is not None and "--check" in fmt.words:
        needs = (cargo, Need("program", "cargo-fmt", "rustup component add rustfmt"))
        yield proposal("code-quality", "cargo fmt", fmt.words, fmt.why, *needs)


def _options(command: ProjectCommand | None) -> Iterator[str]:
    words = iter(command.words[2:] if command is not None else ())
    for word in words:
        if word == "--":
            return
        if word in _WITH_VALUE:
            yield from (word, next(words, ""))
        elif word in _KEPT or word.partition("=")[0] in _WITH_VALUE:
            yield word
